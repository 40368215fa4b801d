/* SPDX-License-Identifier: MIT */
#include "agent/core/gpu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/handover.h"
#include "agent/core/recovery.h"

/* Room for " and 1024 more" where not every holder fits. */
#define MORE_SIZE 24
/* And for "GPU 0 is " before them, in a detail of the same size. */
#define PREFIX_SIZE 24

static const char *const gpu_state_table[_GPU_STATE_MAX] = {
        [GPU_STATE_UNKNOWN] = "unknown",
        [GPU_STATE_CLEAN] = "clean",
        [GPU_STATE_DIRTY] = "dirty",
        [GPU_STATE_IN_USE] = "in-use",
        [GPU_STATE_RESETTING] = "resetting",
        [GPU_STATE_QUARANTINED] = "quarantined",
        [GPU_STATE_LOST] = "lost",
};

static const char *const gpu_health_table[_GPU_HEALTH_MAX] = {
        [GPU_HEALTH_UNKNOWN] = "unknown",
        [GPU_HEALTH_HEALTHY] = "healthy",
        [GPU_HEALTH_DEGRADED] = "degraded",
        [GPU_HEALTH_UNHEALTHY] = "unhealthy",
};

const char* gpu_state_to_string(GpuState state) {
        return state >= 0 && state < _GPU_STATE_MAX ? gpu_state_table[state] : NULL;
}

GpuState gpu_state_from_string(const char *s) {
        for (int state = 0; state < _GPU_STATE_MAX; state++)
                if (streq(s, gpu_state_table[state]))
                        return (GpuState) state;
        return _GPU_STATE_INVALID;
}

const char* gpu_health_to_string(GpuHealth health) {
        return health >= 0 && health < _GPU_HEALTH_MAX ? gpu_health_table[health] : NULL;
}

int gpu_new(const char *uuid, Gpu **ret) {
        Gpu *gpu;

        gpu = calloc(1, sizeof *gpu);
        if (!gpu)
                return -ENOMEM;

        gpu_sample_init(&gpu->sample);
        gpu->told.id = gpu->told.clique = gpu->set.id = gpu->set.clique = UNKNOWN_U32;
        (void) snprintf(gpu->sample.uuid, sizeof gpu->sample.uuid, "%s", uuid);
        *ret = gpu;
        return 0;
}

Gpu* gpu_free(Gpu *gpu) {
        if (!gpu)
                return NULL;

        handover_free(gpu->handover);
        handover_free(gpu->next);
        lease_done(&gpu->lease);
        free(gpu->holders);
        free(gpu);
        return NULL;
}

GpuState gpu_state(const Gpu *gpu) {
        if (gpu->handover && handover_is_under_way(gpu->handover))
                return GPU_STATE_RESETTING;
        if (gpu->probed && (!gpu->present || gpu->sample.lost))
                return GPU_STATE_LOST;
        if (gpu->record == GPU_STATE_QUARANTINED)
                return GPU_STATE_QUARANTINED;
        return gpu->lease.n > 0 || gpu_is_held(gpu) ? GPU_STATE_IN_USE : gpu->record;
}

const char* gpu_tenant_presence(const Gpu *gpu) {
        return gpu->lease.n > 0 ? tenant_presence_to_string(lease_presence(&gpu->lease)) : "";
}

bool gpu_is_held(const Gpu *gpu) {
        return gpu->n_holders > 0 || (gpu->sample.n_processes != UNKNOWN_U32 && gpu->sample.n_processes > 0);
}

int gpu_expected_clique(const Gpu *gpu, uint32_t *ret_clique) {
        uint32_t partition = gpu->sample.partition;

        if (gpu->sample.partition_clique != UNKNOWN_U32)
                *ret_clique = gpu->sample.partition_clique;
        else if (partition <= PARTITION_USER_MAX)
                *ret_clique = partition; /* of PARTITION_NONE too: no clique is clique 0 */
        else
                return 0;
        return 1;
}

/* It is at rest in another clique than in *ret_expected. */
static bool gpu_clique_differs(const Gpu *gpu, uint32_t *ret_expected) {
        return gpu->sample.fabric_state == FABRIC_COMPLETED && gpu_expected_clique(gpu, ret_expected) > 0 &&
                        *ret_expected != gpu->sample.clique_id;
}

