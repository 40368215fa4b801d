/* SPDX-License-Identifier: MIT */
/* The handover of one GPU, from the request to a verified clean record or a failure that says why. This is
 * the whole way; each phase but the waits is one vendor operation, and the manager batches the GPUs that
 * want the same one:
 *
 *   probe      a fresh look; a GPU that no reset cures ends here
 *   reset      nvidia-smi --gpu-reset, which may bring the first look after it
 *   holders    it was refused as in use: who holds the GPU? Told at once
 *   leftovers  those that are proven to be the ended tenant's are ended, once
 *   quiesce    the monitoring that the site has listed is stopped, once; the manager has it started again
 *   grace      and a little later again, since a scrape goes away by itself; at the end of busy-grace it is
 *              Busy
 *   settle     after the reset: the GPU answers and the fabric has come to rest; one that was given to
 *              another partition meanwhile goes back to its reset
 *   checks     then the site's own checks, where it has any, and a look after them
 *              The last look sees no process (by a search where NVML cannot tell), no recovery action, the
 *              expected clique and NVLinks; then it is clean
 *
 * Nothing here asks the vendor or tells anyone: handover_wants() says what is next, and handover_take() gets
 * what the manager was told. */
#pragma once

#include "agent/config/config.h"
#include "agent/core/gpu.h"
#include "agent/core/request.h"
#include "agent/core/vendor.h"

typedef enum HandoverPhase {
        HANDOVER_PROBE,
        HANDOVER_RESET,
        HANDOVER_HOLDERS,
        HANDOVER_LEFTOVERS,
        HANDOVER_QUIESCE,
        HANDOVER_GRACE,
        HANDOVER_SETTLE,
        HANDOVER_CHECKS,
        HANDOVER_ENDED, /* outcome and detail are set */
        _HANDOVER_PHASE_MAX,
} HandoverPhase;

/* A request that waits for this handover, by the item of it that the GPU is. */
typedef struct HandoverWaiter {
        Request *request;
        size_t item;
} HandoverWaiter;

struct Handover {
        Gpu *gpu;
        const Config *config;
        char tenant[TENANT_MAX + 1]; /* "" for none */
        uint64_t founder;            /* the number of the request that it was made for */
        HandoverPhase phase;
        bool out;               /* a vendor operation for it is under way */
        usec_t not_before_usec; /* when its phase may go on (grace, settle) */

        usec_t started_usec;
        usec_t phase_since_usec;
        usec_t busy_since_usec;  /* the first refusal as in use, 0 without one */
        usec_t reset_done_usec;  /* the fabric has its time from here on */
        usec_t settled_usec;     /* when the fabric was first seen at rest, 0 before */
        unsigned tries;          /* of the phase that repeats */
        usec_t waits_since_usec; /* for the driver to name another recovery action, 0 before */
        bool announced;          /* ResetStarted was told */
        bool tenant_ended;       /* what is left of the tenant's processes may be ended */
        bool leftovers_ended, quiesced, checked; /* that phase is behind it */
        bool used;        /* somebody had the GPU while this was on its way: it will not be clean */
        bool held;        /* a search for somebody else saw a process after the reset */
        bool disturbed;   /* an Xid came while the reset was under way: before its end, or after it? */
        unsigned moves;   /* of the GPU, when its reset began */
        unsigned repeats; /* resets for a partition that came while it was being reset */
        uint32_t xid;     /* logged after the reset, of those that need another one; 0: none */
        /* all is well after the reset; whether a process holds the GPU is for the search to say */
        bool unsure;

        Outcome outcome;
        char detail[GPU_REASON_SIZE]; /* "GPU 0 is held by …"; "" on success */
        const char *why;              /* the same without the GPU, within detail */
        GpuStep steps[GPU_STEPS_MAX];
        size_t n_steps;

        HandoverWaiter *waiters;
        size_t n_waiters;
};

/* 0 and *ret · -ENOMEM. `tenant` may be NULL. */
int handover_new(Gpu *gpu, const Config *config, const char *tenant, usec_t now_usec, Handover **ret);
Handover* handover_free(Handover *handover);

/* The reset was asked for: from here on a request of somebody else needs one of its own. */
bool handover_has_begun(const Handover *handover);

/* It has begun and not ended: the GPU is resetting. */
bool handover_is_under_way(const Handover *handover);

/* 0 · -ENOMEM. */
int handover_add_waiter(Handover *handover, Request *request, size_t item);
void handover_drop_waiter(Handover *handover, const Request *request);

/* 1 and *ret: it wants this operation now · 0: it waits for a time, a reply or its end. */
int handover_wants(const Handover *handover, usec_t now_usec, VendorOperation *ret);

/* The operation it wants is under way. */
void handover_go(Handover *handover, usec_t now_usec);

/* It brought nothing about this GPU: wanted again. */
void handover_ask_again(Handover *handover);

/* What came of the operation that it wanted: what is next, by the phase. The GPU's sample and holders are up
 * to date already. `verdict` is what a reply about resets or checks says of the GPU, NULL for not a word;
 * `seen`: the reply had a look at it. */
void handover_take(Handover *handover, const VendorReply *reply, const GpuReset *verdict, bool seen,
                usec_t now_usec);

/* A search that was not its own found processes on the GPU: after the reset they call for another. */
void handover_note_holders(Handover *handover);

/* The driver logged an Xid that only a reset cures, or not even that. */
void handover_note_xid(Handover *handover, uint32_t xid);
