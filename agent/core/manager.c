/* SPDX-License-Identifier: MIT */
#include "agent/core/manager.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"
#include "agent/core/recovery.h"

/* A file that cannot be read is as good as none: every GPU is unknown then. One that cannot be written may
 * lack a use that was seen and could not be written down: what it calls clean is unknown, too. */
static void manager_read_state(Manager *manager) {
        int r;

        r = state_read(manager->state_path, &manager->inventory, &manager->tray);
        if (r < 0)
                (void) manager_fail(manager, r,
                                "%s cannot be read (%s): every GPU is unknown, and its leases are forgotten",
                                manager->state_path, strerror(-r));
        if (r <= 0)
                return;
        manager->state_stale = true;
        if (manager_write_state(manager) >= 0)
                return;
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (gpu->record != GPU_STATE_CLEAN)
                        continue;
                gpu->record = GPU_STATE_UNKNOWN;
                gpu_set_reason(gpu, "%s", manager->error);
        }
}

int manager_new(const Config *config, const VendorOps *vendor, const char *state_path, Manager **ret) {
        Manager *manager;

        manager = calloc(1, sizeof *manager);
        if (!manager)
                return -ENOMEM;
        manager->state_path = strdup(state_path);
        if (!manager->state_path) {
                free(manager);
                return -ENOMEM;
        }
        manager->config = config;
        manager->vendor = *vendor;
        manager_read_state(manager);
        *ret = manager;
        return 0;
}

Manager* manager_free(Manager *manager) {
        if (!manager)
                return NULL;

        while (manager->first) {
                Request *request = manager->first;

                manager->first = request->following;
                (void) request_free(request);
        }
        inventory_done(&manager->inventory);
        free(manager->state_path);
        free(manager);
        return NULL;
}

int manager_add_observer(Manager *manager, const ManagerObserver *observer) {
        if (manager->n_observers == OBSERVERS_MAX)
                return -ENOSPC;

        manager->observers[manager->n_observers++] = *observer;
        return 0;
}

void manager_set_config(Manager *manager, const Config *config) {
        manager->config = config;
        manager->poll_at_usec = 0; /* the interval may be another, and so may what is polled */
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (gpu->handover)
                        gpu->handover->config = config;
                if (gpu->next)
                        gpu->next->config = config;
                if (!config->fabric.query[0] && gpu->told.id != UNKNOWN_U32)
                        gpu_forget_fabric(gpu);
        }
        manager_tell(manager, on_manager_changed, MANAGER_CHANGE_CONFIG);
}

void manager_stop(Manager *manager) {
        manager->stopping = true;
}

bool manager_has_no_handover(const Manager *manager) {
        for (size_t i = 0; i < manager->inventory.n; i++)
                if (manager->inventory.by_index[i]->handover)
                        return false;
        return true;
}

bool manager_is_at_rest(const Manager *manager) {
        return manager_has_no_handover(manager) && !manager->tray.quiesced;
}

/* What was stopped for a handover is started again, or was tried to, before an agent goes; the next one
 * tries on. */
bool manager_is_idle(const Manager *manager) {
        return manager_has_no_handover(manager) &&
                        (!manager->tray.quiesced || manager->resume_tried || manager->tray.maintenance);
}

int manager_fail(Manager *manager, int error, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(manager->error, sizeof manager->error, format, arguments);
        va_end(arguments);
        return error;
}

const char* manager_error(const Manager *manager) {
        return manager->error;
}

int manager_write_state(Manager *manager) {
        int r;

        if (!manager->state_stale)
                return 0;
        r = state_write(manager->state_path, &manager->inventory, &manager->tray);
        if (r < 0) {
                /* The old file may call a GPU clean that is so no more; without a file all are unknown. */
                (void) unlink(manager->state_path);
                return manager_fail(manager, r, "the state cannot be written to %s: %s", manager->state_path,
                                strerror(-r));
        }
        manager->state_stale = false;
        return 0;
}