bool gpu_reset_pending(const Gpu *gpu) {
        uint32_t expected;

        if (!gpu->probed)
                return false;
        return gpu->sample.reset_required || recovery_cure(gpu->sample.recovery_action) == CURE_RESET ||
                        gpu_clique_differs(gpu, &expected);
}

GpuHealth gpu_health(const Gpu *gpu) {
        const GpuSample *sample = &gpu->sample;

        if (!gpu->probed)
                return GPU_HEALTH_UNKNOWN;
        /* A GPU that waits for the reset between two tenants is well; what a reset does not cure is not, nor
         * is what nobody knows. */
        if (!gpu->present || sample->lost || sample->error[0] ||
                        sample->fabric_health == FABRIC_HEALTH_UNHEALTHY ||
                        (sample->recovery_action > RECOVERY_NONE &&
                                        recovery_cure(sample->recovery_action) != CURE_RESET))
                return GPU_HEALTH_UNHEALTHY;
        if (sample->fabric_health == FABRIC_HEALTH_LIMITED_CAPACITY ||
                        sample->n_links_active < sample->n_links ||
                        sample->recovery_action == RECOVERY_DRAIN_AND_RESET)
                return GPU_HEALTH_DEGRADED;
        return GPU_HEALTH_HEALTHY;
}

const char* gpu_why_lost(const Gpu *gpu) {
        return gpu->present ? "the driver cannot reach it any more" : "gone from the driver's list";
}

static void put_reason(Gpu *gpu, const char text[static GPU_REASON_SIZE], const char *counts) {
        if (streq(text, gpu->reason) && streq(counts, gpu->reason_counts))
                return;
        memcpy(gpu->reason, text, sizeof gpu->reason);
        (void) snprintf(gpu->reason_counts, sizeof gpu->reason_counts, "%s", counts);
        gpu->changes |= GPU_CHANGE_STATE;
}

void gpu_set_reason(Gpu *gpu, const char *format, ...) {
        char text[GPU_REASON_SIZE];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        put_reason(gpu, text, text);
}

void gpu_set_named_reason(Gpu *gpu, const char *counts, const char *format, ...) {
        char text[GPU_REASON_SIZE];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        put_reason(gpu, text, counts);
}

void gpu_format_holders(const Gpu *gpu, char *ret, size_t size, char *ret_counts, size_t counts_size) {
        bool seen_by_nvml = gpu->sample.n_processes != UNKNOWN_U32 && gpu->sample.n_processes > 0;
        size_t n = gpu->n_holders, named = 0, used = 0;

        if (n == 0 && seen_by_nvml)
                n = gpu->sample.n_processes;
        if (n == 0)
                (void) snprintf(ret_counts, counts_size,
                                "in use by a client of the driver that is no process "
                                "(nvidia_drm, nvidia_uvm or another kernel module)");
        else
                (void) snprintf(ret_counts, counts_size, "held by %zu process%s", n, n == 1 ? "" : "es");
        (void) snprintf(ret, size, "%s", ret_counts);

        for (; named < gpu->n_holders; named++) {
                char holder[256];
                size_t wanted;

                gpu_holder_format(gpu->holders + named, holder, sizeof holder);
                wanted = used + strlen(named == 0 ? "held by " : ", ") + strlen(holder);
                if (wanted + (named + 1 < n ? MORE_SIZE : 1) > size)
                        break;
                used += (size_t) snprintf(
                                ret + used, size - used, "%s%s", named == 0 ? "held by " : ", ", holder);
        }
        if (named > 0 && named < n)
                (void) snprintf(ret + used, size - used, " and %zu more", n - named);
}

void gpu_explain_holders(Gpu *gpu) {
        char text[GPU_REASON_SIZE], counts[GPU_REASON_SIZE];

        gpu_format_holders(gpu, text, sizeof text - PREFIX_SIZE, counts, sizeof counts);
        put_reason(gpu, text, counts);
}

static void gpu_explain_use(Gpu *gpu) {
        char tenants[GPU_REASON_SIZE / 2], counts[GPU_REASON_SIZE];

        if (gpu->lease.n == 0) {
                gpu_explain_holders(gpu);
                return;
        }
        lease_format(&gpu->lease, tenants, sizeof tenants);
        if (gpu->lease.n == 1)
                (void) snprintf(counts, sizeof counts, "leased to a tenant");
        else
                (void) snprintf(counts, sizeof counts, "leased to %zu tenants", gpu->lease.n);
        gpu_set_named_reason(gpu, counts, "leased to %s", tenants);
}

