/* SPDX-License-Identifier: MIT */
#include "agent/observers/audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "agent/core/recovery.h"
#include "agent/log/journal.h"
#include "agent/log/message-ids.h"
#include "agent/observers/gpu-table.h"

/* What was last said of a GPU. */
typedef struct AuditGpu {
        const Gpu *gpu;
        GpuState state;
        bool quarantined;
        int32_t recovery_action;
        uint32_t xid;
        bool had_partition;
        uint32_t partition, expected_clique;
        bool had_clique; /* before the reset that runs */
        uint32_t clique_id;
        char cluster_uuid[sizeof(((GpuSample *) NULL)->cluster_uuid)];
} AuditGpu;

struct Audit {
        Manager *manager;
        DriverState driver_state;
        GpuTable gpus; /* of AuditGpu */
};

static int compare_index(const void *a, const void *b) {
        const Gpu *x = *(const Gpu *const *) a, *y = *(const Gpu *const *) b;

        return (x->sample.index > y->sample.index) - (x->sample.index < y->sample.index);
}

/* It was not reset, and should not be. */
static bool was_kept(const RequestItem *item) {
        return item->kept || item->outcome == OUTCOME_SKIPPED;
}

static bool all_kept(const Request *request) {
        for (size_t i = 0; i < request->n_items; i++)
                if (!was_kept(request->items + i))
                        return false;
        return true;
}

/* The request's GPUs that its line is about, by index: of a failure those that failed, of a reset those that
 * were reset. Their number, and *ret (to be freed); 0 without memory. */
static size_t collect_gpus(const Request *request, bool failed_only, const Gpu ***ret) {
        bool kept = all_kept(request);
        const Gpu **gpus;
        size_t n = 0;

        gpus = calloc(request->n_items + 1, sizeof *gpus);
        *ret = gpus;
        if (!gpus)
                return 0;
        for (size_t i = 0; i < request->n_items; i++)
                if (failed_only ? outcome_is_failure(request->items[i].outcome)
                                : was_kept(request->items + i) == kept)
                        gpus[n++] = request->items[i].gpu;
        qsort(gpus, n, sizeof *gpus, compare_index);
        return n;
}

static void print_indexes(FILE *file, const Gpu *const *gpus, size_t n) {
        for (size_t i = 0; i < n; i++)
                (void) fprintf(file, "%s%u", i > 0 ? "," : "", gpus[i]->sample.index);
}

/* What became of a request, for the journal. */
typedef enum AuditEnd {
        AUDIT_DONE,
        AUDIT_KEPT,    /* a release of what others still share, or GPUs in MIG mode */
        AUDIT_SKIPPED, /* handover.reset is off */
        AUDIT_FAILED,
        AUDIT_OBSERVED, /* failed, and the site only observes */
        _AUDIT_END_MAX,
} AuditEnd;

static AuditEnd request_end(const Request *request) {
        if (outcome_is_failure(request->outcome))
                return AUDIT_FAILED;
        if (request->observed)
                return AUDIT_OBSERVED;
        if (request->skipped)
                return AUDIT_SKIPPED;
        return all_kept(request) ? AUDIT_KEPT : AUDIT_DONE;
}

/* The gravest of its GPUs: of an observed failure the request itself has none. */
static Outcome request_outcome(const Request *request) {
        Outcome outcome = request->outcome;

        for (size_t i = 0; i < request->n_items; i++)
                outcome = outcome_gravest(outcome, request->items[i].outcome);
        return outcome;
}

static void print_what(FILE *file, const Request *request, const Gpu *const *gpus, size_t n) {
        static const char *const booking[_AUDIT_END_MAX] = {
                [AUDIT_DONE] = " booked",
                [AUDIT_KEPT] = " booked",
                [AUDIT_SKIPPED] = " booked",
                [AUDIT_FAILED] = " refused",
                [AUDIT_OBSERVED] = " would be refused",
        };
        static const char *const reset[_AUDIT_END_MAX] = {
                [AUDIT_DONE] = " reset",
                [AUDIT_KEPT] = " not reset",
                [AUDIT_SKIPPED] = " not reset",
                [AUDIT_FAILED] = " failed",
                [AUDIT_OBSERVED] = " failed",
        };
        AuditEnd end = request_end(request);

        (void) fputs(request->kind != REQUEST_ACQUIRE && (end == AUDIT_FAILED || end == AUDIT_OBSERVED)
                                        ? "GPU reset of "
                                        : "GPUs ",
                        file);
        print_indexes(file, gpus, n);
        (void) fputs((request->kind == REQUEST_ACQUIRE ? booking : reset)[end], file);
}

