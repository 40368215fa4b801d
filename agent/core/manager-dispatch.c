/* SPDX-License-Identifier: MIT */
/* To the vendor: what goes out next. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"

/* What the GPUs and requests want. A handover's look before its reset is kept apart from the others, which
 * come back by themselves. */
typedef struct Wants {
        bool operation[_VENDOR_OPERATION_MAX];
        bool first_look;
        bool all; /* a probe has to cover the tray */
} Wants;

/* What goes out first: the looks before a reset, so that resets that come together go out together; the
 * looks after one come last. */
static const VendorOperation operation_order[] = { VENDOR_RESET, VENDOR_LEFTOVERS, VENDOR_QUIESCE,
        VENDOR_HOLDERS, VENDOR_CHECKS, VENDOR_TENANTS, VENDOR_RESUME, VENDOR_PROBE };

int request_wants(const Request *request, VendorOperation *ret) {
        if (request->needs_probe)
                *ret = VENDOR_PROBE;
        else if (request->needs_holders)
                *ret = VENDOR_HOLDERS;
        else if (request->needs_checks)
                *ret = VENDOR_CHECKS;
        else if (request->needs_tenants)
                *ret = VENDOR_TENANTS;
        else
                return 0;
        return 1;
}

static Wants manager_wants(const Manager *manager, usec_t now_usec) {
        VendorOperation operation;
        Wants wants = {};

        for (size_t i = 0; i < manager->inventory.n; i++) {
                const Handover *handover = manager->inventory.by_index[i]->handover;

                if (!handover || handover_wants(handover, now_usec, &operation) <= 0)
                        continue;
                wants.operation[operation] = true;
                wants.first_look |= handover->phase == HANDOVER_PROBE;
        }

        for (const Request *request = manager->first; request; request = request->following)
                if (request_wants(request, &operation) > 0) {
                        wants.operation[operation] = true;
                        wants.all |= operation == VENDOR_PROBE;
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

/* What nobody asks for and time brings: the poll, signs of the leaseholders, and monitoring that waits to be
 * started again. None of it during maintenance. */
static void manager_add_own_wants(Manager *manager, usec_t now_usec, Wants *wants) {
        if (manager->tray.maintenance)
                return;
        if (now_usec >= manager->poll_at_usec)
                manager->look_for_tenants = manager_has_leases(manager);
        manager->look_around |=
                        manager_poll_is_due(manager, now_usec); /* also when something else goes first */
        wants->all |= manager->look_around;
        /* Not twice before a probe that waits: where pods come and go all the time there is always a
         * reason. */
        wants->operation[VENDOR_TENANTS] |= manager->look_for_tenants && manager_has_leases(manager) &&
                        !(manager->out_operation == VENDOR_TENANTS &&
                                        (wants->all || wants->operation[VENDOR_PROBE]));
        wants->operation[VENDOR_RESUME] = manager->tray.quiesced && manager_has_no_handover(manager) &&
                        now_usec >= manager->resume_at_usec;
}

/* 1: that one · 0: nothing. */
static int manager_choose(Manager *manager, usec_t now_usec, VendorOperation *ret, bool *ret_all) {
        Wants wants = manager_wants(manager, now_usec);

        manager_add_own_wants(manager, now_usec, &wants);
        wants.operation[VENDOR_PROBE] |= wants.all;
        *ret_all = wants.all;
        if (wants.first_look) {
                *ret = VENDOR_PROBE;
                return 1;
        }
        for (size_t i = 0; i < ELEMENTSOF(operation_order); i++)
                if (wants.operation[operation_order[i]]) {
                        *ret = operation_order[i];
                        return 1;
                }
        return 0;
}

static void gpu_mark_for_request(Gpu *gpu, VendorOperation operation) {
        /* one that is gone would fail the search for the others */
        if (operation == VENDOR_PROBE || operation == VENDOR_HOLDERS)
                gpu->asked |= gpu->present || !gpu->probed;
        /* a check on a GPU that somebody uses would disturb */
        else if (operation == VENDOR_CHECKS)
                gpu->asked |= gpu_state(gpu) == GPU_STATE_CLEAN && gpu->sample.checks;
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
                request->riding = request_wants(request, &wanted) > 0 && wanted == operation &&
                                (operation != VENDOR_PROBE || all);
                for (size_t i = 0; request->riding && i < request->n_items; i++)
                        gpu_mark_for_request(request->items[i].gpu, operation);
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

/* Monitoring is about to be stopped: on file first, so that whoever comes after us starts it again. 0 ·
 * -errno. */
static int manager_begin_quiesce(Manager *manager) {
        if (manager->tray.quiesced)
                return 0;
        manager->tray.quiesced = true;
        manager->resume_at_usec = 0;
        manager->resume_tried = false;
        manager->state_stale = true;
        return manager_write_state(manager);
}

/* What has to be on file before the act. 0 · -errno with manager_error(). */
static int manager_begin(Manager *manager, VendorOperation operation, Now now) {
        switch (operation) {
        case VENDOR_RESET: return manager_begin_resets(manager, now);
        case VENDOR_QUIESCE: return manager_begin_quiesce(manager);
        case VENDOR_RESUME:
                manager->resume_at_usec =
                                usec_add(now.monotonic_usec, manager->config->driver.poll_interval_usec);
                return 0;
        case VENDOR_PROBE:
        case VENDOR_HOLDERS:
        case VENDOR_LEFTOVERS:
        case VENDOR_CHECKS:
        case VENDOR_TENANTS:
        case _VENDOR_OPERATION_MAX: break;
        }
        return 0;
}

/* The UUIDs of the GPUs that were asked for, and beside each the tenant of its handover, borrowed. -ENOMEM ·
 * 0. */
static int manager_collect_gpus(const Manager *manager, char ***ret_uuids, char ***ret_tenants) {
        static char nobody[] = "";
        char **uuids, **tenants;
        size_t n = 0;

        uuids = calloc(manager->inventory.n + 1, sizeof *uuids);
        if (!uuids)
                return -ENOMEM;
        tenants = calloc(manager->inventory.n + 1, sizeof *tenants);
        if (!tenants) {
                free(uuids);
                return -ENOMEM;
        }
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (!gpu->asked)
                        continue;
                tenants[n] = gpu->handover ? gpu->handover->tenant : nobody;
                uuids[n++] = gpu->sample.uuid;
        }
        *ret_uuids = uuids;
        *ret_tenants = tenants;
        return 0;
}

/* What the operation is about. 1 · 0: it is about nothing · -ENOMEM. */
static int manager_collect(const Manager *manager, VendorOperation operation, bool all, char ***ret_uuids,
                char ***ret_tenants) {
        int r;

        if ((operation == VENDOR_PROBE && all) || operation == VENDOR_QUIESCE || operation == VENDOR_RESUME)
                return 1;
        if (operation == VENDOR_TENANTS) {
                r = manager_collect_tenants(manager, ret_tenants);
                return r < 0 ? r : **ret_tenants != NULL;
        }
        r = manager_collect_gpus(manager, ret_uuids, ret_tenants);
        return r < 0 ? r : **ret_uuids != NULL; /* an empty list would mean all of them */
}

/* How many checks a site may have that each take all of their time. */
#define CHECKS_OF_A_GPU 16U

static usec_t manager_vendor_timeout(const Manager *manager, VendorOperation operation, char *const *uuids) {
        const Config *config = manager->config;

        switch (operation) {
        case VENDOR_RESET: return config->driver.reset_timeout_usec;
        /* TERM, the grace, KILL, and a search before and after */
        case VENDOR_LEFTOVERS:
                return usec_add(config->handover.kill_grace_usec, 2 * config->driver.probe_timeout_usec);
        /* Each check has its own time. This is the end of all of them, which comes only where the driver
         * hangs. */
        case VENDOR_CHECKS:
                return usec_add(config->driver.probe_timeout_usec,
                                strv_length(uuids) * CHECKS_OF_A_GPU * config->handover.check_timeout_usec);
        case VENDOR_PROBE:
        case VENDOR_HOLDERS:
        case VENDOR_QUIESCE:
        case VENDOR_RESUME:
        case VENDOR_TENANTS:
        case _VENDOR_OPERATION_MAX: break;
        }
        return config->driver.probe_timeout_usec;
}

/* 1: it is out · 0: it is about nothing, and so answered · -errno with manager_error(). */
static int manager_start(Manager *manager, VendorOperation operation, bool all, Now now) {
        CLEANUP(free_ptr) char **uuids = NULL, **tenants = NULL;
        VendorRequest request = { .operation = operation };
        int r;

        r = manager_collect(manager, operation, all, &uuids, &tenants);
        if (r < 0)
                return manager_fail(manager, r, "Out of memory");
        if (r == 0)
                return 0;
        r = manager_begin(manager, operation, now);
        if (r < 0)
                return r;

        request.uuids = uuids;
        request.tenants = tenants;
        request.timeout_usec = manager_vendor_timeout(manager, operation, uuids);
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
                        .operation = operation,
                        .driver_state = DRIVER_OK,
                        .driver_error = "",
                        .failure = "",
                };

                manager_mark_asked(manager, operation, all, now.monotonic_usec);
                manager->out = true;
                manager->out_operation = operation;
                manager->out_number++;
                manager->out_since_usec = now.monotonic_usec;
                manager->out_all = operation == VENDOR_PROBE && all;
                manager->look_around &= !manager->out_all;
                manager->look_for_tenants &= operation != VENDOR_TENANTS;
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