int gpu_soil(Gpu *gpu, GpuState record, const char *why, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);

        if (gpu->record == GPU_STATE_QUARANTINED ||
                        (gpu->record != GPU_STATE_CLEAN && record == GPU_STATE_DIRTY))
                return 0;
        gpu->record = record;
        if (gpu_state(gpu) != GPU_STATE_IN_USE)
                gpu_set_reason(gpu, "%s", why);
        if (gpu_state(gpu) != before)
                gpu->state_since_realtime_usec = realtime_usec;
        gpu->changes |= GPU_CHANGE_STATE;
        return 1;
}

/* Begins every reason of a GPU that was clean until it was given to another partition. */
#define IN_CLIQUE "is in clique "

/* It may be given to a third one before its reset, or back. */
static void gpu_explain_clique(Gpu *gpu) {
        uint32_t expected;

        if (!startswith(gpu->reason, IN_CLIQUE) || gpu->sample.fabric_state != FABRIC_COMPLETED)
                return;
        if (gpu_clique_differs(gpu, &expected))
                gpu_set_reason(gpu, IN_CLIQUE "%u, clique %u is expected", gpu->sample.clique_id, expected);
        else
                gpu_set_reason(gpu, IN_CLIQUE "%u, and was to leave it since its last reset",
                                gpu->sample.clique_id);
}

/* A clean GPU for which the driver now wants something, or that was given to another partition. 1: it is
 * clean no more · 0. */
static int gpu_heed_action(Gpu *gpu, usec_t realtime_usec) {
        Cure cure = recovery_cure(gpu->sample.recovery_action);
        char why[GPU_REASON_SIZE];
        uint32_t expected;

        if (gpu->sample.recovery_action > RECOVERY_NONE) /* one that nobody knows here, too */
                recovery_explain(gpu->sample.recovery_action, why, sizeof why);
        else if (gpu_clique_differs(gpu, &expected))
                (void) snprintf(why, sizeof why, IN_CLIQUE "%u, clique %u is expected",
                                gpu->sample.clique_id, expected);
        else
                return 0;
        return gpu_soil(gpu, cure == CURE_REBOOT ? GPU_STATE_QUARANTINED : GPU_STATE_DIRTY, why,
                        realtime_usec);
}

/* After something about the state changed: the time since when, and a dirty record where a holder was seen.
 * 1: the record changed · 0. */
static int gpu_state_settle(Gpu *gpu, GpuState before, usec_t realtime_usec) {
        GpuState after = gpu_state(gpu);
        int r = 0;

        if ((after == GPU_STATE_IN_USE || after == GPU_STATE_LOST) && gpu->record == GPU_STATE_CLEAN) {
                gpu->record = GPU_STATE_DIRTY;
                r = 1;
        }
        if (after == GPU_STATE_CLEAN && gpu_heed_action(gpu, realtime_usec) > 0) {
                after = gpu->record;
                r = 1;
        }
        if (after == GPU_STATE_IN_USE)
                gpu_explain_use(gpu);
        else if (after == GPU_STATE_LOST)
                gpu_set_reason(gpu, "%s", gpu_why_lost(gpu));
        else if (before == GPU_STATE_IN_USE && after == GPU_STATE_DIRTY)
                gpu_set_reason(gpu, "was held by a process since its last reset");
        else if (before == GPU_STATE_IN_USE && after == GPU_STATE_UNKNOWN)
                gpu_set_reason(gpu, "not reset in this boot");
        else if (before == GPU_STATE_LOST)
                gpu_set_reason(gpu, "was lost since its last reset");
        else if (after == GPU_STATE_DIRTY)
                gpu_explain_clique(gpu);

        if (before != after) {
                gpu->state_since_realtime_usec = realtime_usec;
                gpu->changes |= GPU_CHANGE_STATE;
        }
        return r;
}

