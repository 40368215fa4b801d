/* SPDX-License-Identifier: MIT */
/* Back from the vendor: what a reply means to the GPUs and requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"

static Gpu* manager_get_or_add(Manager *manager, const char *uuid) {
        Gpu *gpu = inventory_by_uuid(&manager->inventory, uuid);
        char normal[GPU_UUID_SIZE];

        if (gpu)
                return gpu;
        if (gpu_uuid_parse(uuid, normal) < 0 || !streq(normal, uuid) || gpu_new(uuid, &gpu) < 0)
                return NULL;
        gpu_set_reason(gpu, "not reset in this boot");
        if (inventory_add(&manager->inventory, gpu) < 0)
                return gpu_free(gpu);
        return gpu;
}

static void manager_take_samples(Manager *manager, const VendorReply *reply, usec_t realtime_usec) {
        for (size_t i = 0; i < reply->n_samples; i++) {
                size_t known = manager->inventory.n;
                Gpu *gpu = manager_get_or_add(manager, reply->samples[i].uuid);

                if (!gpu)
                        continue; /* a name that no GPU has, or no memory: not known, so not clean */
                if (gpu_set_sample(gpu, reply->samples + i, realtime_usec) > 0)
                        manager->state_stale = true;
                gpu->seen = manager->out_number;
                if (manager->inventory.n > known)
                        manager_tell(manager, on_gpu_added, gpu);
        }

        for (size_t i = 0; i < manager->inventory.n && reply->complete; i++)
                if (manager->inventory.by_index[i]->seen != manager->out_number &&
                                gpu_set_missing(manager->inventory.by_index[i], realtime_usec) > 0)
                        manager->state_stale = true;
        inventory_sort(&manager->inventory);
}

/* What a reply about resets or checks says of this GPU; NULL for not a word. */
static const GpuReset* reply_find(const VendorReply *reply, const Gpu *gpu) {
        for (size_t i = 0; i < reply->n_resets; i++)
                if (streq(reply->resets[i].uuid, gpu->sample.uuid))
                        return reply->resets + i;
        return NULL;
}

/* What would not start is tried again at the next poll, for as long as it takes. */
static void manager_take_resume(Manager *manager, const VendorReply *reply) {
        manager->resume_tried = true;
        if (reply->driver_state != DRIVER_OK || reply->failure[0])
                return;
        manager->tray.quiesced = false;
        manager->state_stale = true;
}

/* The looks that came with resets that are done. */
static void manager_take_looks(Manager *manager, const VendorReply *reply, usec_t realtime_usec) {
        for (size_t i = 0; i < reply->n_samples; i++) {
                Gpu *gpu = inventory_by_uuid(&manager->inventory, reply->samples[i].uuid);
                const GpuReset *reset = gpu ? reply_find(reply, gpu) : NULL;

                if (!reset || reset->verdict != RESET_DONE || !gpu->handover || !gpu->handover->out)
                        continue;
                if (gpu_set_sample(gpu, reply->samples + i, realtime_usec) > 0)
                        manager->state_stale = true;
                gpu->seen = manager->out_number;
        }
        inventory_sort(&manager->inventory); /* a look may bring another index */
}

static int compare_holders(const void *a, const void *b) {
        const GpuHolder *x = a, *y = b;
        int order = strcmp(x->uuid, y->uuid);

        return order != 0 ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Holders and GPUs in the same order, so that each GPU finds its own at one go. 0 · -ENOMEM, and some may
 * have kept what they had. */
static int manager_share_out_holders(Manager *manager, GpuHolder *holders, size_t n, usec_t realtime_usec) {
        size_t from = 0;
        int result = 0;

        if (n > 0)
                qsort(holders, n, sizeof *holders, compare_holders);
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_uuid[i];
                size_t to;
                int r;

                while (from < n && strcmp(holders[from].uuid, gpu->sample.uuid) < 0)
                        from++;
                for (to = from; to < n && streq(holders[to].uuid, gpu->sample.uuid); to++)
                        ;
                r = gpu->asked ? gpu_set_holders(gpu, holders + from, to - from, realtime_usec) : 0;
                if (gpu->asked && to > from && gpu->handover)
                        handover_note_holders(gpu->handover);
                if (r > 0)
                        manager->state_stale = true;
                else if (r < 0)
                        result = r;
                from = to;
        }
        return result;
}

