/* SPDX-License-Identifier: MIT */
/* Devices, errors, and what needs no kernel to be true: streams and events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/emulation/cuda-session.h"
#include "agent/emulation/process.h"

static const struct {
        CudaResult error;
        const char *name;
        const char *text;
} errors[] = {
        { CUDA_OK, "CUDA_SUCCESS", "no error" },
        { CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
        { CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
        { CUDA_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
        { CUDA_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
                        "CUDA-capable device(s) is/are busy or unavailable" },
        { CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
        { CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
        { CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
        { CUDA_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
        { CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
        { CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
        { CUDA_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized" },
        { CUDA_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

EXPORT CudaResult cuGetErrorString(CudaResult error, const char **text) {
        for (size_t i = 0; text && i < ELEMENTSOF(errors); i++)
                if (errors[i].error == error) {
                        *text = errors[i].text;
                        return CUDA_OK;
                }
        return CUDA_INVALID_VALUE;
}

EXPORT CudaResult cuGetErrorName(CudaResult error, const char **text) {
        for (size_t i = 0; text && i < ELEMENTSOF(errors); i++)
                if (errors[i].error == error) {
                        *text = errors[i].name;
                        return CUDA_OK;
                }
        return CUDA_INVALID_VALUE;
}

EXPORT CudaResult cuDriverGetVersion(int *version) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;

        if (!version)
                return CUDA_INVALID_VALUE;
        if (tray_open(&tray) < 0)
                return CUDA_UNKNOWN;
        *version = (int) driver_cuda_version(tray.header->driver_version);
        return CUDA_OK;
}

/* --- devices */

/* A device and its tray. The tray is to be closed. CUDA_OK · the caller's answer. */
static CudaResult look(CudaDevice device, bool complete, Tray *ret_tray, TrayGpu *ret_gpu) {
        CLEANUP(session_end) bool locked = false;
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!complete)
                return CUDA_INVALID_VALUE;
        gpu = session_gpu(device);
        if (!gpu)
                return CUDA_INVALID_DEVICE;

        /* What a device is called is known without asking it. */
        if (tray_open(&tray) < 0 || gpu->index >= tray.header->n_gpus)
                return CUDA_UNKNOWN;
        *ret_gpu = tray.gpus[gpu->index];
        *ret_tray = tray;
        tray = TRAY_INIT;
        return CUDA_OK;
}

EXPORT CudaResult cuDeviceGetCount(int *count) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!count)
                return CUDA_INVALID_VALUE;
        *count = 0;
        while (session_gpu(*count))
                (*count)++;
        return CUDA_OK;
}

EXPORT CudaResult cuDeviceGet(CudaDevice *device, int ordinal) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!device)
                return CUDA_INVALID_VALUE;
        if (!session_gpu(ordinal))
                return CUDA_INVALID_DEVICE;
        *device = ordinal;
        return CUDA_OK;
}

EXPORT CudaResult cuDeviceGetName(char *name, int length, CudaDevice device) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CudaResult r;
        TrayGpu gpu;

        r = look(device, name && length > 0, &tray, &gpu);
        if (r == CUDA_OK)
                (void) snprintf(name, (size_t) length, "%s", tray.header->model.name);
        return r;
}

EXPORT CudaResult cuDeviceGetUuid(CudaUuid *uuid, CudaDevice device) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        size_t n = 0;
        CudaResult r;
        TrayGpu gpu;

        r = look(device, uuid != NULL, &tray, &gpu);
        if (r != CUDA_OK)
                return r;
        for (const char *p = gpu.uuid + strlen("GPU-"); *p != '\0' && n < 32; p++) {
                unsigned digit;

                if (*p == '-')
                        continue;
                digit = (unsigned) (*p <= '9' ? *p - '0' : *p - 'a' + 10);
                uuid->bytes[n / 2] = (char) (n % 2 == 0 ? digit << 4
                                                        : (unsigned char) uuid->bytes[n / 2] | digit);
                n++;
        }
        return CUDA_OK;
}

EXPORT CudaResult cuDeviceGetUuid_v2(CudaUuid *uuid, CudaDevice device) {
        return cuDeviceGetUuid(uuid, device);
}

