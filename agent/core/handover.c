/* SPDX-License-Identifier: MIT */
#include "agent/core/handover.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/base/array.h"
#include "agent/base/text.h"
#include "agent/core/recovery.h"
#include "agent/core/verify.h"

/* The first wait of a phase that repeats, doubled each time up to the longest. A look is cheap, and it is
 * its answer that is waited for; behind a reset that is refused is a search through all processes. */
#define RETRY_FIRST_USEC   (100 * USEC_PER_MSEC)
#define LOOK_LONGEST_USEC  (500 * USEC_PER_MSEC)
#define RESET_LONGEST_USEC (2 * USEC_PER_SEC)

/* The recovery action is a value that the driver's work item refreshes after the fact
 * (open-gpu-kernel-modules 595, _gpuRefreshRecoveryActionInLock), and NVLinks train a little longer: what
 * looks wrong right after a reset is given this long to come right. */
#define LAG_USEC (5 * USEC_PER_SEC)

/* What systemd takes to have a failed or upgraded driver service back, with time to spare. */
#define RESTART_USEC (3 * USEC_PER_SEC)

/* An operator makes a few changes in a row; a fabric that never stops moving the GPU is not waited for. */
#define REPEATS_MAX 8

static const char *const phase_table[_HANDOVER_PHASE_MAX] = {
        [HANDOVER_PROBE] = "probe",
        [HANDOVER_RESET] = "reset",
        [HANDOVER_HOLDERS] = "holders",
        [HANDOVER_LEFTOVERS] = "leftovers",
        [HANDOVER_QUIESCE] = "quiesce",
        [HANDOVER_GRACE] = "grace",
        [HANDOVER_SETTLE] = "settle",
        [HANDOVER_CHECKS] = "checks",
        [HANDOVER_ENDED] = "ended",
};

int handover_new(Gpu *gpu, const Config *config, const char *tenant, usec_t now_usec, Handover **ret) {
        Handover *handover;

        handover = calloc(1, sizeof *handover);
        if (!handover)
                return -ENOMEM;

        handover->gpu = gpu;
        handover->config = config;
        handover->started_usec = handover->phase_since_usec = now_usec;
        (void) snprintf(handover->tenant, sizeof handover->tenant, "%s", tenant ?: "");
        *ret = handover;
        return 0;
}

Handover* handover_free(Handover *handover) {
        if (!handover)
                return NULL;

        free(handover->waiters);
        free(handover);
        return NULL;
}

bool handover_has_begun(const Handover *handover) {
        return handover->announced;
}

bool handover_is_under_way(const Handover *handover) {
        return handover->announced && handover->phase != HANDOVER_ENDED;
}

int handover_add_waiter(Handover *handover, Request *request, size_t item) {
        int r;

        r = array_reserve(&handover->waiters, handover->n_waiters, 1);
        if (r < 0)
                return r;

        handover->waiters[handover->n_waiters++] = (HandoverWaiter){ .request = request, .item = item };
        return 0;
}

void handover_drop_waiter(Handover *handover, const Request *request) {
        size_t kept = 0;

        if (!handover)
                return;
        for (size_t i = 0; i < handover->n_waiters; i++)
                if (handover->waiters[i].request != request)
                        handover->waiters[kept++] = handover->waiters[i];
        handover->n_waiters = kept;
}

/* Adds the time of the phase that ends to its step; a phase that repeats has one step. */
static void handover_enter(Handover *handover, HandoverPhase phase, usec_t now_usec) {
        const char *name = phase_table[handover->phase];
        size_t i = 0;

        while (i < handover->n_steps && !streq(handover->steps[i].name, name))
                i++;
        if (i == handover->n_steps)
                handover->steps[handover->n_steps++] = (GpuStep){ .name = name };
        handover->steps[i].duration_usec += now_usec - handover->phase_since_usec;

        handover->phase = phase;
        handover->phase_since_usec = now_usec;
}

