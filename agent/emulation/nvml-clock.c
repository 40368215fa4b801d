/* SPDX-License-Identifier: MIT */
/* Clocks. */
#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-values.h"

/* nvmlClockType_t. */
enum {
        CLOCK_GRAPHICS,
        CLOCK_SM,
        CLOCK_MEMORY,
        CLOCK_VIDEO,
        _CLOCK_MAX,
};

/* Graphics clocks come in steps of 7.5 MHz, rounded down. */
#define GRAPHICS_STEPS(model) (((model)->graphics_clock_max - 120) * 2 / 15 + 1)

static bool clock_is_valid(int type) {
        return type >= 0 && type < _CLOCK_MAX;
}

EXPORT NvmlReturn nvmlDeviceGetClockInfo(NvmlDevice device, int type, unsigned *mhz) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, mhz && clock_is_valid(type), &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        if (type == CLOCK_MEMORY)
                *mhz = view.header.model.memory_clock;
        else
                *mhz = type == CLOCK_VIDEO ? telemetry.video_clock : telemetry.graphics_clock;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetMaxClockInfo(NvmlDevice device, int type, unsigned *mhz) {
        NvmlReturn r;
        View view;

        r = view_open(device, mhz && clock_is_valid(type), &view);
        if (r != VIEW_READY)
                return r;
        if (type == CLOCK_MEMORY)
                *mhz = view.header.model.memory_clock;
        else
                *mhz = type == CLOCK_VIDEO ? view.header.model.video_clock_max
                                           : view.header.model.graphics_clock_max;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetApplicationsClock(NvmlDevice device, int type, unsigned *mhz) {
        return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

EXPORT NvmlReturn nvmlDeviceGetDefaultApplicationsClock(NvmlDevice device, int type, unsigned *mhz) {
        return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

EXPORT NvmlReturn nvmlDeviceSetApplicationsClocks(NvmlDevice device, unsigned memory, unsigned graphics) {
        View view;
        NvmlReturn r = view_open(device, true, &view);

        return r == VIEW_READY ? NVML_NOT_SUPPORTED : r;
}

EXPORT NvmlReturn nvmlDeviceResetApplicationsClocks(NvmlDevice device) {
        View view;
        NvmlReturn r = view_open(device, true, &view);

        return r == VIEW_READY ? NVML_NOT_SUPPORTED : r;
}

EXPORT NvmlReturn nvmlDeviceGetSupportedMemoryClocks(NvmlDevice device, unsigned *count, unsigned *clocks) {
        NvmlReturn r;
        View view;

        r = view_open(device, count && (clocks || *count == 0), &view);
        if (r != VIEW_READY)
                return r;
        if (*count < 1) {
                *count = 1;
                return NVML_INSUFFICIENT_SIZE;
        }
        *count = 1;
        clocks[0] = view.header.model.memory_clock;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetSupportedGraphicsClocks(
                NvmlDevice device, unsigned memory_clock, unsigned *count, unsigned *clocks) {
        unsigned steps;
        NvmlReturn r;
        View view;

        r = view_open(device, count && (clocks || *count == 0), &view);
        if (r != VIEW_READY)
                return r;
        if (memory_clock != view.header.model.memory_clock)
                return NVML_NOT_FOUND;

        steps = GRAPHICS_STEPS(&view.header.model);
        if (*count < steps) {
                *count = steps;
                return NVML_INSUFFICIENT_SIZE;
        }
        *count = steps;
        for (unsigned i = 0; i < steps; i++)
                clocks[i] = 120 + (steps - 1 - i) * 15 / 2;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device, unsigned long long *reasons) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, reasons != NULL, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        *reasons = telemetry.load == 0 ? 1 : 0; /* idle */
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device, unsigned long long *reasons) {
        return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