/* Which groups of what is published differ between two samples. */
static uint32_t sample_changes(const GpuSample *a, const GpuSample *b) {
        uint32_t changes = 0;

        if (a->index != b->index || a->minor != b->minor || a->mig != b->mig)
                changes |= GPU_CHANGE_IDENTITY;
        if (a->clique_id != b->clique_id || !streq(a->cluster_uuid, b->cluster_uuid) ||
                        a->fabric_state != b->fabric_state || a->fabric_status != b->fabric_status ||
                        !streq(a->fabric_status_text, b->fabric_status_text) ||
                        a->partition != b->partition || a->partition_clique != b->partition_clique ||
                        !streq(a->partition_name, b->partition_name))
                changes |= GPU_CHANGE_FABRIC | GPU_CHANGE_HEALTH;
        if (a->fabric_health != b->fabric_health || a->recovery_action != b->recovery_action ||
                        a->reset_required != b->reset_required || a->lost != b->lost ||
                        !streq(a->error, b->error))
                changes |= GPU_CHANGE_HEALTH | GPU_CHANGE_FABRIC;
        if (a->n_links != b->n_links || a->n_links_active != b->n_links_active ||
                        memcmp(a->links, b->links, sizeof a->links) != 0)
                changes |= GPU_CHANGE_LINKS | GPU_CHANGE_HEALTH;
        return changes;
}

/* What holds of the two words about the partition goes where everybody reads it. */
static void gpu_apply_partition(Gpu *gpu, GpuSample *sample) {
        const GpuPartition *said = gpu->set.id != UNKNOWN_U32 ? &gpu->set : &gpu->told, *more = said;

        if (gpu->set.id == gpu->told.id)
                more = &gpu->told; /* both mean the same one */
        sample->partition = said->id;
        sample->partition_clique = said->clique != UNKNOWN_U32 ? said->clique : more->clique;
        memcpy(sample->partition_name, said->name[0] ? said->name : more->name,
                        sizeof sample->partition_name);
        if (sample->partition != gpu->sample.partition ||
                        sample->partition_clique != gpu->sample.partition_clique)
                gpu->moves++;
}

/* The last word counts: that of SetPartition until the fabric moves the GPU to another partition than it
 * was in then. A query that does not answer has not moved it. True: what is on file about it changed. */
static bool gpu_hear_fabric(Gpu *gpu, const GpuSample *sample) {
        bool set = gpu->set.id != UNKNOWN_U32, moved = sample->partition != gpu->told.id;

        if (sample->partition == UNKNOWN_U32)
                return false;
        if (moved && sample->partition != gpu->set.id)
                gpu->set = (GpuPartition){ .id = UNKNOWN_U32, .clique = UNKNOWN_U32 };
        gpu->told = (GpuPartition){ .id = sample->partition, .clique = sample->partition_clique };
        memcpy(gpu->told.name, sample->partition_name, sizeof gpu->told.name);
        return set && moved;
}

void gpu_set_partition(Gpu *gpu, const GpuPartition *partition, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);
        GpuSample sample = gpu->sample;

        gpu->set = *partition;
        gpu_apply_partition(gpu, &sample);
        gpu->changes |= sample_changes(&gpu->sample, &sample);
        gpu->sample = sample;
        (void) gpu_state_settle(gpu, before, realtime_usec);
}

void gpu_forget_fabric(Gpu *gpu) {
        GpuPartition set = gpu->set;

        gpu->told = (GpuPartition){ .id = UNKNOWN_U32, .clique = UNKNOWN_U32 };
        gpu_set_partition(gpu, &set, gpu->state_since_realtime_usec);
}

/* A GPU that no longer says who it is stays who it was: that is published as constant. */
static void sample_keep_identity(GpuSample *sample, const GpuSample *known) {
        if (sample->name[0] == '\0')
                memcpy(sample->name, known->name, sizeof sample->name);
        if (sample->serial[0] == '\0')
                memcpy(sample->serial, known->serial, sizeof sample->serial);
}

