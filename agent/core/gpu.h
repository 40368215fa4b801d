/* SPDX-License-Identifier: MIT */
/* One GPU as the agent knows it: what the last probe saw, what is on record about its cleanliness, and how
 * its last handover ended. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/cleanup.h"
#include "agent/base/sample.h"
#include "agent/core/lease.h"
#include "agent/core/outcome.h"

typedef struct Handover Handover;

#define GPU_REASON_SIZE 512
#define GPU_TENANT_SIZE 1024
#define GPU_STEPS_MAX   8

/* NVIDIA's partition ids: 1 to 32765 for sites, 32766 for the default partition (NVLink Partition User's
 * Guide). */
#define PARTITION_NONE     0U
#define PARTITION_USER_MAX 32765U
#define PARTITION_DEFAULT  32766U

typedef enum GpuState {
        GPU_STATE_UNKNOWN, /* not reset in this boot */
        GPU_STATE_CLEAN,   /* reset and verified in this boot, and no holder seen since */
        GPU_STATE_DIRTY,   /* a tenant had it, a holder was seen, or a reset did not get through */
        GPU_STATE_IN_USE,  /* leased, or held by processes */
        GPU_STATE_RESETTING,
        GPU_STATE_QUARANTINED, /* a reset or its check failed; only a later verified reset lifts it */
        GPU_STATE_LOST,        /* gone from the bus or from the driver's list */
        _GPU_STATE_MAX,
        _GPU_STATE_INVALID = -EINVAL,
} GpuState;

typedef enum GpuHealth {
        GPU_HEALTH_UNKNOWN,
        GPU_HEALTH_HEALTHY,
        GPU_HEALTH_DEGRADED,  /* works with less: an NVLink is down, limited fabric capacity */
        GPU_HEALTH_UNHEALTHY, /* needs a recovery action, has an unhealthy route, or does not answer */
        _GPU_HEALTH_MAX,
        _GPU_HEALTH_INVALID = -EINVAL,
} GpuHealth;

/* The NVLink partition that a GPU is assigned to. */
typedef struct GpuPartition {
        uint32_t id; /* UNKNOWN_U32: nothing is said */
        char name[64];
        uint32_t clique; /* to be expected after the next reset; UNKNOWN_U32: it follows from the id */
} GpuPartition;

/* What a change concerns; on_gpu_changed() gets these ORed. */
typedef enum GpuChange {
        GPU_CHANGE_IDENTITY = 1 << 0, /* index, minor, MIG mode */
        GPU_CHANGE_STATE = 1 << 1,    /* state, reason, tenant, last tenant */
        GPU_CHANGE_FABRIC = 1 << 2,   /* partition, clique, cluster, fabric state, reset pending */
        GPU_CHANGE_LINKS = 1 << 3,
        GPU_CHANGE_HEALTH = 1 << 4, /* health, recovery action, reset pending */
        GPU_CHANGE_RESET = 1 << 5,  /* the last reset */
        GPU_CHANGE_XID = 1 << 6,
} GpuChange;

/* One step of a handover and how long it took. The name is a constant string: "probe", "reset", "holders",
 * "leftovers", "quiesce", "grace", "settle", "checks". */
typedef struct GpuStep {
        const char *name;
        usec_t duration_usec;
} GpuStep;

typedef struct GpuLastReset {
        usec_t realtime_usec; /* when it ended; 0: never in this boot */
        usec_t monotonic_usec;
        Outcome outcome;
        char detail[GPU_REASON_SIZE];
        char tenant[TENANT_MAX + 1];
        usec_t duration_usec;
        GpuStep steps[GPU_STEPS_MAX];
        size_t n_steps;
} GpuLastReset;

typedef struct Gpu {
        GpuSample sample;
        /* What fabric.query said last, and what SetPartition did, until the fabric says something new. What
         * holds of the two is in the sample. */
        GpuPartition told, set;
        unsigned moves; /* how often that has changed */
        bool probed;    /* sample is more than an identity read from the state file */
        bool present;   /* in the driver's last complete list */
        bool asked;     /* the vendor request that is out is about it */
        bool named;     /* met already in the list of ids that is being resolved */
        uint64_t seen;  /* the number of the last vendor request whose reply had a look at it */

        GpuState record;              /* what is on file: UNKNOWN, CLEAN, DIRTY or QUARANTINED */
        char reason[GPU_REASON_SIZE]; /* why the state is what it is, "" when there is nothing to say */
        /* The same without names of processes and users (access.processes: own). */
        char reason_counts[GPU_REASON_SIZE];
        usec_t state_since_realtime_usec;
        Lease lease;
        char tenant[GPU_TENANT_SIZE]; /* the leaseholders as lease_format() has them, "" without a lease */
        char last_tenant[TENANT_MAX + 1]; /* the last one a handover was done for */

        GpuHolder *holders; /* as of the last search */
        size_t n_holders;

        GpuLastReset last_reset;
        uint64_t reset_count; /* verified resets in this boot */
        uint32_t last_xid;    /* 0: none */

        Handover *handover; /* the running one */
        Handover *next;     /* waits for it to end, and takes up every request that comes meanwhile */

        uint32_t changes; /* GpuChange, not yet told to the observer */
} Gpu;

