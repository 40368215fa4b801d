/* SPDX-License-Identifier: MIT */
#include "agent/emulation/cuda-session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/emulation/process.h"

#define STACK_MAX 64

static struct {
        pthread_mutex_t lock;
        pid_t pid; /* that initialized it: a child has to do so again, and cannot */
        CudaGpu *gpus;
        int n_gpus;
        CudaContextHandle contexts;
} session = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Each thread has a stack of contexts; the last one is current. */
static __thread CudaContextHandle stack[STACK_MAX];
static __thread unsigned n_stack;

static void session_lock(void) {
        (void) pthread_mutex_lock(&session.lock);
}

static void session_unlock(void) {
        (void) pthread_mutex_unlock(&session.lock);
}

__attribute__((constructor)) static void session_prepare_fork(void) {
        (void) pthread_atfork(session_lock, session_unlock, session_unlock);
}

CudaResult session_begin(bool *ret_locked) {
        session_lock();
        *ret_locked = true;
        return session.pid == getpid() ? CUDA_OK : CUDA_NOT_INITIALIZED;
}

void session_end(bool *locked) {
        if (*locked)
                session_unlock();
}

CudaGpu* session_gpu(CudaDevice device) {
        return device >= 0 && device < session.n_gpus ? &session.gpus[device] : NULL;
}

static bool context_is_known(CudaContextHandle context) {
        for (CudaContextHandle i = session.contexts; i; i = i->next)
                if (i == context)
                        return true;
        return false;
}

CudaResult session_current(CudaDevice *ret) {
        if (n_stack == 0 || !stack[n_stack - 1] || !context_is_known(stack[n_stack - 1]))
                return CUDA_INVALID_CONTEXT;
        *ret = stack[n_stack - 1]->device;
        return CUDA_OK;
}

CudaResult session_look(const CudaGpu *gpu, Tray *ret_tray, TrayGpu *ret_gpu) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        TrayGpu now;

        if (tray_open(&tray) < 0)
                return CUDA_UNKNOWN;
        tray_hang(&tray);
        if (gpu->index >= tray.header->n_gpus)
                return CUDA_UNKNOWN;

        now = tray.gpus[gpu->index];
        tray_gpu_at(tray.header, &now, now_monotonic_usec());
        if (now.lost)
                return CUDA_DEVICE_UNAVAILABLE;
        if (tray_gpu_is_resetting(&now, now_monotonic_usec()))
                return CUDA_SYSTEM_NOT_READY;
        *ret_gpu = now;
        *ret_tray = tray;
        tray = TRAY_INIT;
        return CUDA_OK;
}

void session_tell(CudaGpu *gpu) {
        if (gpu->registration[0] == '\0')
                return;
        gpu->record.used_bytes = PROCESS_CONTEXT_BYTES + gpu->used_bytes;
        (void) client_update(gpu->registration, &gpu->record); /* without it only the numbers are wrong */
}

/* --- which devices there are */

/* A container may have some of the nodes only. One of a real driver's (major 195) that nobody can open is
 * there. */
static bool node_is_there(const Tray *tray, const TrayGpu *gpu) {
        char path[192];

        return tray_node_path(tray->header, gpu, path, sizeof path) >= 0 && access(path, R_OK | W_OK) >= 0;
}

/* One item of CUDA_VISIBLE_DEVICES: an index among the GPUs that are there, or the beginning of a UUID. */
static const TrayGpu* find_visible(const Tray *tray, const char *item) {
        const TrayGpu *found = NULL;
        uint32_t wanted = 0, n = 0;
        bool by_uuid = startswith(item, "GPU-");

        if (!by_uuid && parse_u32(item, TRAY_GPUS_MAX, &wanted) < 0)
                return NULL;
        for (uint32_t i = 0; i < tray->header->n_gpus; i++) {
                if (!node_is_there(tray, &tray->gpus[i]))
                        continue;
                if (by_uuid ? startswith(tray->gpus[i].uuid, item) != NULL : n == wanted) {
                        if (found)
                                return NULL; /* the beginning of several */
                        found = &tray->gpus[i];
                }
                n++;
        }
        return found;
}

static void add_gpu(uint32_t index) {
        for (int i = 0; i < session.n_gpus; i++)
                if (session.gpus[i].index == index)
                        return;
        session.gpus[session.n_gpus++] = (CudaGpu){ .index = index, .node_fd = -1, .memory_fd = -1 };
}