/* Whose leases a release by force has ended. */
static void print_forced(FILE *file, const Request *request) {
        for (size_t i = 0; request->force && i < request->n_items; i++) {
                const Lease *former = &request->items[i].former;
                char tenants[LEASE_LINE_SIZE];

                lease_format(former, tenants, sizeof tenants);
                if (former->n > 0 && !streq(tenants, request->tenant ?: ""))
                        (void) fprintf(file, " (by force: GPU %u was leased to %s)",
                                        request->items[i].gpu->sample.index, tenants);
        }
}

/* "job 26: GPUs 0,1 reset", "job 27: GPU reset of 0 failed: …", "GPUs 0,1 booked for pod/…" */
static void print_request(FILE *file, const Request *request, const Gpu *const *gpus, size_t n) {
        const char *job;
        size_t job_length = tenant_job(request->tenant ?: "", &job);
        AuditEnd end = request_end(request);

        if (job_length > 0)
                (void) fprintf(file, "job %.*s: ", (int) job_length, job);
        print_what(file, request, gpus, n);
        if (request->tenant && job_length == 0)
                (void) fprintf(file, " for %s", request->tenant);
        if (request->reason)
                (void) fprintf(file, " (%s)", request->reason);
        print_forced(file, request);
        if (end == AUDIT_FAILED || end == AUDIT_OBSERVED)
                (void) fprintf(file, ": %s",
                                request->message ? request->message
                                                 : outcome_to_string(request_outcome(request)));
        if (end == AUDIT_KEPT)
                (void) fputs(request->outcome == OUTCOME_SKIPPED ? ": MIG mode is on"
                                                                 : ": others share them still",
                                file);
        if (end == AUDIT_SKIPPED)
                (void) fputs(": handover.reset is off", file);
        if (end == AUDIT_OBSERVED)
                (void) fputs(" (mode is observe: nothing follows)", file);
}

static void add_message(JournalEntry *entry, const Request *request, const Gpu *const *gpus, size_t n) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);

        if (file)
                print_request(file, request, gpus, n);
        if (!file || text_stream_end(&stream) < 0)
                entry->error = -ENOMEM;
        else
                journal_add(entry, "MESSAGE", stream.text);
}

/* A booking that was there already is no news. */
static bool is_news(const Request *request) {
        if (request->n_items == 0)
                return false;
        if (request->kind == REQUEST_RESET || request->kind == REQUEST_RELEASE)
                return true;
        if (request->kind != REQUEST_ACQUIRE)
                return false;
        if (outcome_is_failure(request->outcome) || request->observed)
                return true;
        for (size_t i = 0; i < request->n_items; i++)
                if (request->items[i].booked)
                        return true;
        return false;
}

static const char* request_message_id(const Request *request, AuditEnd end) {
        bool booking = request->kind == REQUEST_ACQUIRE;

        switch (end) {
        case AUDIT_DONE: return booking ? MESSAGE_ID_GPUS_BOOKED : MESSAGE_ID_HANDOVER_DONE;
        case AUDIT_KEPT:
        case AUDIT_SKIPPED: return booking ? MESSAGE_ID_GPUS_BOOKED : MESSAGE_ID_HANDOVER_OFF;
        case AUDIT_FAILED: return booking ? MESSAGE_ID_BOOKING_REFUSED : MESSAGE_ID_HANDOVER_FAILED;
        case AUDIT_OBSERVED: return MESSAGE_ID_OBSERVED;
        case _AUDIT_END_MAX: break;
        }
        return MESSAGE_ID_HANDOVER_FAILED;
}

/* Whose leases a release by force has ended, for those who look for that. */
static void say_forced(const Request *request) {
        for (size_t i = 0; request->force && i < request->n_items; i++) {
                const RequestItem *item = request->items + i;

                for (size_t j = 0; j < item->former.n; j++) {
                        const char *tenant = item->former.tenants[j].name;
                        JournalEntry entry;

                        if (request->tenant && streq(tenant, request->tenant))
                                continue;
                        journal_begin(&entry, MESSAGE_ID_LEASE_FORCED, LOG_NOTICE, AUDIT_IDENTIFIER);
                        journal_add_format(&entry, "MESSAGE",
                                        "GPU %u was leased to %s, which was ended by force",
                                        item->gpu->sample.index, tenant);
                        journal_add(&entry, "GPUAGENT_TENANT", tenant);
                        journal_add(&entry, "GPUAGENT_GPU", item->gpu->sample.uuid);
                        journal_send(&entry);
                }
        }
}