void manager_tick(Manager *manager, Now now) {
        manager_expire_requests(manager, now);
        manager_commit(manager, now);
        manager_dispatch(manager, now);
}

usec_t manager_next_elapse(const Manager *manager) {
        usec_t next = manager->out || manager->tray.maintenance ? USEC_INFINITY : manager->poll_at_usec;

        for (const Request *request = manager->first; request; request = request->following)
                if (request->deadline_usec < next)
                        next = request->deadline_usec;
        if (manager->out)
                return next; /* what the GPUs want has to wait for the reply */
        if (manager->tray.quiesced && !manager->tray.maintenance && manager_has_no_handover(manager) &&
                        manager->resume_at_usec < next)
                next = manager->resume_at_usec;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                const Handover *handover = manager->inventory.by_index[i]->handover;

                if (handover && !handover->out && handover->not_before_usec < next)
                        next = handover->not_before_usec;
        }
        return next;
}

int manager_find(Manager *manager, const char *id, Gpu **ret) {
        char shown[64];
        int r;

        r = inventory_find(&manager->inventory, id, ret);
        if (r >= 0)
                return 0;

        text_escape(id, shown, sizeof shown);
        if (r == -EINVAL)
                return manager_fail(manager, r, "'%s' is no GPU id: give an index, a UUID or a PCI bus id",
                                shown);
        return manager_fail(manager, r, "There is no GPU %s on this tray", shown);
}

Gpu* manager_gpu_by_uuid(const Manager *manager, const char *uuid) {
        return inventory_by_uuid(&manager->inventory, uuid);
}

Gpu *const *manager_gpus(const Manager *manager, size_t *ret_n) {
        *ret_n = manager->inventory.n;
        return manager->inventory.by_index;
}

static void gpu_take_xid(Gpu *gpu, uint32_t xid, usec_t realtime_usec, bool *state_stale) {
        Cure cure = xid_cure(xid);
        char why[GPU_REASON_SIZE];

        if (cure == CURE_NONE)
                return;
        xid_explain(xid, why, sizeof why);
        *state_stale |= gpu_soil(gpu, cure == CURE_REBOOT ? GPU_STATE_QUARANTINED : GPU_STATE_DIRTY, why,
                                        realtime_usec) > 0;
        if (gpu->handover)
                handover_note_xid(gpu->handover, xid);
}

void manager_set_xid(Manager *manager, const char *bus_id, uint32_t xid, Now now) {
        char normal[GPU_BUS_ID_SIZE];
        Gpu *gpu;

        if (bus_id_parse(bus_id, normal) < 0 || inventory_find(&manager->inventory, normal, &gpu) < 0)
                return;
        gpu->last_xid = xid;
        gpu->changes |= GPU_CHANGE_XID;
        gpu_take_xid(gpu, xid, now.realtime_usec, &manager->state_stale);
        manager->look_around |= xid_calls_for_look(xid);
        manager_commit(manager, now);
        manager_dispatch(manager, now);
}

const char* manager_maintenance(const Manager *manager) {
        return manager->tray.maintenance ? manager->tray.maintenance_reason : NULL;
}

DriverState manager_driver_state(const Manager *manager) {
        return manager->driver_state;
}

const char* manager_driver_error(const Manager *manager) {
        return manager->driver_error;
}

const char* manager_driver_version(const Manager *manager) {
        return manager->driver_version;
}

const Config* manager_config(const Manager *manager) {
        return manager->config;
}

uint32_t manager_resets_pending(const Manager *manager) {
        uint32_t n = 0;

        for (size_t i = 0; i < manager->inventory.n; i++)
                n += gpu_reset_pending(manager->inventory.by_index[i]);
        return n;
}

uint32_t manager_quarantined(const Manager *manager) {
        uint32_t n = 0;

        for (size_t i = 0; i < manager->inventory.n; i++)
                n += gpu_state(manager->inventory.by_index[i]) == GPU_STATE_QUARANTINED;
        return n;
}