/* As CUDA does it: up to the first item that names nothing. */
static int find_gpus(const Tray *tray) {
        CLEANUP(strv_free_ptr) char **items = NULL;
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");

        session.gpus = calloc(tray->header->n_gpus + 1, sizeof(CudaGpu));
        if (!session.gpus)
                return -ENOMEM;

        if (!visible) {
                for (uint32_t i = 0; i < tray->header->n_gpus; i++)
                        if (node_is_there(tray, &tray->gpus[i]))
                                add_gpu(i);
                return 0;
        }
        if (list_parse(visible, &items) >= 0)
                STRV_FOREACH (item, items) {
                        const TrayGpu *gpu = find_visible(tray, text_strip(*item));

                        if (!gpu)
                                break;
                        add_gpu(gpu->index);
                }
        return 0;
}

EXPORT CudaResult cuInit(unsigned flags) {
        CLEANUP(session_end) bool locked = false;
        CLEANUP(tray_done) Tray tray = TRAY_INIT;

        if (flags != 0)
                return CUDA_INVALID_VALUE;
        session_lock();
        locked = true;
        if (session.pid == getpid())
                return session.n_gpus > 0 ? CUDA_OK : CUDA_NO_DEVICE;
        if (session.pid != 0)
                return CUDA_NOT_INITIALIZED; /* in a child of a process that has devices open */

        if (tray_open(&tray) < 0)
                return CUDA_NO_DEVICE;
        tray_hang(&tray);
        if (find_gpus(&tray) < 0)
                return CUDA_OUT_OF_MEMORY;
        if (session.n_gpus == 0) {
                free(session.gpus);
                session.gpus = NULL;
                return CUDA_NO_DEVICE;
        }
        session.pid = getpid();
        return CUDA_OK;
}

/* --- contexts */

/* The first context on a GPU makes the process one of its holders. */
static CudaResult gpu_attach(CudaGpu *gpu) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        char path[192];
        CudaResult r;
        TrayGpu now;

        r = session_look(gpu, &tray, &now);
        if (r != CUDA_OK || gpu->n_contexts > 0)
                return r;

        if (tray_node_path(tray.header, &now, path, sizeof path) < 0)
                return CUDA_UNKNOWN;
        gpu->node_fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
        if (gpu->node_fd < 0 && errno != ENXIO && errno != ENODEV)
                return CUDA_NO_DEVICE;
        (void) snprintf(path, sizeof path, TRAY_MEMORY_DIRECTORY "/%u", gpu->index);
        gpu->memory_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (gpu->memory_fd < 0) {
                fd_close(&gpu->node_fd);
                gpu->node_fd = -1;
                return CUDA_UNKNOWN;
        }
        if (client_register(gpu->index, PROCESS_CONTEXT_BYTES, 0, &gpu->record, gpu->registration) < 0)
                gpu->registration[0] = '\0';
        return CUDA_OK;
}

static void gpu_detach(CudaGpu *gpu) {
        if (gpu->n_contexts > 0)
                return;
        while (gpu->allocations) {
                CudaAllocation *allocation = gpu->allocations;

                gpu->allocations = allocation->next;
                free(allocation);
        }
        gpu->used_bytes = 0;
        if (gpu->registration[0] != '\0')
                (void) unlink(gpu->registration);
        gpu->registration[0] = '\0';
        /* Closing the memory gives its locks back. */
        fd_close(&gpu->memory_fd);
        fd_close(&gpu->node_fd);
        gpu->memory_fd = gpu->node_fd = -1;
}

/* Whoever exits without a word is no tenant any more. */
__attribute__((destructor)) static void session_leave(void) {
        if (session.pid != getpid())
                return;
        for (int i = 0; i < session.n_gpus; i++)
                if (session.gpus[i].registration[0] != '\0')
                        (void) unlink(session.gpus[i].registration);
}

static CudaResult context_new(CudaDevice device, CudaContextHandle *ret) {
        CudaGpu *gpu = session_gpu(device);
        CudaContextHandle context;
        CudaResult r;

        if (!gpu)
                return CUDA_INVALID_DEVICE;
        context = calloc(1, sizeof *context);
        if (!context)
                return CUDA_OUT_OF_MEMORY;
        r = gpu_attach(gpu);
        if (r != CUDA_OK) {
                free(context);
                return r;
        }

        context->device = device;
        context->next = session.contexts;
        session.contexts = context;
        gpu->n_contexts++;
        *ret = context;
        return CUDA_OK;
}

