/* SPDX-License-Identifier: MIT */
/* To the vendor and back: what goes out next, and what its reply means to the GPUs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"

static void manager_take_reply(Manager *manager, VendorReply *reply, Now now);

/* What the GPUs and requests want, in the order in which it goes out: the looks before a reset first, so
 * that resets that come together go out together; the looks after one last, since they come back by
 * themselves. */
typedef struct Wants {
        bool probe, reset, holders, settle;
        bool all; /* a probe has to cover the tray */
} Wants;

static Wants manager_wants(const Manager *manager, usec_t now_usec) {
        Wants wants = {};
        VendorOperation operation;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                const Handover *handover = manager->inventory.by_index[i]->handover;

                if (!handover || handover_wants(handover, now_usec, &operation) <= 0)
                        continue;
                wants.reset |= operation == VENDOR_RESET;
                wants.holders |= operation == VENDOR_HOLDERS;
                wants.probe |= handover->phase == HANDOVER_PROBE;
                wants.settle |= handover->phase == HANDOVER_SETTLE;
        }

        for (const Request *request = manager->first; request; request = request->following) {
                wants.all |= request->needs_probe;
                wants.holders |= !request->needs_probe && request->needs_holders;
        }
        return wants;
}

/* None by timer while the driver would have to be woken for it: persistence mode keeps it awake. A driver
 * that did not answer is asked again, since asking does not load it (its module is looked for first). */
static bool manager_poll_is_due(Manager *manager, usec_t now_usec) {
        bool awake = manager->driver_state != DRIVER_OK || manager->inventory.n == 0;

        if (now_usec < manager->poll_at_usec)
                return false;
        for (size_t i = 0; i < manager->inventory.n && !awake; i++)
                awake = manager->inventory.by_index[i]->present &&
                                manager->inventory.by_index[i]->sample.persistence;
        manager->poll_at_usec = usec_add(now_usec, manager->config->driver.poll_interval_usec);
        return awake;
}

/* 1: that one · 0: nothing. */
static int manager_choose(Manager *manager, usec_t now_usec, VendorOperation *ret, bool *ret_all) {
        Wants wants = manager_wants(manager, now_usec);

        wants.all |= manager_poll_is_due(manager, now_usec) || manager->look_around;
        *ret_all = wants.all;
        if (wants.probe)
                *ret = VENDOR_PROBE;
        else if (wants.reset)
                *ret = VENDOR_RESET;
        else if (wants.holders)
                *ret = VENDOR_HOLDERS;
        else if (wants.settle || wants.all)
                *ret = VENDOR_PROBE;
        else
                return 0;
        return 1;
}

/* Marks the GPUs that the operation is about, and sends their handovers on their way. */
static void manager_mark_asked(Manager *manager, VendorOperation operation, bool all, usec_t now_usec) {
        VendorOperation wanted;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                gpu->asked = operation == VENDOR_PROBE && all;
                if (!gpu->handover || handover_wants(gpu->handover, now_usec, &wanted) <= 0 ||
                                wanted != operation)
                        continue;
                gpu->asked = true;
                handover_go(gpu->handover, now_usec);
        }

        for (Request *request = manager->first; request; request = request->following) {
                request->riding = operation == VENDOR_PROBE ? request->needs_probe && all
                                                            : operation == VENDOR_HOLDERS &&
                                                !request->needs_probe && request->needs_holders;
                for (size_t i = 0; request->riding && i < request->n_items; i++) {
                        Gpu *gpu = request->items[i].gpu;

                        /* one that is gone would fail the search for the others */
                        gpu->asked |= gpu->present || !gpu->probed;
                }
        }
}

/* The act is about to happen: what was clean is so no more, on file first. 0 · -errno. */
static int manager_begin_resets(Manager *manager, Now now) {
        int r;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (gpu->asked && gpu->record == GPU_STATE_CLEAN) {
                        gpu->record = GPU_STATE_DIRTY;
                        gpu_set_reason(gpu, "its reset did not end");
                        manager->state_stale = true;
                }
        }
        r = manager_write_state(manager);
        if (r < 0)
                return r;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (!gpu->asked || gpu->handover->announced)
                        continue;
                gpu->handover->announced = true;
                gpu->state_since_realtime_usec = now.realtime_usec;
                gpu_set_reason(gpu, "%s", "");
                gpu->changes |= GPU_CHANGE_STATE;
                manager_tell(manager, on_reset_started, gpu, gpu->handover->tenant);
        }
        return 0;
}

/* The UUIDs of the GPUs that were asked for, borrowed from them. -ENOMEM · 0. */
static int manager_collect_uuids(const Manager *manager, char ***ret) {
        char **uuids;
        size_t n = 0;

        uuids = calloc(manager->inventory.n + 1, sizeof *uuids);
        if (!uuids)
                return -ENOMEM;
        for (size_t i = 0; i < manager->inventory.n; i++)
                if (manager->inventory.by_index[i]->asked)
                        uuids[n++] = manager->inventory.by_index[i]->sample.uuid;
        *ret = uuids;
        return 0;
}

static void manager_set_driver(Manager *manager, DriverState state, const char *error) {
        if (manager->driver_state == state && streq(manager->driver_error, error))
                return;
        manager->driver_state = state;
        (void) snprintf(manager->driver_error, sizeof manager->driver_error, "%s", error);
        manager->changes |= MANAGER_CHANGE_DRIVER;
}