int gpu_set_sample(Gpu *gpu, const GpuSample *seen, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);
        GpuSample taken = *seen, *sample = &taken;
        bool heard;

        heard = gpu_hear_fabric(gpu, seen);
        gpu_apply_partition(gpu, sample);
        sample_keep_identity(sample, &gpu->sample);
        gpu->changes |= sample_changes(&gpu->sample, sample);
        if (!gpu->probed || !gpu->present)
                gpu->changes |= GPU_CHANGE_IDENTITY | GPU_CHANGE_FABRIC | GPU_CHANGE_LINKS |
                                GPU_CHANGE_HEALTH;

        gpu->sample = *sample;
        gpu->probed = true;
        gpu->present = true;
        /* Names of processes are from a search of their own; NVML's empty list ends what they say only where
         * that search is older than the list. A bare open of the node is in neither, so nothing is made
         * clean here. */
        if (sample->n_processes == 0)
                gpu->n_holders = 0;
        return gpu_state_settle(gpu, before, realtime_usec) > 0 || heard;
}

int gpu_set_missing(Gpu *gpu, usec_t realtime_usec) {
        const GpuSample *known = &gpu->sample;
        GpuState before = gpu_state(gpu);
        GpuSample sample;

        if (gpu->probed && !gpu->present)
                return 0;

        /* Who and where it was, and no clique, link or demand of a GPU that is not there. */
        gpu_sample_init(&sample);
        memcpy(sample.uuid, known->uuid, sizeof sample.uuid);
        memcpy(sample.bus_id, known->bus_id, sizeof sample.bus_id);
        sample_keep_identity(&sample, known);
        sample.index = known->index;
        sample.minor = known->minor;
        gpu->present = false;
        (void) snprintf(sample.error, sizeof sample.error, "%s", gpu_why_lost(gpu));
        gpu_apply_partition(gpu, &sample);

        gpu->changes |= sample_changes(known, &sample) | GPU_CHANGE_LINKS;
        gpu->sample = sample;
        gpu->probed = true;
        gpu->n_holders = 0;
        return gpu_state_settle(gpu, before, realtime_usec);
}

int gpu_set_holders(Gpu *gpu, const GpuHolder *holders, size_t n, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);
        GpuHolder *mine = NULL;

        if (n > 0) {
                mine = reallocarray(NULL, n, sizeof *mine);
                if (!mine)
                        return -ENOMEM;
                memcpy(mine, holders, n * sizeof *mine);
        }

        free(gpu->holders);
        gpu->holders = mine;
        gpu->n_holders = n;
        /* The search covers NVML's lists too, and is newer than the last probe. */
        gpu->sample.n_processes = (uint32_t) n;
        return gpu_state_settle(gpu, before, realtime_usec);
}

/* What is published about the lease follows from it. */
static void gpu_lease_changed(Gpu *gpu, GpuState before, usec_t realtime_usec) {
        GpuState after = gpu_state(gpu);

        lease_format(&gpu->lease, gpu->tenant, sizeof gpu->tenant);
        if (after == GPU_STATE_IN_USE)
                gpu_explain_use(gpu);
        else if (after == GPU_STATE_DIRTY && gpu->last_tenant[0])
                gpu_set_named_reason(gpu, "a tenant had it", "%s had it", gpu->last_tenant);
        else if (after == GPU_STATE_UNKNOWN)
                gpu_set_reason(gpu, "not reset in this boot");
        if (after != before)
                gpu->state_since_realtime_usec = realtime_usec;
        gpu->changes |= GPU_CHANGE_STATE;
}

int gpu_book(Gpu *gpu, const char *tenant, bool shared, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);
        int r;

        r = lease_add(&gpu->lease, tenant, shared, realtime_usec);
        if (r <= 0)
                return r;
        if (gpu->record == GPU_STATE_CLEAN)
                gpu->record = GPU_STATE_DIRTY;
        gpu_lease_changed(gpu, before, realtime_usec);
        return 1;
}

void gpu_end_lease(Gpu *gpu, const char *tenant, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);
        bool last;

        if (!lease_find(&gpu->lease, tenant))
                return;
        (void) snprintf(gpu->last_tenant, sizeof gpu->last_tenant, "%s", tenant);
        (void) lease_remove(&gpu->lease, gpu->last_tenant, &last); /* `tenant` may be its own name for it */
        gpu_lease_changed(gpu, before, realtime_usec);
}

void gpu_put_lease(Gpu *gpu, Lease *lease, usec_t realtime_usec) {
        GpuState before = gpu_state(gpu);

        lease_done(&gpu->lease);
        gpu->lease = *lease;
        *lease = (Lease){};
        gpu_lease_changed(gpu, before, realtime_usec);
}