static void handover_defer(Handover *handover, usec_t longest_usec, usec_t now_usec) {
        usec_t delay = RETRY_FIRST_USEC << (handover->tries < 5 ? handover->tries : 5);

        handover->tries++;
        handover->not_before_usec = usec_add(now_usec, delay < longest_usec ? delay : longest_usec);
}

/* After this its phase is HANDOVER_ENDED. A failure has a detail like printf's, which follows "GPU 0 ". */
PRINTF_FORMAT(4, 5)
static void handover_end(Handover *handover, Outcome outcome, usec_t now_usec, const char *format, ...) {
        va_list arguments;
        size_t n;

        handover_enter(handover, HANDOVER_ENDED, now_usec);
        handover->outcome = outcome;
        handover->why = handover->detail;
        if (!outcome_is_failure(outcome))
                return;

        n = (size_t) snprintf(
                        handover->detail, sizeof handover->detail, "GPU %u ", handover->gpu->sample.index);
        handover->why = handover->detail + n;
        va_start(arguments, format);
        (void) vsnprintf(handover->detail + n, sizeof handover->detail - n, format, arguments);
        va_end(arguments);
}

int handover_wants(const Handover *handover, usec_t now_usec, VendorOperation *ret) {
        if (handover->out || now_usec < handover->not_before_usec)
                return 0;

        switch (handover->phase) {
        case HANDOVER_PROBE:
        case HANDOVER_SETTLE: *ret = VENDOR_PROBE; return 1;
        case HANDOVER_RESET:
        case HANDOVER_GRACE: *ret = VENDOR_RESET; return 1;
        case HANDOVER_HOLDERS: *ret = VENDOR_HOLDERS; return 1;
        case HANDOVER_LEFTOVERS: *ret = VENDOR_LEFTOVERS; return 1;
        case HANDOVER_QUIESCE: *ret = VENDOR_QUIESCE; return 1;
        case HANDOVER_CHECKS: *ret = VENDOR_CHECKS; return 1;
        case HANDOVER_ENDED:
        case _HANDOVER_PHASE_MAX: return 0;
        }
        return 0;
}

void handover_go(Handover *handover, usec_t now_usec) {
        if (handover->phase == HANDOVER_GRACE)
                handover_enter(handover, HANDOVER_RESET, now_usec);
        if (handover->phase == HANDOVER_RESET)
                handover->moves = handover->gpu->moves;
        handover->out = true;
        handover->not_before_usec = 0;
}

void handover_ask_again(Handover *handover) {
        handover->out = false;
}

/* The driver did not answer: before the reset nothing has happened, after it nobody knows. */
static void handover_end_without_driver(Handover *handover, const VendorReply *reply, usec_t now_usec) {
        Outcome outcome = OUTCOME_NO_DRIVER;

        if (reply->driver_state == DRIVER_UNRESPONSIVE)
                outcome = OUTCOME_DRIVER_UNRESPONSIVE;
        else if (reply->driver_state == DRIVER_FAILED && handover->phase != HANDOVER_PROBE)
                outcome = OUTCOME_RESET_FAILED;
        handover_end(handover, outcome, now_usec, "was not %s: %s",
                        handover->reset_done_usec > 0 ? "verified after its reset" : "reset",
                        reply->driver_error);
}

/* The peers' applications have to end before the driver says what is needed: it is asked again for a while.
 * What it wants then is no reset yet, and none is tried. */
static void handover_await_action(Handover *handover, usec_t now_usec) {
        char action[GPU_REASON_SIZE / 2];

        if (handover->waits_since_usec == 0)
                handover->waits_since_usec = now_usec;
        if (now_usec < usec_add(handover->waits_since_usec, LAG_USEC)) {
                handover_defer(handover, LOOK_LONGEST_USEC, now_usec);
                return;
        }
        recovery_explain(handover->gpu->sample.recovery_action, action, sizeof action);
        handover_end(handover, OUTCOME_BUSY, now_usec, "%s", action);
}

