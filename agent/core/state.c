/* SPDX-License-Identifier: MIT */
#include "agent/core/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"

/* "gpuagent-state 1", lines "key value" about the tray, then for each GPU a line "gpu UUID" and lines "key
 * value", one "lease" a tenant, then "end". Texts come from the vendor side or the core and are printable;
 * they end with their line. */
#define HEADER "gpuagent-state 1"

/* What the next agent has to say about the record: not what is going on now, but that it was. */
static const char* former_reason(const Gpu *gpu) {
        switch (gpu_state(gpu)) {
        case GPU_STATE_IN_USE:
                if (gpu->lease.n > 0)
                        return NULL;
                return gpu->record == GPU_STATE_UNKNOWN ? "not reset in this boot"
                                                        : "was held by a process since its last reset";
        case GPU_STATE_RESETTING: return "its reset did not end";
        case GPU_STATE_LOST: return "was lost since its last reset";
        case GPU_STATE_UNKNOWN:
        case GPU_STATE_CLEAN:
        case GPU_STATE_DIRTY:
        case GPU_STATE_QUARANTINED:
        case _GPU_STATE_MAX:
        case _GPU_STATE_INVALID: break;
        }
        return NULL;
}

static bool write_last_reset(FILE *file, const GpuLastReset *last) {
        bool done;

        done = fprintf(file, "reset-at %llu\nreset-at-monotonic %llu\nreset-usec %llu\nreset-result %s\n",
                               (unsigned long long) last->realtime_usec,
                               (unsigned long long) last->monotonic_usec,
                               (unsigned long long) last->duration_usec,
                               outcome_to_string(last->outcome)) >= 0;
        if (last->detail[0])
                done &= fprintf(file, "reset-detail %s\n", last->detail) >= 0;
        if (last->tenant[0])
                done &= fprintf(file, "reset-tenant %s\n", last->tenant) >= 0;
        return done;
}

static bool write_leases(FILE *file, const Lease *lease) {
        bool done = true;

        for (size_t i = 0; i < lease->n; i++)
                done &= fprintf(file, "lease %s %s %llu %s\n", lease->shared ? "shared" : "sole",
                                        lease->tenants[i].seen_alive ? "alive" : "unseen",
                                        (unsigned long long) lease->tenants[i].since_realtime_usec,
                                        lease->tenants[i].name) >= 0;
        return done;
}

static bool write_tray(FILE *file, const StateTray *tray) {
        bool done = true;

        if (tray->maintenance)
                done &= fprintf(file, "maintenance %s\n", tray->maintenance_reason) >= 0;
        if (tray->quiesced)
                done &= fputs("quiesced yes\n", file) >= 0;
        return done;
}

/* "partition ID CLIQUE TOLD NAME": what SetPartition said, and the partition fabric.query told of then. A
 * number that is unknown is all ones. */
static bool write_partition(FILE *file, const Gpu *gpu) {
        return fprintf(file, "partition %u %u %u %s\n", gpu->set.id, gpu->set.clique, gpu->told.id,
                               gpu->set.name) >= 0;
}

/* Whether all of it was taken: a memory stream that could not grow says so at each call, and not
 * afterwards. */
static bool write_gpu(FILE *file, const Gpu *gpu) {
        const char *former = former_reason(gpu);
        bool done;

        done = fprintf(file,
                               "gpu %s\nindex %u\nminor %u\nbus-id %s\nname %s\nserial %s\nstate %s\n"
                               "reset-count %llu\nsince %llu\n",
                               gpu->sample.uuid, gpu->sample.index, gpu->sample.minor, gpu->sample.bus_id,
                               gpu->sample.name, gpu->sample.serial, gpu_state_to_string(gpu->record),
                               (unsigned long long) gpu->reset_count,
                               (unsigned long long) gpu->state_since_realtime_usec) >= 0;
        if (former || gpu->reason[0])
                done &= fprintf(file, "reason %s\nreason-counts %s\n", former ?: gpu->reason,
                                        former ?: gpu->reason_counts) >= 0;
        if (gpu->last_tenant[0])
                done &= fprintf(file, "last-tenant %s\n", gpu->last_tenant) >= 0;
        if (gpu->last_reset.realtime_usec > 0)
                done &= write_last_reset(file, &gpu->last_reset);
        if (gpu->set.id != UNKNOWN_U32)
                done &= write_partition(file, gpu);
        done &= write_leases(file, &gpu->lease);
        return done;
}

