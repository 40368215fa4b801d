/* SPDX-License-Identifier: MIT */
/* What is asked of the tray: from ids to GPUs, from GPUs to handovers, and what a request learns from a
 * reply. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"
#include "agent/core/verify.h"

/* A repeat of a handover by the same tenant gets the first answer this long, unless the GPU was used
 * since. */
#define REPEAT_USEC (600 * USEC_PER_SEC)

/* The GPUs by their ids, each once, in the order given; all of them for an empty list.
 * 0 · -EINVAL, -ENOENT, -ENOMEM with manager_error(). */
static int manager_resolve(Manager *manager, char *const *ids, Gpu ***ret, size_t *ret_n) {
        CLEANUP(free_ptr) Gpu **gpus = NULL;
        size_t n_ids = strv_length(ids), n = 0;
        int r;

        gpus = calloc((n_ids > manager->inventory.n ? n_ids : manager->inventory.n) + 1, sizeof *gpus);
        if (!gpus)
                return manager_fail(manager, -ENOMEM, "Out of memory");

        for (size_t i = 0; i < manager->inventory.n; i++)
                manager->inventory.by_index[i]->named = false;
        for (size_t i = 0; i < n_ids; i++) {
                Gpu *gpu;

                r = manager_find(manager, ids[i], &gpu);
                if (r < 0)
                        return r;
                if (!gpu->named)
                        gpus[n++] = gpu;
                gpu->named = true;
        }
        for (size_t i = 0; n_ids == 0 && i < manager->inventory.n; i++)
                gpus[n++] = manager->inventory.by_index[i];

        *ret = take_ptr(&gpus);
        *ret_n = n;
        return 0;
}

/* A whole request fails for the driver's sake. */
static void request_fail_by_driver(Request *request, DriverState state, const char *error) {
        request_fail_whole(request,
                        state == DRIVER_UNRESPONSIVE ? OUTCOME_DRIVER_UNRESPONSIVE : OUTCOME_NO_DRIVER,
                        state == DRIVER_OK ? "The driver lists no GPU on this tray"
                                        : state == DRIVER_UNKNOWN
                                        ? "The driver has not been asked yet; try again in a moment"
                                        : error);
}

/* Each GPU of the request by what is known of it now. */
static void request_judge_verify(Request *request, const Config *config) {
        for (size_t i = 0; i < request->n_items; i++) {
                const Gpu *gpu = request->items[i].gpu;
                char why[2 * GPU_REASON_SIZE], detail[2 * GPU_REASON_SIZE + 32];
                bool unclean = verify_gpu(gpu, config, why, sizeof why) > 0;

                (void) snprintf(detail, sizeof detail, "GPU %u %s", gpu->sample.index, unclean ? why : "");
                request_finish_item(request, i, unclean ? OUTCOME_NOT_CLEAN : OUTCOME_DONE, detail);
        }
}

static usec_t manager_default_timeout(const Manager *manager, RequestKind kind) {
        const Config *config = manager->config;
        usec_t looks = 2 * config->driver.probe_timeout_usec;

        switch (kind) {
        case REQUEST_ACQUIRE: return config->handover.acquire_timeout_usec;
        case REQUEST_RESET:
        case REQUEST_RELEASE:
                /* twice a reset: one that was running already, and ours; and what may be in between */
                return looks + 2 * config->driver.reset_timeout_usec + config->handover.busy_grace_usec +
                                config->handover.kill_grace_usec + 2 * config->handover.check_timeout_usec +
                                config->driver.fabric_timeout_usec;
        case REQUEST_VERIFY: return looks + 2 * config->handover.check_timeout_usec;
        case REQUEST_REFRESH:
        case REQUEST_PROCESSES:
        case _REQUEST_KIND_MAX: break;
        }
        return looks;
}

static bool gpu_answers_repeat(const Gpu *gpu, const char *tenant, usec_t now_usec) {
        const GpuLastReset *last = &gpu->last_reset;

        return tenant && !gpu->handover && gpu_state(gpu) == GPU_STATE_CLEAN && last->realtime_usec > 0 &&
                        !outcome_is_failure(last->outcome) && streq(last->tenant, tenant) &&
                        now_usec - last->monotonic_usec < REPEAT_USEC;
}

