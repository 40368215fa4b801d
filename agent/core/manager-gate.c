/* SPDX-License-Identifier: MIT */
/* Bookings: a GPU is given to a tenant when it is clean on record and a look that was taken for the booking
 * says nothing else. One that is not clean, and that nobody has, gets its handover first. All GPUs of a
 * booking or none. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"
#include "agent/core/recovery.h"
#include "agent/core/verify.h"

/* A look is good for the booking this long: with several GPUs, one may wait for the handover of another. */
#define FRESH_USEC (5 * USEC_PER_SEC)

/* A GPU that is not clean after so many handovers will not be after another. */
#define HANDOVERS_MAX 2

int manager_begin_gate(Manager *manager, Request *request) {
        if (!request->tenant)
                return manager_fail(manager, -EINVAL, "A booking needs a tenant");
        if (request->shared && manager->config->handover.shared == SHARED_REFUSE &&
                        manager->config->mode == AGENT_MODE_ENFORCE)
                return manager_fail(manager, -ENOTSUP,
                                "Shared GPUs are not supported here; handover.shared: count lets tenants "
                                "share");
        request->skipped = !manager->config->handover.reset;
        return 0;
}

PRINTF_FORMAT(4, 5)
static void gate_refuse(Request *request, size_t item, Outcome outcome, const char *format, ...) {
        char detail[2 * GPU_REASON_SIZE];
        va_list arguments;
        size_t n;

        n = (size_t) snprintf(detail, sizeof detail, "GPU %u ", request->items[item].gpu->sample.index);
        va_start(arguments, format);
        (void) vsnprintf(detail + n, sizeof detail - n, format, arguments);
        va_end(arguments);
        request_finish_item(request, item, outcome, detail);
}

static void gate_refuse_leased(Request *request, size_t item) {
        char tenants[LEASE_LINE_SIZE];

        lease_format(&request->items[item].gpu->lease, tenants, sizeof tenants);
        gate_refuse(request, item, OUTCOME_LEASED, "is leased to %s", tenants);
}

/* Waits for the last handover that the GPU has before it; without one, for its own. */
static void gate_await(Manager *manager, Request *request, size_t item, Now now) {
        RequestItem *it = request->items + item;
        Gpu *gpu = it->gpu;
        int r = 0;

        if (!gpu->handover) {
                it->handovers++;
                r = handover_new(gpu, manager->config, NULL, now.monotonic_usec, &gpu->handover);
        }
        if (r >= 0)
                r = handover_add_waiter(gpu->next ?: gpu->handover, request, item);
        if (r < 0)
                gate_refuse(request, item, OUTCOME_NOT_CLEAN, "cannot be made clean: Out of memory");
        else
                it->waiting = true;
}

static bool gate_refuse_lost(Request *request, size_t item) {
        const Gpu *gpu = request->items[item].gpu;

        if (gpu_state(gpu) != GPU_STATE_LOST)
                return false;
        gate_refuse(request, item, OUTCOME_NEEDS_REBOOT, "is lost: %s; reboot the tray", gpu_why_lost(gpu));
        return true;
}

/* By what a look has just shown. */
static void gate_judge_looked(Manager *manager, Request *request, size_t item, Now now) {
        RequestItem *it = request->items + item;
        const Gpu *gpu = it->gpu;
        char why[2 * GPU_REASON_SIZE - 64];

        if (gate_refuse_lost(request, item))
                return;
        if (gpu->sample.mig && manager->config->handover.mig == MIG_SKIP)
                it->ready = true;
        else if (gpu->record == GPU_STATE_CLEAN && gpu->sample.n_processes == UNKNOWN_U32 && !it->searched)
                request->needs_holders = true;
        else if (verify_gpu(gpu, manager->config, why, sizeof why) <= 0)
                it->ready = true;
        else if (it->handovers >= HANDOVERS_MAX)
                gate_refuse(request, item, OUTCOME_NOT_CLEAN, "%s", why);
        else
                gate_await(manager, request, item, now);
}

/* By its lease. 1: that is decided · 0: nobody stands against it. */
static int gate_judge_lease(Manager *manager, Request *request, size_t item) {
        RequestItem *it = request->items + item;
        const Gpu *gpu = it->gpu;

        if (lease_find(&gpu->lease, request->tenant))
                it->ready = true; /* again: it has it */
        else if (gpu->lease.n > 0 && !(gpu->lease.shared && request->shared)) {
                if (it->asked_signs || manager->tray.maintenance)
                        gate_refuse_leased(request, item);
                else
                        request->needs_tenants = true;
        } else if (gpu->lease.n == LEASE_TENANTS_MAX)
                gate_refuse(request, item, OUTCOME_LEASED, "has as many tenants as can share it");
        else if (!manager->config->handover.reset)
                it->ready = true; /* the site has switched the handover off */
        else
                return 0;
        return 1;
}

static bool gate_waits(const Request *request) {
        for (size_t i = 0; i < request->n_items; i++)
                if (request->items[i].waiting)
                        return true;
        return false;
}

static bool needs_reboot(const Gpu *gpu) {
        return gpu->probed && recovery_cure(gpu->sample.recovery_action) == CURE_REBOOT;
}