/* Without memory to note them in, the holders are not known, whatever the driver said. */
static void manager_take_holders(Manager *manager, VendorReply *reply, usec_t realtime_usec) {
        CLEANUP(free_ptr) GpuHolder *holders = calloc(reply->n_holders + 1, sizeof *holders);

        for (size_t i = 0; holders && i < reply->n_holders; i++)
                holders[i] = reply->holders[i];
        if (!holders || manager_share_out_holders(manager, holders, reply->n_holders, realtime_usec) < 0) {
                reply->driver_state = DRIVER_FAILED;
                reply->driver_error = "Out of memory";
        }
}

/* A GPU that did not show up in a probe is gone only by the list of the whole tray: the driver service
 * answers nothing at all when one of those asked for is not there. */
static void manager_take_handover(Manager *manager, Handover *handover, const VendorReply *reply, Now now) {
        const Gpu *gpu = handover->gpu;
        bool seen = gpu->seen == manager->out_number;

        if (reply->operation == VENDOR_PROBE && reply->driver_state == DRIVER_OK && !seen &&
                        !manager->out_all) {
                handover_ask_again(handover);
                manager->look_around = true;
        } else
                handover_take(handover, reply, reply_find(reply, gpu), seen, now.monotonic_usec);
}

/* First what the reply says of the GPUs, then what that means to those who asked. */
void manager_take_reply(Manager *manager, VendorReply *reply, Now now) {
        bool ok = reply->driver_state == DRIVER_OK;

        manager->out = false;
        switch (reply->operation) {
        case VENDOR_PROBE:
                if (ok)
                        manager_take_samples(manager, reply, now.realtime_usec);
                break;
        case VENDOR_RESET:
                if (ok)
                        manager_take_looks(manager, reply, now.realtime_usec);
                break;
        case VENDOR_HOLDERS:
        case VENDOR_LEFTOVERS:
                if (ok)
                        manager_take_holders(manager, reply, now.realtime_usec);
                break;
        case VENDOR_RESUME: manager_take_resume(manager, reply); break;
        case VENDOR_TENANTS: manager_take_tenants(manager, reply, now); break;
        case VENDOR_QUIESCE:
        case VENDOR_CHECKS:
        case _VENDOR_OPERATION_MAX: break;
        }

        for (size_t i = 0; i < manager->inventory.n; i++) {
                Handover *handover = manager->inventory.by_index[i]->handover;

                if (handover && handover->out)
                        manager_take_handover(manager, handover, reply, now);
        }
        manager_serve_requests(manager, reply, now);
        manager_commit(manager, now);
}

void manager_set_driver(Manager *manager, DriverState state, const char *error) {
        if (manager->driver_state == state && streq(manager->driver_error, error))
                return;
        manager->driver_state = state;
        (void) snprintf(manager->driver_error, sizeof manager->driver_error, "%s", error);
        manager->changes |= MANAGER_CHANGE_DRIVER;
}

/* Whether the reply tells how the driver is: signs of tenants, units and checks have an answer without it,
 * and so has a search for holders, unless it hangs. */
static bool tells_driver_state(const VendorReply *reply) {
        switch (reply->operation) {
        case VENDOR_PROBE:
        case VENDOR_RESET: return true;
        case VENDOR_HOLDERS:
        case VENDOR_LEFTOVERS: return reply->driver_state != DRIVER_OK;
        case VENDOR_QUIESCE:
        case VENDOR_RESUME:
        case VENDOR_CHECKS:
        case VENDOR_TENANTS:
        case _VENDOR_OPERATION_MAX: break;
        }
        return false;
}

void manager_vendor_done(Manager *manager, const VendorReply *reply, Now now) {
        VendorReply taken = *reply;

        /* A probe must not pass for a reset that was asked for. */
        if (!manager->out || taken.operation != manager->out_operation)
                taken = (VendorReply){
                        .operation = manager->out_operation,
                        .driver_state = DRIVER_FAILED,
                        .driver_error = "The driver service answered another question",
                };
        if (!taken.failure)
                taken.failure = "";

        if (tells_driver_state(&taken))
                manager_set_driver(manager, taken.driver_state,
                                taken.driver_state == DRIVER_OK ? "" : taken.driver_error);
        if (taken.operation == VENDOR_PROBE && taken.driver_state == DRIVER_OK &&
                        !streq(manager->driver_version, taken.driver_version)) {
                (void) snprintf(manager->driver_version, sizeof manager->driver_version, "%s",
                                taken.driver_version);
                manager->changes |= MANAGER_CHANGE_DRIVER;
        }

        manager_take_reply(manager, &taken, now);
        manager_dispatch(manager, now);
}