/* The tenant had the GPU, as far as is known, and is done with it. */
static bool request_ends_tenant(const Request *request, size_t item) {
        const Lease *former = &request->items[item].former;

        return request->kind == REQUEST_RELEASE && request->tenant &&
                        (former->n == 0 || lease_find(former, request->tenant));
}

/* The handover that is under way is good for those only who asked for it: somebody else may have used the
 * GPU since. So may a tenant that had the GPU reset under its lease, and asked for another at the end of
 * that. */
static bool handover_serves(const Gpu *gpu, const Request *request, size_t item) {
        return request->tenant && streq(gpu->handover->tenant, request->tenant) &&
                        (request->items[item].former.n == 0 || gpu->handover->tenant_ended) &&
                        !(gpu->next && streq(gpu->next->tenant, request->tenant));
}

/* Puts one GPU of a request on its way: joins the handover that will do, or makes one. 0 · -ENOMEM. */
static int manager_enlist(Manager *manager, Request *request, size_t item, Now now) {
        Gpu *gpu = request->items[item].gpu;
        Handover **slot = &gpu->handover;
        int r;

        if (*slot && handover_has_begun(*slot) && !handover_serves(gpu, request, item))
                slot = &gpu->next;
        if (!*slot) {
                r = handover_new(gpu, manager->config, request->tenant, now.monotonic_usec, slot);
                if (r < 0)
                        return r;
                (*slot)->founder = request->number;
        }
        if (request_ends_tenant(request, item) && streq((*slot)->tenant, request->tenant))
                (*slot)->tenant_ended = true;
        return handover_add_waiter(*slot, request, item);
}

void request_withdraw(Request *request) {
        for (size_t i = 0; i < request->n_items; i++) {
                handover_drop_waiter(request->items[i].gpu->handover, request);
                handover_drop_waiter(request->items[i].gpu->next, request);
        }
}

/* The request is refused half-way: what was made for it goes, too. */
static void request_undo(Request *request) {
        request_withdraw(request);
        for (size_t i = 0; i < request->n_items; i++) {
                Gpu *gpu = request->items[i].gpu;

                if (gpu->handover && gpu->handover->founder == request->number)
                        gpu->handover = handover_free(gpu->handover);
                if (gpu->next && gpu->next->founder == request->number)
                        gpu->next = handover_free(gpu->next);
        }
}

/* The tenant had the GPU: it is clean no more. */
static void gpu_note_tenant(Gpu *gpu, const char *tenant) {
        (void) snprintf(gpu->last_tenant, sizeof gpu->last_tenant, "%s", tenant);
        gpu->changes |= GPU_CHANGE_STATE;
        if (gpu->record != GPU_STATE_CLEAN)
                return;
        gpu->record = GPU_STATE_DIRTY;
        gpu_set_named_reason(gpu, "a tenant had it", "%s had it", tenant);
}

static void request_refuse_leased(Request *request, size_t item) {
        const Gpu *gpu = request->items[item].gpu;
        char tenants[LEASE_LINE_SIZE], detail[sizeof tenants + 64];

        lease_format(&gpu->lease, tenants, sizeof tenants);
        (void) snprintf(detail, sizeof detail, "GPU %u is leased to %s", gpu->sample.index, tenants);
        request_finish_item(request, item, OUTCOME_LEASED, detail);
}

/* What needs no handover of its own: a GPU that others have or share still, and a repeat. */
static void request_pass(Request *request, size_t item, usec_t now_usec) {
        const Gpu *gpu = request->items[item].gpu;

        request->items[item].kept = gpu->lease.n > 0 && request->kind == REQUEST_RELEASE;
        if (request->items[item].kept)
                request_finish_item(request, item, OUTCOME_DONE, NULL);
        else if (gpu->lease.n > 1 ||
                        (gpu->lease.n == 1 &&
                                        !(request->tenant && lease_find(&gpu->lease, request->tenant))))
                request_refuse_leased(request, item); /* also where others share it with the tenant */
        else if (gpu_answers_repeat(gpu, request->tenant, now_usec))
                request_finish_item(request, item, gpu->last_reset.outcome, NULL);
}

/* Puts a reset on its way: the record of who had the GPUs first, then the handovers. 0 · -errno with
 * manager_error(). */