/* 0 and *ret · -ENOMEM. */
int gpu_new(const char *uuid, Gpu **ret);
Gpu* gpu_free(Gpu *gpu);

/* The published state: a running handover, a lost GPU and a quarantine come before holders, these before the
 * record. */
GpuState gpu_state(const Gpu *gpu);
GpuHealth gpu_health(const Gpu *gpu);

/* Whether its tenants are seen on this node, by the last look for them; "" without a lease. */
const char* gpu_tenant_presence(const Gpu *gpu);

/* A process has it, as far as the last probe or search tells. */
bool gpu_is_held(const Gpu *gpu);

/* Of a lost GPU, what follows "is lost: ". */
const char* gpu_why_lost(const Gpu *gpu);

/* 1 and *ret_clique: this clique is expected from the next reset on · 0: any settled one will do. */
int gpu_expected_clique(const Gpu *gpu, uint32_t *ret_clique);

/* A reset is asked for by the driver, or the GPU is not yet in the clique that is expected. */
bool gpu_reset_pending(const Gpu *gpu);

/* From its next reset on the GPU is expected in this partition (id UNKNOWN_U32: what fabric.query says).
 * One that is not in it by its clique is clean no more. The state must be written. */
void gpu_set_partition(Gpu *gpu, const GpuPartition *partition, usec_t realtime_usec);

/* fabric.query is asked no more: what it said does not hold. */
void gpu_forget_fabric(Gpu *gpu);

/* Takes over what a probe saw and notes what changed. A holder, or a partition that it is not in, takes a
 * clean mark away: then 1, and the state must be written; else 0. */
int gpu_set_sample(Gpu *gpu, const GpuSample *sample, usec_t realtime_usec);

/* The driver's complete list has no such GPU. Returns as gpu_set_sample(). */
int gpu_set_missing(Gpu *gpu, usec_t realtime_usec);

/* Takes over the processes that hold this GPU. 1: a clean mark is gone, the state must be written · 0 ·
 * -ENOMEM. */
int gpu_set_holders(Gpu *gpu, const GpuHolder *holders, size_t n, usec_t realtime_usec);

/* Something was seen that only a reset (GPU_STATE_DIRTY) or not even that (GPU_STATE_QUARANTINED) cures.
 * What is worse already stays. 1: the record changed, the state must be written · 0. */
int gpu_soil(Gpu *gpu, GpuState record, const char *why, usec_t realtime_usec);

/* Books it for a tenant, and takes the clean mark away. Returns as lease_add(); at 1 the state must be
 * written. */
int gpu_book(Gpu *gpu, const char *tenant, bool shared, usec_t realtime_usec);

/* Ends the tenant's lease, if it has one; the state must be written. */
void gpu_end_lease(Gpu *gpu, const char *tenant, usec_t realtime_usec);

/* Puts another lease in the place of this one, which is freed; *lease is empty afterwards. The state must be
 * written. */
void gpu_put_lease(Gpu *gpu, Lease *lease, usec_t realtime_usec);

/* Puts the reason of the current state down; printf-like, cut to size. */
void gpu_set_reason(Gpu *gpu, const char *format, ...) PRINTF_FORMAT(2, 3);

/* The same, and what is said where names of processes and tenants are hidden. */
void gpu_set_named_reason(Gpu *gpu, const char *counts, const char *format, ...) PRINTF_FORMAT(3, 4);

/* Makes the holders the reason of the state. */
void gpu_explain_holders(Gpu *gpu);

/* "held by python (pid 1860, user joe), nvtop (pid 7, user root)" into ret, with as many as fit and "and 3
 * more" for the rest, and "held by 5 processes" into ret_counts. */
void gpu_format_holders(const Gpu *gpu, char *ret, size_t size, char *ret_counts, size_t counts_size);

const char* gpu_state_to_string(GpuState state);
GpuState gpu_state_from_string(const char *s);
const char* gpu_health_to_string(GpuHealth health);
