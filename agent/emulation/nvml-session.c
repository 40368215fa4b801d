/* SPDX-License-Identifier: MIT */
#include "agent/emulation/nvml-session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/io.h"

/* A client of a very large tray must keep descriptors for itself; the first GPUs are enough to block a reset
 * of the tray. */
#define ATTACHED_MAX 256

static struct {
        pthread_mutex_t lock;
        unsigned references;
        uint64_t number; /* of the session, and part of its handles: those of an earlier one are refused */
        bool attached;
        Tray tray;
        int nodes[ATTACHED_MAX];
        uint32_t n_nodes;
        Holders holders;
        usec_t holders_usec;
} session = { .lock = PTHREAD_MUTEX_INITIALIZER, .tray = { .lock_fd = -1 } };

static void session_lock(void) {
        (void) pthread_mutex_lock(&session.lock);
}

static void session_unlock(void) {
        (void) pthread_mutex_unlock(&session.lock);
}

/* A process that forks in the middle of another thread's call must not find the lock taken for ever. */
__attribute__((constructor)) static void session_prepare_fork(void) {
        (void) pthread_atfork(session_lock, session_unlock, session_unlock);
}

static void unlock_ptr(bool *locked) {
        if (*locked)
                session_unlock();
}

/* With the lock held: maps the tray again if it changed. */
static NvmlReturn session_refresh(void) {
        Tray fresh;

        if (tray_is_current(&session.tray))
                return NVML_OK;
        if (tray_open(&fresh) < 0)
                return session.tray.header ? NVML_UNKNOWN : NVML_DRIVER_NOT_LOADED;
        tray_done(&session.tray);
        session.tray = fresh;
        return NVML_OK;
}

/* Where the driver hangs, so do we, and outside of the lock: a fork must still be possible. */
static void hang_here(void) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;

        if (tray_open(&tray) >= 0)
                tray_hang(&tray);
}

/* Handles are numbers that look like pointers: session and index, never followed. */
static NvmlDevice handle_make(uint32_t index) {
        return (NvmlDevice) (uintptr_t) (session.number << 16 | (index + 1));
}

static bool handle_read(NvmlDevice device, uint32_t *ret_index) {
        uintptr_t value = (uintptr_t) device;
        uint64_t index = value & 0xffff;

        if (value >> 16 != session.number || index == 0 || index > session.tray.header->n_gpus)
                return false;
        *ret_index = (uint32_t) index - 1;
        return true;
}

static NvmlReturn view_fill(NvmlDevice device, bool complete, View *ret) {
        uint32_t index;

        if (device && handle_read(device, &index)) {
                ret->gpu = session.tray.gpus[index];
                tray_gpu_at(&session.tray.header[0], &ret->gpu, ret->now);
                ret->recovery_action = tray_gpu_recovery_action(&session.tray, &ret->gpu);
                return complete ? VIEW_READY : NVML_INVALID_ARGUMENT;
        }
        return NVML_INVALID_ARGUMENT;
}

/* What all calls begin with. Fills in header and time. */
static NvmlReturn session_enter(bool *ret_locked, View *ret) {
        NvmlReturn r;

        session_lock();
        *ret_locked = true;
        if (session.references == 0)
                return NVML_UNINITIALIZED;
        r = session_refresh();
        if (r != NVML_OK)
                return r;

        if (session.tray.header->hang != HANG_OFF) {
                session_unlock();
                hang_here();
                session_lock();
                /* Others may have ended the session meanwhile. */
                if (session.references == 0)
                        return NVML_UNINITIALIZED;
                r = session_refresh();
                if (r != NVML_OK)
                        return r;
        }

        ret->header = *session.tray.header;
        ret->now = now_monotonic_usec();
        return VIEW_READY;
}

NvmlReturn view_open_tray(bool complete, View *ret) {
        CLEANUP(unlock_ptr) bool locked = false;
        NvmlReturn r;

        r = session_enter(&locked, ret);
        if (r != VIEW_READY)
                return r;
        return complete ? VIEW_READY : NVML_INVALID_ARGUMENT;
}

NvmlReturn view_open_identity(NvmlDevice device, bool complete, View *ret) {
        CLEANUP(unlock_ptr) bool locked = false;
        NvmlReturn r;

        r = session_enter(&locked, ret);
        if (r != VIEW_READY)
                return r;
        return view_fill(device, complete, ret);
}

NvmlReturn view_open(NvmlDevice device, bool complete, View *ret) {
        NvmlReturn r;

        r = view_open_identity(device, complete, ret);
        if (r != VIEW_READY)
                return r;
        if (ret->gpu.lost)
                return NVML_GPU_IS_LOST;
        if (tray_gpu_is_resetting(&ret->gpu, ret->now))
                return NVML_RESET_REQUIRED;
        return ret->header.blank ? NVML_OK : VIEW_READY;
}