/* 1: it is out · 0: it is about no GPU, and so answered · -errno with manager_error(). */
static int manager_start(Manager *manager, VendorOperation operation, bool all, Now now) {
        CLEANUP(free_ptr) char **uuids = NULL;
        VendorRequest request = { .operation = operation };
        int r;

        if (!(operation == VENDOR_PROBE && all)) {
                r = manager_collect_uuids(manager, &uuids);
                if (r < 0)
                        return manager_fail(manager, r, "Out of memory");
                if (!uuids[0]) /* which would mean all of them */
                        return 0;
        }
        if (operation == VENDOR_RESET) {
                r = manager_begin_resets(manager, now);
                if (r < 0)
                        return r;
        }
        if (operation == VENDOR_PROBE)
                manager->probes++;

        request.uuids = uuids;
        request.timeout_usec = operation == VENDOR_RESET ? manager->config->driver.reset_timeout_usec
                                                         : manager->config->driver.probe_timeout_usec;
        r = manager->vendor.start(&request, manager->vendor.userdata);
        if (r < 0) {
                (void) manager_fail(manager, r, "The driver service cannot be asked: %s", strerror(-r));
                manager_set_driver(manager, DRIVER_FAILED, manager->error);
                return r;
        }
        return 1;
}

void manager_dispatch(Manager *manager, Now now) {
        VendorOperation operation;
        bool all;
        int r;

        while (!manager->out && manager_choose(manager, now.monotonic_usec, &operation, &all) > 0) {
                VendorReply reply = {
                        .operation = operation, .driver_state = DRIVER_OK, .driver_error = ""
                };

                manager_mark_asked(manager, operation, all, now.monotonic_usec);
                manager->out = true;
                manager->out_operation = operation;
                manager->out_all = operation == VENDOR_PROBE && all;
                manager->look_around &= !manager->out_all;
                r = manager_start(manager, operation, all, now);
                if (r > 0) {
                        manager_commit(manager, now);
                        continue;
                }
                if (r < 0) {
                        reply.driver_state = DRIVER_FAILED;
                        reply.driver_error = manager->error;
                }
                manager_take_reply(manager, &reply, now);
        }
}

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
                gpu->seen = manager->probes;
                if (manager->inventory.n > known)
                        manager_tell(manager, on_gpu_added, gpu);
        }

        for (size_t i = 0; i < manager->inventory.n && reply->complete; i++)
                if (manager->inventory.by_index[i]->seen != manager->probes &&
                                gpu_set_missing(manager->inventory.by_index[i], realtime_usec) > 0)
                        manager->state_stale = true;
        inventory_sort(&manager->inventory);
}

/* A GPU that did not show up is gone only by the list of the whole tray: the driver service answers nothing
 * at all when one of those asked for is not there. */
static void manager_reply_probe(Manager *manager, const VendorReply *reply, Now now) {
        if (reply->driver_state == DRIVER_OK)
                manager_take_samples(manager, reply, now.realtime_usec);
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];
                bool listed = gpu->seen == manager->probes;

                if (!gpu->handover || !gpu->handover->out)
                        continue;
                if (reply->driver_state == DRIVER_OK && !listed && !manager->out_all) {
                        handover_ask_again(gpu->handover);
                        manager->look_around = true;
                } else
                        handover_take_probe(gpu->handover, reply->driver_state, reply->driver_error, listed,
                                        now.monotonic_usec);
        }
}

static void manager_reply_reset(Manager *manager, const VendorReply *reply, Now now) {
        for (size_t i = 0; i < reply->n_resets && reply->driver_state == DRIVER_OK; i++) {
                Gpu *gpu = inventory_by_uuid(&manager->inventory, reply->resets[i].uuid);

                if (gpu && gpu->handover && gpu->handover->out)
                        handover_take_reset(
                                        gpu->handover, DRIVER_OK, "", reply->resets + i, now.monotonic_usec);
        }
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (gpu->handover && gpu->handover->out) /* not a word about this one */
                        handover_take_reset(gpu->handover, reply->driver_state, reply->driver_error, NULL,
                                        now.monotonic_usec);
        }
}

static int compare_holders(const void *a, const void *b) {
        const GpuHolder *x = a, *y = b;
        int order = strcmp(x->uuid, y->uuid);

        return order != 0 ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Holders and GPUs in the same order, so that each GPU finds its own at one go. 0 · -ENOMEM, and some may
 * have kept what they had. */
static int manager_take_holders(Manager *manager, GpuHolder *holders, size_t n, usec_t realtime_usec) {
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
                if (r > 0)
                        manager->state_stale = true;
                else if (r < 0)
                        result = r;
                from = to;
        }
        return result;
}

/* Without memory to note them in, the holders are not known, whatever the driver said. */
static void manager_reply_holders(Manager *manager, VendorReply *reply, Now now) {
        CLEANUP(free_ptr) GpuHolder *holders = NULL;

        if (reply->driver_state == DRIVER_OK) {
                holders = reallocarray(NULL, reply->n_holders + 1, sizeof *holders);
                for (size_t i = 0; holders && i < reply->n_holders; i++)
                        holders[i] = reply->holders[i];
                if (!holders ||
                                manager_take_holders(manager, holders, reply->n_holders, now.realtime_usec) <
                                                0) {
                        reply->driver_state = DRIVER_FAILED;
                        reply->driver_error = "Out of memory";
                }
        }
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (gpu->handover && gpu->handover->out)
                        handover_take_holders(gpu->handover, reply->driver_state, reply->driver_error,
                                        now.monotonic_usec);
        }
}

/* What a reply means to the GPUs and requests; it is changed where we could not take it in. */
static void manager_take_reply(Manager *manager, VendorReply *reply, Now now) {
        manager->out = false;
        switch (reply->operation) {
        case VENDOR_PROBE: manager_reply_probe(manager, reply, now); break;
        case VENDOR_RESET: manager_reply_reset(manager, reply, now); break;
        case VENDOR_HOLDERS: manager_reply_holders(manager, reply, now); break;
        }

        manager_serve_requests(manager, reply);
        manager_commit(manager, now);
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