static int manager_begin_handover(Manager *manager, Request *request, Now now) {
        int r;

        for (size_t i = 0; i < request->n_items; i++) {
                request_pass(request, i, now.monotonic_usec);
                if (!request->items[i].finished && request->tenant)
                        gpu_note_tenant(request->items[i].gpu, request->tenant);
        }

        manager->state_stale = true; /* written for every request: one that cannot be is refused here */
        r = manager_write_state(manager);
        for (size_t i = 0; r >= 0 && i < request->n_items; i++)
                if (!request->items[i].finished) {
                        r = manager_enlist(manager, request, i, now);
                        if (r < 0)
                                (void) manager_fail(manager, r, "Out of memory");
                }
        if (r < 0)
                request_undo(request);
        return r;
}

/* The site has switched resets off: nothing is asked for, but what the tenant had is not clean. Nor is it
 * refused when that cannot be written; the old file is gone then, and all is unknown to the next agent. */
static void manager_skip_release(Manager *manager, Request *request) {
        request->skipped = true;
        for (size_t i = 0; i < request->n_items; i++) {
                if (request->tenant)
                        gpu_note_tenant(request->items[i].gpu, request->tenant);
                request_finish_item(request, i, OUTCOME_DONE, NULL);
        }
        manager->state_stale = true;
        (void) manager_write_state(manager);
}

/* Its leases end, on file first; where that cannot be written they have not ended. 0 · -errno with
 * manager_error(). */
static int manager_begin_release(Manager *manager, Request *request, Now now) {
        int r;

        r = manager_check_release(manager, request);
        if (r < 0 && manager->config->mode == AGENT_MODE_OBSERVE) {
                request_fail_whole(request, OUTCOME_LEASED, manager->error);
                return 0;
        }
        if (r >= 0)
                r = manager_end_leases(manager, request, now);
        if (r < 0)
                return r;

        if (manager->config->handover.reset)
                r = manager_begin_handover(manager, request, now);
        else
                manager_skip_release(manager, request);
        if (r >= 0)
                return 0;

        manager_restore_leases(request, now);
        manager->state_stale = true;
        (void) manager_write_state(manager); /* it may have been written already that they have ended */
        return r;
}

static void manager_append_request(Manager *manager, Request *request) {
        request->previous = manager->last;
        *(manager->last ? &manager->last->following : &manager->first) = request;
        manager->last = request;
}

/* What the kind of request needs. 0 · -errno with manager_error(). */
static int manager_begin_request(Manager *manager, Request *request, Now now) {
        switch (request->kind) {
        case REQUEST_REFRESH: request->needs_probe = true; return 0;
        case REQUEST_VERIFY:
                request->needs_probe = request->needs_holders = true;
                request->needs_checks = request->checks;
                return 0;
        case REQUEST_PROCESSES: request->needs_holders = true; return 0;
        case REQUEST_RESET: return manager_begin_handover(manager, request, now);
        case REQUEST_ACQUIRE: return manager_begin_gate(manager, request);
        case REQUEST_RELEASE: return manager_begin_release(manager, request, now);
        case _REQUEST_KIND_MAX: break;
        }
        return -EINVAL;
}

static bool manager_is_waiting(const Manager *manager, uint64_t number) {
        for (const Request *request = manager->first; request; request = request->following)
                if (request->number == number)
                        return true;
        return false;
}

/* The GPUs that a request of this kind is about. 0 · -EINVAL, -ENOENT, -ENOMEM with manager_error(). */
static int manager_choose_gpus(Manager *manager, RequestKind kind, char *const *ids, const char *tenant,
                Gpu ***ret, size_t *ret_n) {
        CLEANUP(free_ptr) Gpu **gpus = NULL;

        if (kind == REQUEST_REFRESH)
                return 0;
        if (strv_length(ids) > 0 || (kind != REQUEST_RELEASE && kind != REQUEST_ACQUIRE))
                return manager_resolve(manager, ids, ret, ret_n);
        if (kind == REQUEST_ACQUIRE)
                return manager_fail(manager, -EINVAL, "A booking has to name its GPUs");
        if (!tenant)
                return 0;

        gpus = calloc(manager->inventory.n + 1, sizeof *gpus);
        if (!gpus)
                return manager_fail(manager, -ENOMEM, "Out of memory");
        *ret_n = manager_find_leased(manager, tenant, gpus);
        *ret = take_ptr(&gpus);
        return 0;
}

