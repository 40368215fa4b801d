/* SPDX-License-Identifier: MIT */
/* What the emulated libcuda.so.1 exports: enough to list devices, make contexts, and allocate, write, read
 * and free the GPU's memory. There are no kernels, and modules cannot be loaded. Names, numbers and
 * signatures are those of CUDA's driver API, 12 and 13. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CUresult. */
typedef int CudaResult;

enum {
        CUDA_OK = 0,
        CUDA_INVALID_VALUE = 1,
        CUDA_OUT_OF_MEMORY = 2,
        CUDA_NOT_INITIALIZED = 3,
        CUDA_DEVICE_UNAVAILABLE = 46,
        CUDA_NO_DEVICE = 100,
        CUDA_INVALID_DEVICE = 101,
        CUDA_INVALID_CONTEXT = 201,
        CUDA_INVALID_HANDLE = 400,
        CUDA_NOT_FOUND = 500,
        CUDA_NOT_SUPPORTED = 801,
        CUDA_SYSTEM_NOT_READY = 802,
        CUDA_UNKNOWN = 999,
};

typedef int CudaDevice;
typedef uint64_t CudaAddress; /* of a GPU's memory */
typedef struct CudaContext *CudaContextHandle;
typedef void *CudaStream;
typedef void *CudaEvent;

typedef struct CudaIpcHandle {
        char bytes[64];
} CudaIpcHandle;

typedef struct CudaUuid {
        char bytes[16];
} CudaUuid;

#define CUDA_FUNCTIONS(X)                                                                              \
        X(cuInit, (unsigned flags))                                                                    \
        X(cuDriverGetVersion, (int *version))                                                          \
        X(cuGetErrorString, (CudaResult error, const char **text))                                     \
        X(cuGetErrorName, (CudaResult error, const char **text))                                       \
        X(cuGetProcAddress, (const char *name, void **function, int version, uint64_t flags))          \
        X(cuGetProcAddress_v2,                                                                         \
                        (const char *name, void **function, int version, uint64_t flags, int *status)) \
        X(cuDeviceGetCount, (int *count))                                                              \
        X(cuDeviceGet, (CudaDevice * device, int ordinal))                                             \
        X(cuDeviceGetName, (char *name, int length, CudaDevice device))                                \
        X(cuDeviceGetUuid, (CudaUuid * uuid, CudaDevice device))                                       \
        X(cuDeviceGetUuid_v2, (CudaUuid * uuid, CudaDevice device))                                    \
        X(cuDeviceTotalMem_v2, (size_t * bytes, CudaDevice device))                                    \
        X(cuDeviceGetAttribute, (int *value, int attribute, CudaDevice device))                        \
        X(cuDeviceComputeCapability, (int *major, int *minor, CudaDevice device))                      \
        X(cuDeviceGetPCIBusId, (char *bus_id, int length, CudaDevice device))                          \
        X(cuDeviceGetByPCIBusId, (CudaDevice * device, const char *bus_id))                            \
        X(cuDeviceCanAccessPeer, (int *can, CudaDevice device, CudaDevice peer))                       \
        X(cuDevicePrimaryCtxRetain, (CudaContextHandle * context, CudaDevice device))                  \
        X(cuDevicePrimaryCtxRelease, (CudaDevice device))                                              \
        X(cuDevicePrimaryCtxRelease_v2, (CudaDevice device))                                           \
        X(cuDevicePrimaryCtxReset_v2, (CudaDevice device))                                             \
        X(cuDevicePrimaryCtxGetState, (CudaDevice device, unsigned *flags, int *active))               \
        X(cuDevicePrimaryCtxSetFlags_v2, (CudaDevice device, unsigned flags))                          \
        X(cuCtxCreate_v2, (CudaContextHandle * context, unsigned flags, CudaDevice device))            \
        X(cuCtxDestroy_v2, (CudaContextHandle context))                                                \
        X(cuCtxGetCurrent, (CudaContextHandle * context))                                              \
        X(cuCtxSetCurrent, (CudaContextHandle context))                                                \
        X(cuCtxPushCurrent_v2, (CudaContextHandle context))                                            \
        X(cuCtxPopCurrent_v2, (CudaContextHandle * context))                                           \
        X(cuCtxGetDevice, (CudaDevice * device))                                                       \
        X(cuCtxSynchronize, (void) )                                                                   \
        X(cuMemGetInfo_v2, (size_t * free, size_t * total))                                            \
        X(cuMemAlloc_v2, (CudaAddress * address, size_t size))                                         \
        X(cuMemFree_v2, (CudaAddress address))                                                         \
        X(cuMemGetAddressRange_v2, (CudaAddress * base, size_t * size, CudaAddress address))           \
        X(cuMemcpyHtoD_v2, (CudaAddress to, const void *from, size_t size))                            \
        X(cuMemcpyDtoH_v2, (void *to, CudaAddress from, size_t size))                                  \
        X(cuMemcpyDtoD_v2, (CudaAddress to, CudaAddress from, size_t size))                            \
        X(cuMemcpyHtoDAsync_v2, (CudaAddress to, const void *from, size_t size, CudaStream stream))    \
        X(cuMemcpyDtoHAsync_v2, (void *to, CudaAddress from, size_t size, CudaStream stream))          \
        X(cuMemcpyDtoDAsync_v2, (CudaAddress to, CudaAddress from, size_t size, CudaStream stream))    \
        X(cuMemsetD8_v2, (CudaAddress to, unsigned char value, size_t n))                              \
        X(cuMemsetD32_v2, (CudaAddress to, unsigned value, size_t n))                                  \
        X(cuMemsetD8Async, (CudaAddress to, unsigned char value, size_t n, CudaStream stream))         \
        X(cuPointerGetAttribute, (void *value, int attribute, CudaAddress address))                    \
        X(cuIpcGetMemHandle, (void *handle, CudaAddress address))                                      \
        X(cuIpcOpenMemHandle_v2, (CudaAddress * address, CudaIpcHandle handle, unsigned flags))        \
        X(cuIpcOpenMemHandle, (CudaAddress * address, CudaIpcHandle handle, unsigned flags))           \
        X(cuIpcCloseMemHandle, (CudaAddress address))                                                  \
        X(cuStreamCreate, (CudaStream * stream, unsigned flags))                                       \
        X(cuStreamDestroy_v2, (CudaStream stream))                                                     \
        X(cuStreamSynchronize, (CudaStream stream))                                                    \
        X(cuEventCreate, (CudaEvent * event, unsigned flags))                                          \
        X(cuEventDestroy_v2, (CudaEvent event))                                                        \
        X(cuEventRecord, (CudaEvent event, CudaStream stream))                                         \
        X(cuEventSynchronize, (CudaEvent event))                                                       \
        X(cuEventQuery, (CudaEvent event))                                                             \
        X(cuEventElapsedTime, (float *milliseconds, CudaEvent from, CudaEvent to))

#define CUDA_DECLARE(name, arguments) CudaResult name arguments;

CUDA_FUNCTIONS(CUDA_DECLARE)
