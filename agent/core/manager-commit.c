/* SPDX-License-Identifier: MIT */
/* How things end: what became of a handover goes on record and on file first, and to everybody who is to be
 * told after that. */
#include <stdio.h>
#include <string.h>

#include "agent/core/manager-internal.h"

static bool has_ended(const Gpu *gpu) {
        return gpu->handover && gpu->handover->phase == HANDOVER_ENDED;
}

/* What leaves the GPU in doubt, and not only as it was. */
static bool outcome_quarantines(const Handover *handover) {
        switch (handover->outcome) {
        case OUTCOME_NEEDS_REBOOT: return true;
        /* without a reset it waits for something else than one, and the next look may find it */
        case OUTCOME_NOT_CLEAN:
        case OUTCOME_RESET_FAILED:
        case OUTCOME_NO_DRIVER:
        case OUTCOME_DRIVER_UNRESPONSIVE:
                return handover->announced; /* the reset was tried, and nobody knows how far it went */
        case OUTCOME_DONE:
        case OUTCOME_SKIPPED:
        case OUTCOME_FABRIC_PENDING:
        case OUTCOME_LEASED:
        case OUTCOME_MAINTENANCE:
        case OUTCOME_BUSY:
        case OUTCOME_TIMED_OUT:
        case OUTCOME_NOT_SUPPORTED:
        case _OUTCOME_MAX:
        case _OUTCOME_INVALID: break;
        }
        return false;
}

/* A verified reset. Who has the GPU, or waits for the next reset, may have used it while this one was on its
 * way. */
static void gpu_record_reset(Gpu *gpu) {
        char tenants[GPU_REASON_SIZE / 2];

        gpu->record = gpu->next || gpu->lease.n > 0 || gpu->handover->used ? GPU_STATE_DIRTY
                                                                           : GPU_STATE_CLEAN;
        if (gpu->lease.n > 0) {
                lease_format(&gpu->lease, tenants, sizeof tenants);
                gpu_set_named_reason(gpu, "leased to a tenant", "leased to %s", tenants);
        } else if (gpu->next)
                gpu_set_reason(gpu, "%s", "waits for another reset");
        else if (gpu->handover->used)
                gpu_set_named_reason(gpu, "a tenant had it", "%s had it", gpu->last_tenant);
        else
                gpu_set_reason(gpu, "%s",
                                gpu->handover->outcome == OUTCOME_FABRIC_PENDING
                                                ? "its fabric has not settled yet"
                                                : "");
}

static void gpu_record_outcome(Gpu *gpu, Now now) {
        const Handover *handover = gpu->handover;
        GpuLastReset *last = &gpu->last_reset;

        *last = (GpuLastReset){
                .realtime_usec = now.realtime_usec,
                .monotonic_usec = now.monotonic_usec,
                .outcome = handover->outcome,
                .duration_usec = now.monotonic_usec - handover->started_usec,
                .n_steps = handover->n_steps,
        };
        memcpy(last->detail, handover->detail, sizeof last->detail);
        memcpy(last->tenant, handover->tenant, sizeof last->tenant);
        memcpy(last->steps, handover->steps, sizeof last->steps);

        if (handover->outcome == OUTCOME_SKIPPED) {
                if (gpu->record == GPU_STATE_CLEAN)
                        gpu->record = GPU_STATE_DIRTY;
                gpu_set_reason(gpu, "was in MIG mode at its last handover, and left alone");
        } else if (!outcome_is_failure(handover->outcome)) {
                gpu->n_holders = 0;
                gpu->reset_count++;
                gpu_record_reset(gpu);
        } else if (outcome_quarantines(handover)) {
                gpu->record = GPU_STATE_QUARANTINED;
                gpu_set_reason(gpu, "%s",
                                gpu_state(gpu) == GPU_STATE_LOST ? gpu_why_lost(gpu) : handover->why);
        } else if (gpu->record == GPU_STATE_CLEAN) { /* nothing was done to it: it is as clean as before */
                gpu_set_reason(gpu, "%s", "");
        } else if (handover->outcome != OUTCOME_BUSY ||
                        !gpu_is_held(gpu)) /* the holders are its reason already */
                gpu_set_reason(gpu, "%s", handover->why);
        else if (gpu->record == GPU_STATE_QUARANTINED) /* and will be gone before that is */
                gpu_set_reason(gpu, "a reset failed before, and the next was refused: %s", handover->why);
        gpu->state_since_realtime_usec = now.realtime_usec;
        gpu->changes |= GPU_CHANGE_STATE | GPU_CHANGE_RESET;
}