static void on_request_finished(const Request *request, void *userdata) {
        CLEANUP(free_ptr) const Gpu **gpus = NULL;
        AuditEnd end = request_end(request);
        bool failed = end == AUDIT_FAILED || end == AUDIT_OBSERVED;
        bool quiet = request->kind == REQUEST_ACQUIRE && !failed;
        JournalEntry entry;
        size_t n;

        if (!is_news(request))
                return;
        say_forced(request);
        n = collect_gpus(request, failed, &gpus);

        /* Under a hook's own name are the ends of jobs, and what kept others from starting. */
        journal_begin(&entry, request_message_id(request, end),
                        end == AUDIT_FAILED                     ? LOG_ERR
                                        : end == AUDIT_OBSERVED ? LOG_WARNING
                                                                : LOG_INFO,
                        request->identifier && !quiet ? request->identifier : AUDIT_IDENTIFIER);
        add_message(&entry, request, gpus, n);
        journal_add(&entry, "GPUAGENT_TENANT", request->tenant ? request->tenant : "");
        for (size_t i = 0; i < n; i++)
                journal_add(&entry, "GPUAGENT_GPU", gpus[i]->sample.uuid);
        journal_add(&entry, "GPUAGENT_RESULT",
                        failed ? outcome_error(request_outcome(request))
                                        : end == AUDIT_SKIPPED || end == AUDIT_KEPT
                                        ? "skipped"
                                        : outcome_to_string(request->outcome == OUTCOME_SKIPPED
                                                                          ? OUTCOME_DONE /* others were */
                                                                          : request->outcome));
        journal_add_format(&entry, "GPUAGENT_DURATION_USEC", "%lu",
                        (unsigned long) (request->finished_usec - request->started_usec));
        journal_send(&entry);
}

static void say_of_gpu(const Gpu *gpu, const char *message_id, int priority, const char *result,
                const char *text, const char *why) {
        JournalEntry entry;

        journal_begin(&entry, message_id, priority, AUDIT_IDENTIFIER);
        journal_add_format(&entry, "MESSAGE", "GPU %u %s%s%s", gpu->sample.index, text,
                        why[0] != '\0' ? ": " : "", why);
        journal_add(&entry, "GPUAGENT_GPU", gpu->sample.uuid);
        if (result)
                journal_add(&entry, "GPUAGENT_RESULT", result);
        journal_send(&entry);
}

static void say_state(const Gpu *gpu, GpuState state) {
        if (state == GPU_STATE_LOST)
                say_of_gpu(gpu, MESSAGE_ID_GPU_LOST, LOG_ERR, NULL, "is lost", gpu->reason);
        if (state == GPU_STATE_QUARANTINED)
                say_of_gpu(gpu, MESSAGE_ID_GPU_QUARANTINED, LOG_ERR,
                                gpu->last_reset.realtime_usec > 0 ? outcome_error(gpu->last_reset.outcome)
                                                                  : NULL,
                                "is quarantined", gpu->reason);
}

/* Where it was all along is no news. */
static void say_partition(const Gpu *gpu, AuditGpu *last) {
        const GpuSample *sample = &gpu->sample;
        bool news = last->had_partition || gpu->set.id != UNKNOWN_U32;
        uint32_t clique = UNKNOWN_U32;
        char id[16], text[128];
        int n;

        (void) gpu_expected_clique(gpu, &clique);
        if (sample->partition == UNKNOWN_U32 ||
                        (last->had_partition && last->partition == sample->partition &&
                                        last->expected_clique == clique))
                return;
        last->had_partition = true;
        last->partition = sample->partition;
        last->expected_clique = clique;
        if (!news)
                return;

        (void) snprintf(id, sizeof id, "%u", sample->partition);
        n = snprintf(text, sizeof text, "%s%s%s", id, sample->partition_name[0] ? " " : "",
                        sample->partition_name);
        if (clique != UNKNOWN_U32)
                (void) snprintf(text + n, sizeof text - (size_t) n, ", clique %u", clique);
        say_of_gpu(gpu, MESSAGE_ID_PARTITION_CHANGED, LOG_NOTICE, id, "was given to another partition",
                        text);
}