static void context_free(CudaContextHandle context) {
        CudaGpu *gpu = session_gpu(context->device);

        for (CudaContextHandle *i = &session.contexts; *i; i = &(*i)->next)
                if (*i == context) {
                        *i = context->next;
                        break;
                }
        free(context);
        gpu->n_contexts--;
        gpu_detach(gpu);
}

EXPORT CudaResult cuCtxCreate_v2(CudaContextHandle *context, unsigned flags, CudaDevice device) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r == CUDA_OK && (!context || n_stack == STACK_MAX))
                r = CUDA_INVALID_VALUE;
        if (r == CUDA_OK)
                r = context_new(device, context);
        if (r == CUDA_OK)
                stack[n_stack++] = *context;
        return r;
}

EXPORT CudaResult cuCtxDestroy_v2(CudaContextHandle context) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!context_is_known(context) || session_gpu(context->device)->primary == context)
                return CUDA_INVALID_CONTEXT;
        if (n_stack > 0 && stack[n_stack - 1] == context)
                n_stack--;
        context_free(context);
        return CUDA_OK;
}

EXPORT CudaResult cuDevicePrimaryCtxRetain(CudaContextHandle *context, CudaDevice device) {
        CLEANUP(session_end) bool locked = false;
        CudaGpu *gpu;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        gpu = session_gpu(device);
        if (!gpu)
                return CUDA_INVALID_DEVICE;
        if (!context)
                return CUDA_INVALID_VALUE;
        if (!gpu->primary) {
                r = context_new(device, &gpu->primary);
                if (r != CUDA_OK)
                        return r;
        }
        gpu->primary_references++;
        *context = gpu->primary;
        return CUDA_OK;
}

static CudaResult primary_release(CudaDevice device, bool all) {
        CLEANUP(session_end) bool locked = false;
        CudaGpu *gpu;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        gpu = session_gpu(device);
        if (!gpu)
                return CUDA_INVALID_DEVICE;
        if (!gpu->primary)
                return all ? CUDA_OK : CUDA_INVALID_CONTEXT;
        if (!all && --gpu->primary_references > 0)
                return CUDA_OK;
        gpu->primary_references = 0;
        context_free(take_ptr(&gpu->primary));
        return CUDA_OK;
}

EXPORT CudaResult cuDevicePrimaryCtxRelease_v2(CudaDevice device) {
        return primary_release(device, false);
}

EXPORT CudaResult cuDevicePrimaryCtxRelease(CudaDevice device) {
        return primary_release(device, false);
}

EXPORT CudaResult cuDevicePrimaryCtxReset_v2(CudaDevice device) {
        return primary_release(device, true);
}

EXPORT CudaResult cuDevicePrimaryCtxGetState(CudaDevice device, unsigned *flags, int *active) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!session_gpu(device))
                return CUDA_INVALID_DEVICE;
        if (!flags || !active)
                return CUDA_INVALID_VALUE;
        *flags = 0;
        *active = session_gpu(device)->primary != NULL;
        return CUDA_OK;
}

EXPORT CudaResult cuDevicePrimaryCtxSetFlags_v2(CudaDevice device, unsigned flags) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        return r == CUDA_OK && !session_gpu(device) ? CUDA_INVALID_DEVICE : r;
}

EXPORT CudaResult cuCtxGetCurrent(CudaContextHandle *context) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!context)
                return CUDA_INVALID_VALUE;
        *context = n_stack > 0 ? stack[n_stack - 1] : NULL;
        return CUDA_OK;
}

EXPORT CudaResult cuCtxPushCurrent_v2(CudaContextHandle context) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (!context_is_known(context))
                return CUDA_INVALID_CONTEXT;
        if (n_stack == STACK_MAX)
                return CUDA_INVALID_VALUE;
        stack[n_stack++] = context;
        return CUDA_OK;
}

EXPORT CudaResult cuCtxPopCurrent_v2(CudaContextHandle *context) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (n_stack == 0)
                return CUDA_INVALID_CONTEXT;
        n_stack--;
        if (context)
                *context = stack[n_stack];
        return CUDA_OK;
}

EXPORT CudaResult cuCtxSetCurrent(CudaContextHandle context) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (context && !context_is_known(context))
                return CUDA_INVALID_CONTEXT;
        if (n_stack > 0)
                n_stack--;
        if (context)
                stack[n_stack++] = context;
        return CUDA_OK;
}

EXPORT CudaResult cuCtxGetDevice(CudaDevice *device) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        return device ? session_current(device) : CUDA_INVALID_VALUE;
}
