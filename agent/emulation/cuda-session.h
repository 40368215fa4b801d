/* SPDX-License-Identifier: MIT */
/* The emulated CUDA's devices and contexts. A process on a GPU holds its node open and is registered with
 * the memory it uses. An allocation is a range of the GPU's memory file that the process has locked: the
 * kernel gives it back when the process ends, however that happens, and what was written stays for the next
 * one until the GPU is reset. */
#pragma once

#include <stdbool.h>

#include "agent/emulation/clients.h"
#include "agent/emulation/cuda-exports.h"
#include "agent/emulation/tray.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct CudaAllocation {
        struct CudaAllocation *next;
        uint64_t offset;
        uint64_t size;
} CudaAllocation;

/* A device that the process may see, in the order that it sees them. */
typedef struct CudaGpu {
        uint32_t index; /* in the tray */
        int node_fd;    /* -1: without a context, or a node that cannot be opened */
        int memory_fd;
        unsigned n_contexts; /* and references to the primary one */
        struct CudaContext *primary;
        unsigned primary_references;
        CudaAllocation *allocations;
        uint64_t used_bytes;
        ClientRecord record;
        char registration[96];
} CudaGpu;

struct CudaContext {
        CudaContextHandle next;
        CudaDevice device;
};

/* Each call holds the session from begin to end. CUDA_OK · CUDA_NOT_INITIALIZED. */
CudaResult session_begin(bool *ret_locked);
void session_end(bool *locked);

/* With the session held. NULL: no such device. */
CudaGpu* session_gpu(CudaDevice device);

/* The device of the calling thread's context. CUDA_OK · CUDA_INVALID_CONTEXT. */
CudaResult session_current(CudaDevice *ret);

/* The tray and one of its GPUs as they are now; the tray is to be closed. CUDA_OK · CUDA_DEVICE_UNAVAILABLE
 * · CUDA_SYSTEM_NOT_READY · CUDA_UNKNOWN. */
CudaResult session_look(const CudaGpu *gpu, Tray *ret_tray, TrayGpu *ret_gpu);

/* Tells everybody how much memory the process uses there. */
void session_tell(CudaGpu *gpu);

/* Addresses: which device, and where in its memory. */
#define CUDA_ADDRESS_BASE    UINT64_C(0x100000000000)
#define CUDA_ADDRESS_PER_GPU UINT64_C(0x010000000000)