EXPORT CudaResult cuDeviceTotalMem_v2(size_t *bytes, CudaDevice device) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CudaResult r;
        TrayGpu gpu;

        r = look(device, bytes != NULL, &tray, &gpu);
        if (r == CUDA_OK)
                *bytes = tray.header->model.memory_total - tray.header->model.memory_reserved;
        return r;
}

EXPORT CudaResult cuDeviceComputeCapability(int *major, int *minor, CudaDevice device) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CudaResult r;
        TrayGpu gpu;

        r = look(device, major && minor, &tray, &gpu);
        if (r != CUDA_OK)
                return r;
        *major = (int) tray.header->model.compute_major;
        *minor = (int) tray.header->model.compute_minor;
        return CUDA_OK;
}

EXPORT CudaResult cuDeviceGetPCIBusId(char *bus_id, int length, CudaDevice device) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CudaResult r;
        TrayGpu gpu;

        r = look(device, bus_id && length > 0, &tray, &gpu);
        if (r == CUDA_OK) /* CUDA's domains have four digits */
                (void) snprintf(bus_id, (size_t) length, "%s", gpu.bus_id + 4);
        return r;
}

EXPORT CudaResult cuDeviceGetByPCIBusId(CudaDevice *device, const char *bus_id) {
        char wanted[GPU_BUS_ID_SIZE];

        if (!device || !bus_id || bus_id_scan(bus_id, wanted) < 0)
                return CUDA_INVALID_VALUE;
        for (CudaDevice i = 0;; i++) {
                CLEANUP(tray_done) Tray tray = TRAY_INIT;
                CudaResult r;
                TrayGpu gpu;

                r = look(i, true, &tray, &gpu);
                if (r != CUDA_OK)
                        return r;
                if (streq(gpu.bus_id, wanted)) {
                        *device = i;
                        return CUDA_OK;
                }
        }
}

EXPORT CudaResult cuDeviceCanAccessPeer(int *can, CudaDevice device, CudaDevice peer) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT, peer_tray = TRAY_INIT;
        TrayGpu gpu, peer_gpu;
        CudaResult r;

        r = look(device, can != NULL, &tray, &gpu);
        if (r == CUDA_OK)
                r = look(peer, true, &peer_tray, &peer_gpu);
        if (r == CUDA_OK)
                *can = gpu.index != peer_gpu.index && gpu.clique == peer_gpu.clique;
        return r;
}

/* CUdevice_attribute: those with an answer other than 0. */
static int attribute_value(int attribute, const GpuModel *model, const TrayGpu *gpu) {
        static const struct {
                int attribute, value;
        } constants[] = {
                { 1, 1024 },
                { 2, 1024 },
                { 3, 1024 },
                { 4, 64 }, /* threads of a block */
                { 5, INT32_MAX },
                { 6, 65535 },
                { 7, 65535 }, /* blocks of a grid */
                { 8, 49152 },
                { 9, 65536 },
                { 10, 32 },
                { 11, INT32_MAX },
                { 12, 65536 },
                { 14, 512 },
                { 15, 1 },
                { 19, 1 },
                { 31, 1 },
                { 32, 1 },
                { 38, 132644864 },
                { 39, 2048 },
                { 40, 4 },
                { 41, 1 },
                { 81, 233472 },
                { 82, 65536 },
                { 83, 1 },
                { 89, 1 },
                { 97, 232448 },
        };

        for (size_t i = 0; i < ELEMENTSOF(constants); i++)
                if (constants[i].attribute == attribute)
                        return constants[i].value;
        switch (attribute) {
        case 13: return (int) model->graphics_clock_max * 1000;
        case 16: return (int) model->n_multiprocessors;
        case 33: return (int) strtoul(gpu->bus_id + 9, NULL, 16);
        case 34: return (int) strtoul(gpu->bus_id + 12, NULL, 16);
        case 36: return (int) model->memory_clock * 1000;
        case 37: return (int) model->memory_bus_bits;
        case 50: return (int) strtoul(gpu->bus_id, NULL, 16);
        case 75: return (int) model->compute_major;
        case 76: return (int) model->compute_minor;
        default: return 0;
        }
}

