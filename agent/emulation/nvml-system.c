/* SPDX-License-Identifier: MIT */
/* Begin and end, versions, and how a client comes to a GPU's handle. */
#include <stdio.h>

#include "agent/base/text.h"
#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-session.h"
#include "agent/emulation/process.h"

EXPORT NvmlReturn nvmlInit_v2(void) {
        return session_start(0);
}

EXPORT NvmlReturn nvmlInit(void) {
        return session_start(0);
}

EXPORT NvmlReturn nvmlInitWithFlags(unsigned flags) {
        return session_start(flags);
}

EXPORT NvmlReturn nvmlShutdown(void) {
        return session_stop();
}

EXPORT const char *nvmlErrorString(NvmlReturn result) {
        return nvml_error_text(result);
}

EXPORT NvmlReturn nvmlSystemGetDriverVersion(char *version, unsigned length) {
        NvmlReturn r;
        View view;

        r = view_open_tray(version != NULL, &view);
        return r == VIEW_READY ? copy_text(view.header.driver_version, version, length) : r;
}

/* The driver's version with CUDA's in front, as the real library has it. */
EXPORT NvmlReturn nvmlSystemGetNVMLVersion(char *version, unsigned length) {
        char text[48];
        NvmlReturn r;
        View view;

        r = view_open_tray(version != NULL, &view);
        if (r != VIEW_READY)
                return r;
        (void) snprintf(text, sizeof text, "%u.%s", driver_cuda_version(view.header.driver_version) / 1000,
                        view.header.driver_version);
        return copy_text(text, version, length);
}

EXPORT NvmlReturn nvmlSystemGetCudaDriverVersion_v2(int *version) {
        NvmlReturn r;
        View view;

        r = view_open_tray(version != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *version = (int) driver_cuda_version(view.header.driver_version);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlSystemGetCudaDriverVersion(int *version) {
        return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT NvmlReturn nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
        char text[256];
        NvmlReturn r;
        View view;

        r = view_open_tray(name && length > 0 && pid > 0, &view);
        if (r != VIEW_READY)
                return r;
        if (process_name((pid_t) pid, text, sizeof text) < 0)
                return NVML_NOT_FOUND;

        /* A name too long for the buffer is cut. */
        (void) snprintf(name, length, "%s", text);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetCount_v2(unsigned *count) {
        NvmlReturn r;
        View view;

        r = view_open_tray(count != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *count = view.header.n_gpus;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetCount(unsigned *count) {
        return nvmlDeviceGetCount_v2(count);
}

EXPORT NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice *device) {
        GpuId id = { .kind = GPU_ID_INDEX, .index = index };

        return session_find(&id, device);
}

EXPORT NvmlReturn nvmlDeviceGetHandleByIndex(unsigned index, NvmlDevice *device) {
        return nvmlDeviceGetHandleByIndex_v2(index, device);
}

EXPORT NvmlReturn nvmlDeviceGetHandleByUUID(const char *uuid, NvmlDevice *device) {
        GpuId id = { .kind = GPU_ID_UUID };

        if (!uuid)
                return session_find(NULL, device);
        /* A text of another form is the UUID of no GPU. */
        if (gpu_uuid_parse(uuid, id.uuid) < 0)
                id.uuid[0] = '\0';
        return session_find(&id, device);
}

EXPORT NvmlReturn nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, NvmlDevice *device) {
        GpuId id = { .kind = GPU_ID_BUS_ID };

        if (!bus_id)
                return session_find(NULL, device);
        if (bus_id_scan(bus_id, id.bus_id) < 0)
                id.bus_id[0] = '\0';
        return session_find(&id, device);
}

EXPORT NvmlReturn nvmlDeviceGetHandleByPciBusId(const char *bus_id, NvmlDevice *device) {
        return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* Boards with two GPUs make a serial ambiguous, and the real library refuses it then. */
EXPORT NvmlReturn nvmlDeviceGetHandleBySerial(const char *serial, NvmlDevice *device) {
        NvmlDevice candidate, found = NULL;
        NvmlReturn r;
        View view;

        r = view_open_tray(serial && device, &view);
        if (r != VIEW_READY)
                return r;

        for (uint32_t i = 0; i < view.header.n_gpus; i++) {
                View gpu;

                if (nvmlDeviceGetHandleByIndex_v2(i, &candidate) != NVML_OK ||
                                view_open_identity(candidate, true, &gpu) != VIEW_READY ||
                                !streq(gpu.gpu.serial, serial))
                        continue;
                if (found)
                        return NVML_INVALID_ARGUMENT;
                found = candidate;
        }
        if (!found)
                return NVML_NOT_FOUND;
        *device = found;
        return NVML_OK;
}