/* A release that is refused tells of a use all the same. */
static void manager_note_use(Manager *manager, const Request *request) {
        if (!request->tenant || (request->kind != REQUEST_RELEASE && request->kind != REQUEST_RESET))
                return;
        for (size_t i = 0; i < request->n_items; i++) {
                Gpu *gpu = request->items[i].gpu;

                if (gpu->lease.n > 0)
                        continue;
                gpu_note_tenant(gpu, request->tenant);
                if (gpu->handover)
                        gpu->handover->used |= handover_has_begun(gpu->handover);
        }
        manager->state_stale = true;
}

/* From the refusal at once, by what the tray is, to what the kind of request needs. 0 · -errno with
 * manager_error(). */
static int manager_take_on(Manager *manager, Request *request, Now now) {
        char message[GPU_REASON_SIZE + 64];

        if (manager->tray.maintenance) {
                (void) snprintf(message, sizeof message, "The tray is in maintenance%s%s",
                                manager->tray.maintenance_reason[0] ? ": " : "",
                                manager->tray.maintenance_reason);
                manager_note_use(manager, request);
                request_fail_whole(request, OUTCOME_MAINTENANCE, message);
                return 0;
        }
        /* All of no GPUs is not done by doing nothing. */
        if (request->n_items == 0 && request->kind != REQUEST_REFRESH && request->kind != REQUEST_RELEASE) {
                request_fail_by_driver(request, manager->driver_state, manager->driver_error);
                return 0;
        }
        return manager_begin_request(manager, request, now);
}

int manager_request(Manager *manager, RequestKind kind, char *const *ids, const RequestOptions *options,
                RequestDone done, void *userdata, Now now, Request **ret) {
        CLEANUP(request_free_ptr) Request *request = NULL;
        CLEANUP(free_ptr) Gpu **gpus = NULL;
        Request *waiting;
        uint64_t number;
        size_t n = 0;
        int r;

        if (manager->stopping)
                return manager_fail(manager, -ESHUTDOWN, "gpuagentd is stopping");

        r = manager_choose_gpus(manager, kind, ids, options->tenant, &gpus, &n);
        if (r < 0)
                return r;
        r = request_new(kind, gpus, n, options, &request);
        if (r < 0)
                return manager_fail(manager, r, "Out of memory");
        number = request->number = ++manager->requests;
        request->done = done;
        request->userdata = userdata;
        request->started_usec = now.monotonic_usec;
        request->deadline_usec = usec_add(
                        now.monotonic_usec, options->timeout_usec ?: manager_default_timeout(manager, kind));

        r = manager_take_on(manager, request, now);
        if (r < 0)
                return r;

        waiting = take_ptr(&request);
        manager_append_request(manager, waiting);
        manager_commit(manager, now);
        manager_dispatch(manager, now);
        if (ret)
                *ret = manager_is_waiting(manager, number) ? waiting : NULL;
        return 0;
}

int manager_verify_known(Manager *manager, char *const *ids, char **ret_message) {
        CLEANUP(request_free_ptr) Request *request = NULL;
        CLEANUP(free_ptr) Gpu **gpus = NULL;
        RequestOptions options = {};
        size_t n;
        int r;

        r = manager_resolve(manager, ids, &gpus, &n);
        if (r < 0)
                return r;
        r = request_new(REQUEST_VERIFY, gpus, n, &options, &request);
        if (r < 0)
                return manager_fail(manager, r, "Out of memory");

        if (n == 0 || manager->driver_state != DRIVER_OK)
                request_fail_by_driver(request, manager->driver_state, manager->driver_error);
        else
                request_judge_verify(request, manager->config);
        r = request_conclude(request, false);
        if (r < 0)
                return manager_fail(manager, r, "Out of memory");
        if (!outcome_is_failure(request->outcome))
                return 0;
        if (!request->message)
                return manager_fail(manager, -ENOMEM, "Out of memory");
        *ret_message = take_ptr(&request->message);
        return 1;
}