EXPORT CudaResult cuDeviceGetAttribute(int *value, int attribute, CudaDevice device) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CudaResult r;
        TrayGpu gpu;

        r = look(device, value && attribute > 0 && attribute < 150, &tray, &gpu);
        if (r == CUDA_OK)
                *value = attribute_value(attribute, &tray.header->model, &gpu);
        return r;
}

/* --- streams and events: what they wait for is always over */

EXPORT CudaResult cuCtxSynchronize(void) {
        CLEANUP(session_end) bool locked = false;
        CudaDevice device;
        CudaResult r;

        r = session_begin(&locked);
        return r == CUDA_OK ? session_current(&device) : r;
}

/* A stream or an event: a place of its own, nothing more. */
static CudaResult make_token(void **ret) {
        CudaResult r;

        r = cuCtxSynchronize();
        if (r != CUDA_OK)
                return r;
        if (!ret)
                return CUDA_INVALID_VALUE;
        *ret = calloc(1, sizeof(usec_t));
        return *ret ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

static CudaResult free_token(void *token) {
        CudaResult r;

        r = cuCtxSynchronize();
        if (r == CUDA_OK && !token)
                return CUDA_INVALID_HANDLE;
        if (r == CUDA_OK)
                free(token);
        return r;
}

EXPORT CudaResult cuStreamCreate(CudaStream *stream, unsigned flags) {
        return make_token(stream);
}

EXPORT CudaResult cuStreamDestroy_v2(CudaStream stream) {
        return free_token(stream);
}

EXPORT CudaResult cuStreamSynchronize(CudaStream stream) {
        return cuCtxSynchronize();
}

EXPORT CudaResult cuEventCreate(CudaEvent *event, unsigned flags) {
        return make_token(event);
}

EXPORT CudaResult cuEventDestroy_v2(CudaEvent event) {
        return free_token(event);
}

EXPORT CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
        CudaResult r;

        r = cuCtxSynchronize();
        if (r == CUDA_OK && !event)
                return CUDA_INVALID_HANDLE;
        if (r == CUDA_OK)
                *(usec_t *) event = now_monotonic_usec();
        return r;
}

EXPORT CudaResult cuEventSynchronize(CudaEvent event) {
        CudaResult r;

        r = cuCtxSynchronize();
        return r == CUDA_OK && !event ? CUDA_INVALID_HANDLE : r;
}

EXPORT CudaResult cuEventQuery(CudaEvent event) {
        return cuEventSynchronize(event);
}

EXPORT CudaResult cuEventElapsedTime(float *milliseconds, CudaEvent from, CudaEvent to) {
        CudaResult r;

        r = cuCtxSynchronize();
        if (r != CUDA_OK)
                return r;
        if (!milliseconds || !from || !to)
                return CUDA_INVALID_VALUE;
        *milliseconds = (float) (*(usec_t *) to - *(usec_t *) from) / 1000;
        return CUDA_OK;
}

/* --- the functions by name, without the suffix of their version */

typedef void (*AnyFunction)(void);

#define ENTRY(name, arguments) { #name, (AnyFunction) name },

static const struct {
        const char *name;
        AnyFunction function;
} functions[] = { CUDA_FUNCTIONS(ENTRY) };

EXPORT CudaResult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
        size_t n;

        if (!name || !function)
                return CUDA_INVALID_VALUE;

        /* The newest one of a name: the table's order is not that of versions. */
        *function = NULL;
        n = strlen(name);
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                const char *rest = startswith(functions[i].name, name);

                if (rest && n > 0 && (*rest == '\0' ? !*function : streq(rest, "_v2")))
                        memcpy(function, &functions[i].function, sizeof *function);
        }
        return *function ? CUDA_OK : CUDA_NOT_FOUND;
}

EXPORT CudaResult cuGetProcAddress_v2(
                const char *name, void **function, int version, uint64_t flags, int *status) {
        CudaResult r;

        r = cuGetProcAddress(name, function, version, flags);
        if (status && r != CUDA_INVALID_VALUE)
                *status = r == CUDA_OK ? 0 : 1; /* found, not found */
        return r;
}