static void gate_judge(Manager *manager, Request *request, size_t item, Now now) {
        RequestItem *it = request->items + item;
        Gpu *gpu = it->gpu;

        if (it->finished || it->waiting)
                return;
        it->ready = false;
        if (request->abandoned)
                gate_refuse(request, item, OUTCOME_TIMED_OUT,
                                "was not booked: nobody waits for it any more");
        else if (gate_judge_lease(manager, request, item) > 0)
                return;
        else if (gpu->handover)
                gate_await(manager, request, item, now);
        else if (gpu->record == GPU_STATE_QUARANTINED) {
                if (!gate_refuse_lost(request, item))
                        gate_refuse(request, item,
                                        needs_reboot(gpu) ? OUTCOME_NEEDS_REBOOT : OUTCOME_NOT_CLEAN,
                                        "is quarantined: %s", gpu->reason);
        } else if (gpu->lease.n > 0)
                it->ready = true; /* shared with those who use it */
        else if (it->looked_usec == 0)
                request->needs_probe = true;
        else if (usec_add(it->looked_usec, FRESH_USEC) < now.monotonic_usec)
                request->needs_probe |=
                                !gate_waits(request); /* else it would be stale again at the end of that */
        else
                gate_judge_looked(manager, request, item, now);
}

static bool gate_has_failed(const Request *request) {
        for (size_t i = 0; i < request->n_items; i++)
                if (request->items[i].finished && outcome_is_failure(request->items[i].outcome))
                        return true;
        return outcome_is_failure(request->outcome);
}

static bool gate_is_ready(const Request *request) {
        for (size_t i = 0; i < request->n_items; i++)
                if (!request->items[i].ready)
                        return false;
        return true;
}

/* Nothing of it is on file, so nothing of it is true. */
static void gate_take_back(Request *request, Now now) {
        for (size_t i = 0; i < request->n_items; i++) {
                RequestItem *item = request->items + i;

                char last_tenant[sizeof item->gpu->last_tenant];

                if (!item->booked)
                        continue;
                item->booked = false;
                memcpy(last_tenant, item->gpu->last_tenant, sizeof last_tenant);
                gpu_end_lease(item->gpu, request->tenant, now.realtime_usec);
                memcpy(item->gpu->last_tenant, last_tenant, sizeof last_tenant);
                if (!item->was_clean)
                        continue;
                item->gpu->record = GPU_STATE_CLEAN;
                gpu_set_reason(item->gpu, "%s", "");
        }
}

/* Books what nobody else has, on file first. 0 · -errno with manager_error(), and nothing is booked. */
static int gate_book(Manager *manager, Request *request, Now now) {
        int r = 0;

        for (size_t i = 0; i < request->n_items; i++) {
                RequestItem *item = request->items + i;

                /* where the booking failed, and the site only observes: not what a reset may come to yet */
                if (item->gpu->handover && !item->ready)
                        continue;
                item->was_clean = item->gpu->record == GPU_STATE_CLEAN;
                r = gpu_book(item->gpu, request->tenant, request->shared, now.realtime_usec);
                if (r == -ENOMEM)
                        break;
                item->booked = r > 0;
                manager->state_stale |= item->booked;
                /* These have their cgroups before they have GPUs: however short they live, they were seen
                 * alive. */
                manager->look_for_tenants |= item->booked &&
                                (startswith(request->tenant, "pod/") ||
                                                startswith(request->tenant, "container/"));
        }
        r = r == -ENOMEM ? manager_fail(manager, r, "Out of memory") : manager_write_state(manager);
        if (r < 0) {
                manager->state_stale = true;
                gate_take_back(request, now);
        }
        return r;
}

/* Through: with all of it booked, or with none. Where the site only observes, what can be booked is, so that
 * the release finds it. */
static void gate_end(Manager *manager, Request *request, bool failed, Now now) {
        int r = 0;

        request_withdraw(request);
        request->needs_probe = request->needs_holders = request->needs_tenants = false;
        if (!failed ||
                        (manager->config->mode == AGENT_MODE_OBSERVE && !request->abandoned &&
                                        !manager->tray.maintenance))
                r = gate_book(manager, request, now);
        if (r < 0 && !failed)
                request_fail_whole(request, OUTCOME_NOT_CLEAN, manager->error);
        for (size_t i = 0; i < request->n_items; i++)
                request_finish_item(request, i, OUTCOME_DONE, NULL);
}

static void manager_serve_gate(Manager *manager, Request *request, Now now) {
        VendorOperation operation;
        bool failed;

        if (request_wants(request, &operation) > 0 && !request->abandoned)
                return; /* the answer is not there yet */
        for (size_t i = 0; i < request->n_items; i++)
                gate_judge(manager, request, i, now);

        failed = gate_has_failed(request);
        if (failed || gate_is_ready(request))
                gate_end(manager, request, failed, now);
}

void manager_serve_gates(Manager *manager, Now now) {
        for (Request *request = manager->first; request; request = request->following)
                if (request->kind == REQUEST_ACQUIRE && !request->riding)
                        manager_serve_gate(manager, request, now);
}