static void handover_judge_action(Handover *handover, usec_t now_usec) {
        int32_t needed = handover->gpu->sample.recovery_action;
        char action[GPU_REASON_SIZE / 2];

        recovery_explain(needed, action, sizeof action);
        switch (recovery_cure(needed)) {
        case CURE_REBOOT: handover_end(handover, OUTCOME_NEEDS_REBOOT, now_usec, "%s", action); return;
        case CURE_IMEX: handover_end(handover, OUTCOME_NOT_CLEAN, now_usec, "%s", action); return;
        case CURE_WAIT: handover_await_action(handover, now_usec); return;
        case CURE_NONE:
        case CURE_RESET:
        case _CURE_MAX: break;
        }
        handover->tries = 0;
        handover_enter(handover, HANDOVER_RESET, now_usec);
}

/* A look that failed may be taken again, and a driver service that is being restarted is back in a moment;
 * after a reset it has the time that the fabric has. True: later, by not_before_usec. */
static bool handover_looks_again(Handover *handover, DriverState driver, usec_t now_usec) {
        bool looks = handover->phase == HANDOVER_PROBE || handover->phase == HANDOVER_HOLDERS ||
                        handover->phase == HANDOVER_SETTLE;
        usec_t deadline = handover->phase == HANDOVER_SETTLE
                        ? usec_add(handover->reset_done_usec, handover->config->driver.fabric_timeout_usec)
                        : usec_add(handover->phase_since_usec, RESTART_USEC);

        if (driver != DRIVER_FAILED || !looks || now_usec >= deadline)
                return false;
        handover_defer(handover, LOOK_LONGEST_USEC, now_usec);
        return true;
}

/* The look before the reset. */
static void handover_judge_probe(Handover *handover, bool listed, usec_t now_usec) {
        const GpuSample *sample = &handover->gpu->sample;

        if (!listed)
                handover_end(handover, OUTCOME_NEEDS_REBOOT, now_usec,
                                "is gone from the driver's list; reboot the tray");
        else if (sample->lost)
                handover_end(handover, OUTCOME_NEEDS_REBOOT, now_usec, "is lost: %s; reboot the tray",
                                gpu_why_lost(handover->gpu));
        else if (!sample->mig)
                handover_judge_action(handover, now_usec);
        else if (handover->config->handover.mig == MIG_SKIP)
                handover_end(handover, OUTCOME_SKIPPED, now_usec, NULL);
        else
                handover_end(handover, OUTCOME_NOT_SUPPORTED, now_usec,
                                "is in MIG mode and cannot be reset; switch MIG off (nvidia-smi -mig 0) "
                                "first");
}

/* All is as it should be, as far as the look can tell. */
static void handover_judge_good(Handover *handover, usec_t now_usec) {
        const GpuSample *sample = &handover->gpu->sample;

        if (sample->checks && !handover->checked)
                handover_enter(handover, HANDOVER_CHECKS, now_usec);
        else if (sample->n_processes == UNKNOWN_U32) {
                handover->unsure = true; /* NVML cannot tell: the search has to */
                handover_enter(handover, HANDOVER_HOLDERS, now_usec);
        } else
                handover_end(handover,
                                gpu_sample_has_settled(sample) ? OUTCOME_DONE : OUTCOME_FABRIC_PENDING,
                                now_usec, NULL);
}

/* It was given to another partition while the reset was under way, and has not taken it: the next reset
 * does. */
static bool handover_missed_partition(const Handover *handover) {
        return handover->gpu->moves != handover->moves && handover->repeats < REPEATS_MAX &&
                        gpu_reset_pending(handover->gpu);
}

/* The look after the reset, taken until the GPU is back, its fabric is at rest and all is as it should be,
 * or time is up. */