/* The record could not be written: the file still says what was before the reset, and so must we. */
static void gpu_take_back_clean(Gpu *gpu, const char *error) {
        Handover *handover = gpu->handover;

        if (outcome_is_failure(handover->outcome) || handover->outcome == OUTCOME_SKIPPED)
                return;
        handover->outcome = OUTCOME_NOT_CLEAN;
        (void) snprintf(handover->detail, sizeof handover->detail,
                        "GPU %u was reset, but is not clean on record: %s", gpu->sample.index, error);
        gpu->record = GPU_STATE_DIRTY;
        gpu->reset_count--;
        gpu->last_reset.outcome = handover->outcome;
        memcpy(gpu->last_reset.detail, handover->detail, sizeof gpu->last_reset.detail);
        gpu_set_reason(gpu, "was reset, but %s", error);
}

/* By a request that is about the reset, and not about a booking. */
static bool handover_is_asked_for(const Handover *handover) {
        for (size_t i = 0; i < handover->n_waiters; i++)
                if (handover->waiters[i].request->kind != REQUEST_ACQUIRE)
                        return true;
        return false;
}

/* Tells those who waited and makes room for the next one. */
static void manager_end_handover(Manager *manager, Gpu *gpu, Now now) {
        Handover *handover = gpu->handover;

        gpu->handover = take_ptr(&gpu->next);
        if (gpu->handover) /* its time starts here; what it waited for was the other's */
                gpu->handover->started_usec = gpu->handover->phase_since_usec = now.monotonic_usec;

        manager_tell(manager, on_reset_finished, gpu, handover->tenant, handover->outcome, handover->detail);
        if (!handover_is_asked_for(handover))
                manager_tell(manager, on_handover_unasked, gpu, handover->tenant, handover->outcome,
                                handover->detail);
        for (size_t i = 0; i < handover->n_waiters; i++) {
                Request *request = handover->waiters[i].request;
                size_t item = handover->waiters[i].item;

                request->items[item].waiting = false;
                request->items[item].looked_usec = now.monotonic_usec;
                if (request->kind != REQUEST_ACQUIRE || outcome_is_failure(handover->outcome))
                        request_finish_item(request, item, handover->outcome, handover->detail);
        }
        (void) handover_free(handover);
}

static void manager_tell_changes(Manager *manager) {
        uint32_t pending = manager_resets_pending(manager), quarantined = manager_quarantined(manager),
                 changes;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                changes = gpu->changes;
                gpu->changes = 0;
                if (changes != 0)
                        manager_tell(manager, on_gpu_changed, gpu, changes);
        }

        if (pending != manager->told_pending || quarantined != manager->told_quarantined)
                manager->changes |= MANAGER_CHANGE_COUNTS;
        manager->told_pending = pending;
        manager->told_quarantined = quarantined;
        changes = manager->changes;
        manager->changes = 0;
        if (changes != 0)
                manager_tell(manager, on_manager_changed, changes);
}

/* Takes those that have nothing unfinished and nothing to learn off the list. Oldest first, linked by
 * `following`. */
static Request* manager_take_finished(Manager *manager) {
        Request *request = manager->first, *finished = NULL, **end = &finished;
        VendorOperation operation;

        while (request) {
                Request *following = request->following;

                if (request->n_unfinished == 0 && request_wants(request, &operation) <= 0) {
                        *(request->previous ? &request->previous->following : &manager->first) = following;
                        *(following ? &following->previous : &manager->last) = request->previous;
                        request->following = NULL;
                        *end = request;
                        end = &request->following;
                }
                request = following;
        }
        return finished;
}

/* Off the list before anybody is told: who is told may ask for more at once. */
static void manager_finish_requests(Manager *manager, usec_t now_usec) {
        Request *request = manager_take_finished(manager);

        while (request) {
                Request *following = request->following;

                request->finished_usec = now_usec;
                (void) request_conclude(request,
                                manager->config->mode ==
                                                /* without memory it has its outcome, and no message */
                                                AGENT_MODE_OBSERVE);
                manager_tell(manager, on_request_finished, request);
                if (request->done)
                        request->done(request, request->userdata);
                (void) request_free(request);
                request = following;
        }
}

void manager_commit(Manager *manager, Now now) {
        int r;

        for (size_t i = 0; i < manager->inventory.n; i++)
                if (has_ended(manager->inventory.by_index[i])) {
                        gpu_record_outcome(manager->inventory.by_index[i], now);
                        manager->state_stale = true;
                }

        r = manager_write_state(manager);
        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (!has_ended(gpu))
                        continue;
                if (r < 0)
                        gpu_take_back_clean(gpu, manager->error);
                manager_end_handover(manager, gpu, now);
        }

        manager_serve_gates(manager, now);
        manager_tell_changes(manager);
        manager_finish_requests(manager, now.monotonic_usec);
}