NvmlReturn copy_text(const char *text, char *buffer, unsigned length) {
        size_t size = strlen(text) + 1;

        if (size > length)
                return NVML_INSUFFICIENT_SIZE;
        memcpy(buffer, text, size);
        return NVML_OK;
}

/* Whether the caller could attach the GPU: a container may not have all nodes. A real node without a driver
 * behind it (major 195) cannot be opened by anybody, and counts as there. */
static bool gpu_is_permitted(const TrayGpu *gpu) {
        char path[192];

        return !session.attached || tray_node_path(session.tray.header, gpu, path, sizeof path) < 0 ||
                        access(path, R_OK | W_OK) >= 0;
}

NvmlReturn session_find(const GpuId *id, NvmlDevice *ret) {
        CLEANUP(unlock_ptr) bool locked = false;
        const TrayGpu *gpu;
        NvmlReturn r;
        View view;

        r = session_enter(&locked, &view);
        if (r != VIEW_READY)
                return r;
        if (!id || !ret)
                return NVML_INVALID_ARGUMENT;

        gpu = tray_find_gpu(&session.tray, id);
        if (!gpu)
                return id->kind == GPU_ID_INDEX ? NVML_INVALID_ARGUMENT : NVML_NOT_FOUND;
        if (gpu->lost)
                return NVML_GPU_IS_LOST;
        if (!gpu_is_permitted(gpu))
                return NVML_NO_PERMISSION;
        *ret = handle_make(gpu->index);
        return NVML_OK;
}

static int holders_copy(const Holders *holders, Holders *ret) {
        Holders copy = { .n = holders->n };

        copy.items = calloc(holders->n + 1, sizeof(Holder));
        if (!copy.items)
                return -ENOMEM;
        if (holders->n > 0)
                memcpy(copy.items, holders->items, holders->n * sizeof(Holder));
        *ret = copy;
        return 0;
}

NvmlReturn session_holders(Holders *ret) {
        CLEANUP(unlock_ptr) bool locked = false;
        NvmlReturn r;
        View view;

        r = session_enter(&locked, &view);
        if (r != VIEW_READY)
                return r;

        if (session.holders_usec == 0 || view.now - session.holders_usec > USEC_PER_SEC) {
                Holders fresh;

                if (holders_find(&session.tray, NULL, &fresh) < 0)
                        return NVML_UNKNOWN;
                holders_done(&session.holders);
                session.holders = fresh;
                session.holders_usec = view.now;
        }
        return holders_copy(&session.holders, ret) < 0 ? NVML_NO_MEMORY : NVML_OK;
}

static void session_attach(void) {
        const Tray *tray = &session.tray;

        session.attached = true;
        for (uint32_t i = 0; i < tray->header->n_gpus && session.n_nodes < ATTACHED_MAX; i++) {
                char path[192];
                int fd;

                if (tray->gpus[i].lost ||
                                tray_node_path(tray->header, &tray->gpus[i], path, sizeof path) < 0)
                        continue;
                fd = open(path, HOLDER_NVML_FLAGS);
                if (fd >= 0)
                        session.nodes[session.n_nodes++] = fd;
        }
}

/* An injected failure of nvmlInit, for as often as it was asked for. Only root can count it down. */
static NvmlReturn injected_init_error(const Tray *tray) {
        CLEANUP(tray_done) Tray edit = TRAY_INIT;
        NvmlReturn error = tray->header->init_error;

        if (error == NVML_OK || tray->header->init_error_left == TRAY_COUNT_UNLIMITED)
                return error;
        if (tray_edit(&edit) < 0)
                return error;
        if (edit.header->init_error_left > 0 && --edit.header->init_error_left == 0)
                edit.header->init_error = NVML_OK;
        (void) tray_commit(&edit); /* if that fails, the next one fails once more */
        return error;
}

NvmlReturn session_start(unsigned flags) {
        CLEANUP(unlock_ptr) bool locked = false;
        NvmlReturn r;

        if ((flags & ~(unsigned) (NVML_INIT_NO_GPUS | NVML_INIT_NO_ATTACH | 4)) != 0)
                return NVML_INVALID_ARGUMENT;

        hang_here();
        session_lock();
        locked = true;
        r = session_refresh();
        if (r != NVML_OK)
                return r;
        if (session.references == 0) {
                r = injected_init_error(&session.tray);
                if (r != NVML_OK)
                        return r;
                session.number = (session.number + 1) & 0xffffffff;
                session.attached = false;
        }

        session.references++;
        if (!session.attached && !(flags & NVML_INIT_NO_ATTACH))
                session_attach();
        return NVML_OK;
}

NvmlReturn session_stop(void) {
        CLEANUP(unlock_ptr) bool locked = false;

        session_lock();
        locked = true;
        if (session.references == 0)
                return NVML_UNINITIALIZED;
        if (--session.references > 0)
                return NVML_OK;

        while (session.n_nodes > 0)
                fd_close(&session.nodes[--session.n_nodes]);
        tray_done(&session.tray);
        holders_done(&session.holders);
        session.holders_usec = 0;
        return NVML_OK;
}