static void handover_judge_settle(Handover *handover, bool listed, usec_t now_usec) {
        usec_t deadline = usec_add(handover->reset_done_usec, handover->config->driver.fabric_timeout_usec);
        const Gpu *gpu = handover->gpu;
        bool back = listed && !gpu->sample.lost && !gpu->sample.error[0],
             settled = back && gpu_sample_has_settled(&gpu->sample);
        char why[GPU_REASON_SIZE];

        if (handover->xid != 0) {
                xid_explain(handover->xid, why, sizeof why);
                handover_end(handover, OUTCOME_NOT_CLEAN, now_usec, "is not clean after its reset: %s", why);
        } else if (!back && now_usec >= deadline)
                handover_end(handover, OUTCOME_RESET_FAILED, now_usec,
                                "did not come back after its reset: %s",
                                listed && gpu->sample.error[0] ? gpu->sample.error : gpu_why_lost(gpu));
        else if (!settled && now_usec < deadline)
                handover_defer(handover, LOOK_LONGEST_USEC, now_usec);
        else if (handover->held || (gpu->sample.n_processes != UNKNOWN_U32 && gpu->sample.n_processes > 0))
                handover_enter(handover, HANDOVER_HOLDERS,
                                now_usec); /* somebody was faster than the last look */
        else if (verify_sample(gpu, handover->config, why, sizeof why) <= 0)
                handover_judge_good(handover, now_usec);
        else if (handover_missed_partition(handover)) {
                handover->repeats++;
                handover->tries = 0;
                handover_enter(handover, HANDOVER_RESET, now_usec);
        } else {
                if (handover->settled_usec == 0)
                        handover->settled_usec = now_usec;
                if (now_usec < usec_add(handover->settled_usec, LAG_USEC))
                        handover_defer(handover, LOOK_LONGEST_USEC, now_usec);
                else
                        handover_end(handover, OUTCOME_NOT_CLEAN, now_usec,
                                        "is not clean after its reset: %s", why);
        }
}

/* The GPU has its time to come to rest from here on. */
static void handover_settle(Handover *handover, usec_t now_usec) {
        handover->reset_done_usec = now_usec;
        handover->settled_usec = 0;
        handover->tries = 0;
        handover_enter(handover, HANDOVER_SETTLE, now_usec);
}

/* `looked`: the look after it came along. */
static void handover_judge_reset(Handover *handover, const GpuReset *reset, bool looked, usec_t now_usec) {
        bool disturbed = handover->disturbed;

        handover->disturbed = false;
        switch (reset ? (ResetVerdict) reset->verdict : RESET_FAILED) {
        case RESET_DONE:
                handover->checked = handover->held = false;
                handover->xid = 0;
                handover_settle(handover, now_usec);
                if (looked && !disturbed)
                        handover_judge_settle(handover, true, now_usec);
                return;
        case RESET_IN_USE: handover_enter(handover, HANDOVER_HOLDERS, now_usec); return;
        case RESET_NOT_SUPPORTED:
                handover_end(handover, OUTCOME_NOT_SUPPORTED, now_usec, "cannot be reset: %s",
                                reset->detail);
                return;
        case RESET_FAILED:
        case _RESET_VERDICT_MAX:
        case _RESET_VERDICT_INVALID: break;
        }
        handover_end(handover, OUTCOME_RESET_FAILED, now_usec, "could not be reset: %s",
                        reset ? reset->detail : "the driver service did not say what became of it");
}

static bool may_end_leftovers(const Handover *handover) {
        return handover->tenant_ended && handover->tenant[0] && !handover->leftovers_ended &&
                        handover->config->handover.leftovers == LEFTOVERS_KILL &&
                        handover->gpu->n_holders > 0;
}

static bool may_quiesce(const Handover *handover) {
        return !handover->quiesced &&
                        (strv_length(handover->config->quiesce.units) > 0 ||
                                        handover->config->quiesce.command[0]);
}