static void on_gpu_changed(Gpu *gpu, uint32_t changes, void *userdata) {
        Audit *audit = userdata;
        GpuState state = gpu_state(gpu);
        char text[32];
        AuditGpu *last;

        last = gpu_table_get(&audit->gpus, gpu);
        if (!last)
                return; /* no memory: the state itself is published all the same */

        if (state != last->state) {
                last->state = state;
                say_state(gpu, state);
        }
        if (last->quarantined && gpu->record != GPU_STATE_QUARANTINED)
                say_of_gpu(gpu, MESSAGE_ID_QUARANTINE_LIFTED, LOG_NOTICE, gpu_state_to_string(state),
                                "is quarantined no more", "");
        last->quarantined = gpu->record == GPU_STATE_QUARANTINED;
        if (gpu->sample.recovery_action != last->recovery_action) {
                last->recovery_action = gpu->sample.recovery_action;
                recovery_action_format(gpu->sample.recovery_action, text, sizeof text);
                if (recovery_cure(gpu->sample.recovery_action) == CURE_REBOOT)
                        say_of_gpu(gpu, MESSAGE_ID_GPU_NEEDS_REBOOT, LOG_ERR, text,
                                        "needs more than a reset; the driver asks for", text);
        }
        if (changes & GPU_CHANGE_FABRIC)
                say_partition(gpu, last);
        if (gpu->last_xid != last->xid) {
                last->xid = gpu->last_xid;
                (void) snprintf(text, sizeof text, "%u", gpu->last_xid);
                say_of_gpu(gpu, MESSAGE_ID_XID, LOG_WARNING, text, "had an Xid", text);
        }
}

static void on_reset_started(Gpu *gpu, const char *tenant, void *userdata) {
        Audit *audit = userdata;
        AuditGpu *last;

        last = gpu_table_get(&audit->gpus, gpu);
        if (!last)
                return;
        last->had_clique = gpu_sample_has_clique(&gpu->sample);
        last->clique_id = gpu->sample.clique_id;
        memcpy(last->cluster_uuid, gpu->sample.cluster_uuid, sizeof last->cluster_uuid);
}

static void on_reset_finished(
                Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata) {
        const GpuSample *sample = &gpu->sample;
        Audit *audit = userdata;
        const AuditGpu *last;
        char text[64];

        last = gpu_table_find(&audit->gpus, gpu);
        if (!last || !last->had_clique || !gpu_sample_has_clique(sample) ||
                        (last->clique_id == sample->clique_id &&
                                        streq(last->cluster_uuid, sample->cluster_uuid)))
                return;
        (void) snprintf(text, sizeof text, "%s.%u", sample->cluster_uuid, sample->clique_id);
        say_of_gpu(gpu, MESSAGE_ID_CLIQUE_CHANGED, LOG_NOTICE, text, "is in another clique after its reset",
                        text);
}

/* "job 26: GPUs 0 reset", "GPU reset of 0 failed before a booking: GPU 0 …" */
static void add_unasked_message(JournalEntry *entry, const Gpu *gpu, const char *tenant, Outcome outcome,
                const char *detail) {
        bool failed = outcome_is_failure(outcome);
        char prefix[TENANT_MAX + 8] = "", suffix[TENANT_MAX + 8] = "";
        const char *job;
        size_t n = tenant_job(tenant, &job);

        if (n > 0)
                (void) snprintf(prefix, sizeof prefix, "job %.*s: ", (int) n, job);
        else if (tenant[0] != '\0')
                (void) snprintf(suffix, sizeof suffix, " for %s", tenant);
        else
                (void) snprintf(suffix, sizeof suffix, " before a booking");
        journal_add_format(entry, "MESSAGE", "%s%s%u %s%s%s%s", prefix, failed ? "GPU reset of " : "GPUs ",
                        gpu->sample.index,
                        failed                                       ? "failed"
                                        : outcome == OUTCOME_SKIPPED ? "not reset"
                                                                     : "reset",
                        suffix,
                        failed                                       ? ": "
                                        : outcome == OUTCOME_SKIPPED ? ": MIG mode is on"
                                                                     : "",
                        failed ? detail : "");
}

/* A handover whose end no request tells of: it made GPUs ready for a booking, followed the end of a tenant
 * that was missed, or took longer than its caller waited. */