int state_write(const char *path, const Inventory *inventory, const StateTray *tray) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        bool done;

        if (!file)
                return -ENOMEM;
        done = fputs(HEADER "\n", file) >= 0;
        done &= write_tray(file, tray);
        for (size_t i = 0; i < inventory->n; i++)
                done &= write_gpu(file, inventory->by_index[i]);
        done &= fputs("end\n", file) >= 0;
        done &= text_stream_end(&stream) >= 0;
        return done ? file_write_atomic(path, stream.text, stream.size, 0600) : -ENOMEM;
}

/* Nothing that was not printable was ever written. */
static int read_line(const char *value, char *ret, size_t size) {
        if (!text_is_printable(value) || strlen(value) >= size)
                return -EBADMSG;
        (void) snprintf(ret, size, "%s", value);
        return 0;
}

static int read_tenant(const char *value, char ret[static TENANT_MAX + 1]) {
        if (!tenant_is_valid(value))
                return -EBADMSG;
        return read_line(value, ret, TENANT_MAX + 1);
}

static int read_identity(Gpu *gpu, const char *key, const char *value) {
        if (streq(key, "index"))
                return parse_u32(value, UINT32_MAX, &gpu->sample.index);
        if (streq(key, "minor"))
                return parse_u32(value, UINT32_MAX, &gpu->sample.minor);
        if (streq(key, "bus-id"))
                return *value ? bus_id_parse(value, gpu->sample.bus_id) : 0;
        if (streq(key, "name"))
                return read_line(value, gpu->sample.name, sizeof gpu->sample.name);
        if (streq(key, "serial"))
                return read_line(value, gpu->sample.serial, sizeof gpu->sample.serial);
        return -ENOENT;
}

static int read_last_reset(GpuLastReset *last, const char *key, const char *value) {
        if (streq(key, "reset-at"))
                return parse_u64(value, UINT64_MAX, &last->realtime_usec);
        if (streq(key, "reset-at-monotonic"))
                return parse_u64(value, UINT64_MAX, &last->monotonic_usec);
        if (streq(key, "reset-usec"))
                return parse_u64(value, UINT64_MAX, &last->duration_usec);
        if (streq(key, "reset-detail"))
                return read_line(value, last->detail, sizeof last->detail);
        if (streq(key, "reset-tenant"))
                return read_tenant(value, last->tenant);
        if (streq(key, "reset-result")) {
                last->outcome = outcome_from_string(value);
                return last->outcome < 0 ? -EBADMSG : 0;
        }
        return -ENOENT;
}

static int read_record(Gpu *gpu, const char *key, const char *value) {
        if (streq(key, "state")) {
                GpuState state = gpu_state_from_string(value);

                if (state != GPU_STATE_UNKNOWN && state != GPU_STATE_CLEAN && state != GPU_STATE_DIRTY &&
                                state != GPU_STATE_QUARANTINED)
                        return -EBADMSG;
                gpu->record = state;
                return 0;
        }
        if (streq(key, "reset-count"))
                return parse_u64(value, UINT64_MAX, &gpu->reset_count);
        if (streq(key, "since"))
                return parse_u64(value, UINT64_MAX, &gpu->state_since_realtime_usec);
        if (streq(key, "reason"))
                return read_line(value, gpu->reason, sizeof gpu->reason);
        if (streq(key, "reason-counts"))
                return read_line(value, gpu->reason_counts, sizeof gpu->reason_counts);
        if (streq(key, "last-tenant"))
                return read_tenant(value, gpu->last_tenant);
        return -ENOENT;
}

/* "sole unseen 1700000000000000 slurm/26.0" */
static int read_lease(Gpu *gpu, char *value) {
        char *how = strsep(&value, " "), *sign = value ? strsep(&value, " ") : NULL,
             *since = value ? strsep(&value, " ") : NULL;
        bool shared, alive;
        uint64_t usec;
        int r;

        if (!value || parse_u64(since, UINT64_MAX, &usec) < 0 || !tenant_is_valid(value))
                return -EBADMSG;
        shared = streq(how, "shared");
        alive = streq(sign, "alive");
        if ((!shared && !streq(how, "sole")) || (!alive && !streq(sign, "unseen")))
                return -EBADMSG;

        r = lease_add(&gpu->lease, value, shared, usec);
        if (r <= 0) /* twice, or beside a lease that is not shared */
                return r == -ENOMEM ? r : -EBADMSG;
        gpu->lease.tenants[gpu->lease.n - 1].seen_alive = alive;
        lease_format(&gpu->lease, gpu->tenant, sizeof gpu->tenant);
        return 0;
}