/* A dry run of the checks: what fails is told and changes nothing. */
static void request_judge_checks(Request *request, const VendorReply *reply) {
        for (size_t i = 0; i < reply->n_resets; i++)
                for (size_t j = 0; j < request->n_items; j++) {
                        const Gpu *gpu = request->items[j].gpu;
                        char detail[GPU_REASON_SIZE];

                        if (reply->resets[i].verdict == RESET_DONE ||
                                        !streq(reply->resets[i].uuid, gpu->sample.uuid))
                                continue;
                        (void) snprintf(detail, sizeof detail, "GPU %u failed a check: %s",
                                        gpu->sample.index, reply->resets[i].detail);
                        request_finish_item(request, j, OUTCOME_NOT_CLEAN, detail);
                }
}

/* What the operation told is not to be asked again. */
static void request_take_reply(Request *request, const VendorReply *reply, Now now) {
        switch (reply->operation) {
        case VENDOR_PROBE: request->needs_probe = false; break;
        case VENDOR_HOLDERS: request->needs_holders = false; break;
        case VENDOR_CHECKS:
                request->needs_checks = false;
                request_judge_checks(request, reply);
                break;
        case VENDOR_TENANTS: request->needs_tenants = false; break;
        case VENDOR_RESET:
        case VENDOR_LEFTOVERS:
        case VENDOR_QUIESCE:
        case VENDOR_RESUME:
        case _VENDOR_OPERATION_MAX: break;
        }
        for (size_t i = 0; i < request->n_items; i++) {
                RequestItem *item = request->items + i;

                item->searched |= reply->operation == VENDOR_HOLDERS;
                item->asked_signs |= reply->operation == VENDOR_TENANTS;
                if (reply->operation == VENDOR_PROBE)
                        item->looked_usec = now.monotonic_usec;
        }
}

void manager_serve_requests(Manager *manager, const VendorReply *reply, Now now) {
        VendorOperation operation;

        for (Request *request = manager->first; request; request = request->following) {
                if (!request->riding)
                        continue;
                request->riding = false;
                request_take_reply(request, reply, now);

                if (reply->driver_state != DRIVER_OK && reply->operation != VENDOR_TENANTS) {
                        request->needs_probe = request->needs_holders = request->needs_checks = false;
                        request_fail_by_driver(request, reply->driver_state, reply->driver_error);
                } else if (request->kind != REQUEST_ACQUIRE && request_wants(request, &operation) <= 0) {
                        if (request->kind == REQUEST_VERIFY)
                                request_judge_verify(request, manager->config);
                        for (size_t i = 0; i < request->n_items; i++)
                                request_finish_item(request, i, OUTCOME_DONE, NULL);
                }
        }
}

static void manager_expire_item(const Manager *manager, Request *request, size_t item, usec_t now_usec) {
        usec_t waited = now_usec - request->started_usec;
        bool books = request->kind == REQUEST_ACQUIRE;
        const Gpu *gpu = request->items[item].gpu;
        char detail[GPU_REASON_SIZE + 192], busy[96] = "";

        if (manager->out)
                (void) snprintf(busy, sizeof busy, "; the driver is busy with %s for %.1f s",
                                vendor_operation_describe(manager->out_operation),
                                (double) (now_usec - manager->out_since_usec) / (double) USEC_PER_SEC);
        (void) snprintf(detail, sizeof detail, "GPU %u was not %s within %.1f s%s: %s%s%s%s",
                        gpu->sample.index, books ? "booked" : "done",
                        (double) waited / (double) USEC_PER_SEC, books ? "" : " and goes on",
                        gpu_state_to_string(gpu_state(gpu)), gpu->reason[0] ? ", " : "", gpu->reason, busy);
        request_finish_item(request, item, OUTCOME_TIMED_OUT, detail);
}

void manager_expire_requests(Manager *manager, Now now) {
        for (Request *request = manager->first; request; request = request->following) {
                if (now.monotonic_usec < request->deadline_usec)
                        continue;
                request_withdraw(request);
                request->needs_probe = request->needs_holders = request->needs_checks =
                                request->needs_tenants = request->riding = false;
                if (request->n_items == 0)
                        request_fail_whole(request, OUTCOME_TIMED_OUT, "The driver did not answer in time");
                for (size_t i = 0; i < request->n_items; i++)
                        manager_expire_item(manager, request, i, now.monotonic_usec);
        }
}