/* Held: what can be done about it, and in the end the wait. */
static void handover_yield(Handover *handover, usec_t now_usec) {
        usec_t deadline = usec_add(handover->busy_since_usec, handover->config->handover.busy_grace_usec);

        if (may_end_leftovers(handover))
                handover_enter(handover, HANDOVER_LEFTOVERS, now_usec);
        else if (may_quiesce(handover))
                handover_enter(handover, HANDOVER_QUIESCE, now_usec);
        else if (now_usec >= deadline)
                handover_end(handover, OUTCOME_BUSY, now_usec, "is %s", handover->gpu->reason);
        else {
                /* The last try falls on the end of the grace. */
                handover_enter(handover, HANDOVER_GRACE, now_usec);
                handover_defer(handover, RESET_LONGEST_USEC, now_usec);
                if (handover->not_before_usec > deadline)
                        handover->not_before_usec = deadline;
        }
}

static void handover_judge_holders(Handover *handover, usec_t now_usec) {
        Gpu *gpu = handover->gpu;

        if (handover->unsure) {
                handover->unsure = false;
                if (gpu->n_holders == 0) {
                        handover_enter(handover, HANDOVER_SETTLE, now_usec);
                        handover_judge_settle(handover, true, now_usec);
                        return;
                }
        }

        if (handover->busy_since_usec == 0) {
                handover->busy_since_usec = now_usec;
                handover->tries = 0;
        }
        gpu_explain_holders(gpu);
        handover_yield(handover, now_usec);
}

/* Whom it did not end is not the tenant's, or did not die. */
static void handover_judge_leftovers(Handover *handover, usec_t now_usec) {
        handover->leftovers_ended = true;
        if (handover->gpu->n_holders == 0) {
                handover_enter(handover, HANDOVER_RESET, now_usec);
                return;
        }
        gpu_explain_holders(handover->gpu);
        handover_yield(handover, now_usec);
}

/* A unit that will not stop is named beside the holders. */
static void handover_judge_quiesce(Handover *handover, const char *failure, usec_t now_usec) {
        handover->quiesced = true;
        if (failure[0])
                handover_end(handover, OUTCOME_BUSY, now_usec, "is %s; %s", handover->gpu->reason, failure);
        else
                handover_enter(handover, HANDOVER_RESET, now_usec);
}

static void handover_judge_checks(Handover *handover, const GpuReset *check, usec_t now_usec) {
        if (!check || check->verdict != RESET_DONE)
                handover_end(handover, OUTCOME_NOT_CLEAN, now_usec, "failed a check after its reset: %s",
                                check ? check->detail : "the driver service did not say what became of it");
        else {
                handover->checked = true;
                handover_settle(handover, now_usec);
        }
}

void handover_take(Handover *handover, const VendorReply *reply, const GpuReset *verdict, bool seen,
                usec_t now_usec) {
        handover->out = false;
        if (reply->driver_state != DRIVER_OK) {
                if (!handover_looks_again(handover, reply->driver_state, now_usec))
                        handover_end_without_driver(handover, reply, now_usec);
                return;
        }

        switch (handover->phase) {
        case HANDOVER_PROBE: handover_judge_probe(handover, seen, now_usec); return;
        case HANDOVER_RESET: handover_judge_reset(handover, verdict, seen, now_usec); return;
        case HANDOVER_HOLDERS: handover_judge_holders(handover, now_usec); return;
        case HANDOVER_LEFTOVERS: handover_judge_leftovers(handover, now_usec); return;
        case HANDOVER_QUIESCE: handover_judge_quiesce(handover, reply->failure, now_usec); return;
        case HANDOVER_SETTLE: handover_judge_settle(handover, seen, now_usec); return;
        case HANDOVER_CHECKS: handover_judge_checks(handover, verdict, now_usec); return;
        case HANDOVER_GRACE: /* handover_go() has made a reset of it */
        case HANDOVER_ENDED:
        case _HANDOVER_PHASE_MAX: return;
        }
}

void handover_note_holders(Handover *handover) {
        if (handover->reset_done_usec > 0 && !handover->out)
                handover->held = true;
}

void handover_note_xid(Handover *handover, uint32_t xid) {
        if (handover->out && handover->phase == HANDOVER_RESET)
                handover->disturbed = true;
        /* What came before the reset was cured by it. */
        if (handover->reset_done_usec > 0)
                handover->xid = xid;
}