static int read_partition(Gpu *gpu, char *value) {
        char *id = strsep(&value, " "), *clique = value ? strsep(&value, " ") : NULL,
             *told = value ? strsep(&value, " ") : NULL;
        GpuPartition partition = {};

        if (!value || parse_u32(id, PARTITION_DEFAULT, &partition.id) < 0 ||
                        parse_u32(clique, UINT32_MAX, &partition.clique) < 0 ||
                        parse_u32(told, UINT32_MAX, &gpu->told.id) < 0)
                return -EBADMSG;
        if (read_line(value, partition.name, sizeof partition.name) < 0)
                return -EBADMSG;
        gpu_set_partition(gpu, &partition, gpu->state_since_realtime_usec);
        return 0;
}

static int read_tray(StateTray *tray, const char *key, const char *value) {
        if (streq(key, "maintenance")) {
                tray->maintenance = true;
                return read_line(value, tray->maintenance_reason, sizeof tray->maintenance_reason);
        }
        if (streq(key, "quiesced") && streq(value, "yes")) {
                tray->quiesced = true;
                return 0;
        }
        return -EBADMSG;
}

static int read_key(Gpu *gpu, const char *key, char *value) {
        int r;

        if (streq(key, "lease"))
                return read_lease(gpu, value);
        if (streq(key, "partition"))
                return read_partition(gpu, value);
        r = read_identity(gpu, key, value);
        if (r == -ENOENT)
                r = read_last_reset(&gpu->last_reset, key, value);
        if (r == -ENOENT)
                r = read_record(gpu, key, value);
        /* A key of a later version, too: what it says about cleanliness is not known here. */
        return r < 0 ? -EBADMSG : 0;
}

static int read_gpu(const char *uuid, Inventory *inventory, Gpu **ret) {
        char normal[GPU_UUID_SIZE];
        Gpu *gpu;
        int r;

        if (gpu_uuid_parse(uuid, normal) < 0 || inventory_by_uuid(inventory, normal))
                return -EBADMSG;
        r = gpu_new(normal, &gpu);
        if (r < 0)
                return r;
        r = inventory_add(inventory, gpu);
        if (r < 0) {
                (void) gpu_free(gpu);
                return r;
        }
        *ret = gpu;
        return 0;
}

static int read_lines(char *text, Inventory *inventory, StateTray *tray) {
        char *line, *rest = text;
        Gpu *gpu = NULL;

        line = strsep(&rest, "\n");
        if (!streq(line, HEADER))
                return -EBADMSG;

        while ((line = strsep(&rest, "\n"))) {
                char *value = line, *key = strsep(&value, " ");
                int r;

                if (streq(key, "end") && !value)
                        return rest && *rest == '\0' ? 1 : -EBADMSG;
                if (!value)
                        return -EBADMSG;
                if (streq(key, "gpu"))
                        r = read_gpu(value, inventory, &gpu);
                else
                        r = gpu ? read_key(gpu, key, value) : read_tray(tray, key, value);
                if (r < 0)
                        return r;
        }
        return -EBADMSG; /* no "end": torn */
}

/* A GPU that somebody has is not clean, whatever the file says. */
static int check_leases(const Inventory *inventory) {
        for (size_t i = 0; i < inventory->n; i++)
                if (inventory->by_uuid[i]->lease.n > 0 && inventory->by_uuid[i]->record == GPU_STATE_CLEAN)
                        return -EBADMSG;
        return 1;
}

int state_parse(char *text, Inventory *inventory, StateTray *ret_tray) {
        int r;

        *ret_tray = (StateTray){};
        r = read_lines(text, inventory, ret_tray);
        if (r > 0)
                r = check_leases(inventory);
        if (r < 0) {
                inventory_done(inventory);
                *ret_tray = (StateTray){};
        } else
                inventory_sort(inventory);
        return r;
}

int state_read(const char *path, Inventory *inventory, StateTray *ret_tray) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t size;
        int r;

        *ret_tray = (StateTray){};
        r = file_read(AT_FDCWD, path, STATE_SIZE_MAX, &text, &size);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (strlen(text) != size)
                return -EBADMSG;
        return state_parse(text, inventory, ret_tray);
}