static void on_handover_unasked(
                Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata) {
        bool failed = outcome_is_failure(outcome);
        JournalEntry entry;

        journal_begin(&entry,
                        failed                                       ? MESSAGE_ID_HANDOVER_FAILED
                                        : outcome == OUTCOME_SKIPPED ? MESSAGE_ID_HANDOVER_OFF
                                                                     : MESSAGE_ID_HANDOVER_DONE,
                        failed ? LOG_ERR : LOG_INFO, AUDIT_IDENTIFIER);
        add_unasked_message(&entry, gpu, tenant, outcome, detail);
        journal_add(&entry, "GPUAGENT_TENANT", tenant);
        journal_add(&entry, "GPUAGENT_GPU", gpu->sample.uuid);
        journal_add(&entry, "GPUAGENT_RESULT", failed ? outcome_error(outcome) : outcome_to_string(outcome));
        journal_add_format(&entry, "GPUAGENT_DURATION_USEC", "%lu",
                        (unsigned long) gpu->last_reset.duration_usec);
        journal_send(&entry);
}

static void on_gpu_removed(Gpu *gpu, void *userdata) {
        Audit *audit = userdata;

        gpu_table_remove(&audit->gpus, gpu);
        say_of_gpu(gpu, MESSAGE_ID_GPU_FORGOTTEN, LOG_NOTICE, NULL, "is forgotten", "");
}

static void on_lease_reclaimed(Gpu *gpu, const char *tenant, void *userdata) {
        JournalEntry entry;

        journal_begin(&entry, MESSAGE_ID_LEASE_RECLAIMED, LOG_NOTICE, AUDIT_IDENTIFIER);
        journal_add_format(&entry, "MESSAGE",
                        "GPU %u was leased to %s, which is gone from this node: the lease ends",
                        gpu->sample.index, tenant);
        journal_add(&entry, "GPUAGENT_TENANT", tenant);
        journal_add(&entry, "GPUAGENT_GPU", gpu->sample.uuid);
        journal_send(&entry);
}

static void say_driver_state(Audit *audit) {
        DriverState state = manager_driver_state(audit->manager);
        const char *error = manager_driver_error(audit->manager);
        JournalEntry entry;

        if (state == audit->driver_state)
                return;
        audit->driver_state = state;

        journal_begin(&entry, MESSAGE_ID_DRIVER_STATE, state == DRIVER_OK ? LOG_INFO : LOG_WARNING,
                        AUDIT_IDENTIFIER);
        journal_add_format(&entry, "MESSAGE", "The GPU driver is %s%s%s", driver_state_to_string(state),
                        error[0] != '\0' ? ": " : "", error);
        journal_add(&entry, "GPUAGENT_RESULT", driver_state_to_string(state));
        journal_send(&entry);
}

static void say_maintenance(const Audit *audit) {
        const char *reason = manager_maintenance(audit->manager);
        JournalEntry entry;

        journal_begin(&entry, MESSAGE_ID_MAINTENANCE, LOG_NOTICE, AUDIT_IDENTIFIER);
        journal_add_format(&entry, "MESSAGE", "Maintenance is %s%s%s", reason ? "on" : "off",
                        reason && reason[0] != '\0' ? ": " : "", reason ? reason : "");
        journal_add(&entry, "GPUAGENT_RESULT", reason ? "on" : "off");
        journal_send(&entry);
}

static void on_manager_changed(uint32_t changes, void *userdata) {
        Audit *audit = userdata;

        say_driver_state(audit);
        if (changes & MANAGER_CHANGE_MAINTENANCE)
                say_maintenance(audit);
}

int audit_new(Manager *manager, Audit **ret) {
        CLEANUP(audit_free_ptr) Audit *audit = NULL;
        ManagerObserver observer = {
                .on_gpu_removed = on_gpu_removed,
                .on_gpu_changed = on_gpu_changed,
                .on_manager_changed = on_manager_changed,
                .on_reset_started = on_reset_started,
                .on_reset_finished = on_reset_finished,
                .on_request_finished = on_request_finished,
                .on_lease_reclaimed = on_lease_reclaimed,
                .on_handover_unasked = on_handover_unasked,
        };
        int r;

        audit = calloc(1, sizeof *audit);
        if (!audit)
                return -ENOMEM;
        audit->manager = manager;
        audit->driver_state = manager_driver_state(manager);
        audit->gpus.entry_size = sizeof(AuditGpu);

        observer.userdata = audit;
        r = manager_add_observer(manager, &observer);
        if (r < 0)
                return r;

        *ret = take_ptr(&audit);
        return 0;
}

Audit* audit_free(Audit *audit) {
        if (!audit)
                return NULL;
        gpu_table_done(&audit->gpus);
        free(audit);
        return NULL;
}
