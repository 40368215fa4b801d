/* SPDX-License-Identifier: MIT */
/* Which partition GPUs are expected in from their next reset on. The fabric itself is not changed from here:
 * no tray should be able to. */
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"

bool partition_name_is_valid(const char *name) {
        if (streq(name, "-") || strlen(name) >= sizeof((GpuPartition *) NULL)->name)
                return false;
        for (const char *p = name; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return false;
        return true;
}

static int check_partition(Manager *manager, const GpuPartition *partition) {
        if (partition->id > PARTITION_DEFAULT)
                return manager_fail(manager, -EINVAL, "A partition is a number up to %u (0: none)",
                                PARTITION_DEFAULT);
        if (!partition_name_is_valid(partition->name))
                return manager_fail(manager, -EINVAL,
                                "A partition's name is up to 63 printable characters without spaces");
        if (partition->id == PARTITION_NONE && (partition->name[0] || partition->clique != UNKNOWN_U32))
                return manager_fail(manager, -EINVAL, "No partition (0) has no name and no clique");
        return 0;
}

/* Whether it is where the caller believes it to be, or where it is to go: of two who move a GPU at the same
 * time the second is refused. */
static int check_from(Manager *manager, const Gpu *gpu, uint32_t from, uint32_t to) {
        const GpuSample *sample = &gpu->sample;

        if (sample->partition == from || sample->partition == to)
                return 0;
        if (sample->partition == UNKNOWN_U32)
                return manager_fail(manager, -EBUSY, "It is not known which partition GPU %u is in",
                                sample->index);
        return manager_fail(manager, -EBUSY, "GPU %u is in partition %u%s%s meanwhile", sample->index,
                        sample->partition, sample->partition_name[0] ? " " : "", sample->partition_name);
}

int manager_set_partition(Manager *manager, char *const *ids, const uint32_t *from,
                const GpuPartition *partition, Now now) {
        size_t n_ids = strv_length(ids);
        CLEANUP(free_ptr) Gpu **gpus = calloc(n_ids + 1, sizeof *gpus);
        CLEANUP(free_ptr) GpuPartition *before = calloc(n_ids + 1, sizeof *before);
        int r;

        if (!gpus || !before)
                return manager_fail(manager, -ENOMEM, "Out of memory");
        r = check_partition(manager, partition);
        if (r < 0)
                return r;
        if (n_ids == 0)
                return manager_fail(manager, -EINVAL, "Name the GPUs of the partition");
        for (size_t i = 0; i < n_ids; i++) {
                r = manager_find(manager, ids[i], &gpus[i]);
                if (r >= 0 && from)
                        r = check_from(manager, gpus[i], from[i], partition->id);
                if (r < 0)
                        return r;
        }

        for (size_t i = 0; i < n_ids; i++) {
                before[i] = gpus[i]->set;
                gpu_set_partition(gpus[i], partition, now.realtime_usec);
        }
        manager->state_stale = true;
        r = manager_write_state(manager);
        for (size_t i = n_ids; r < 0 && i > 0; i--) /* backwards: a GPU may have been named twice */
                gpu_set_partition(gpus[i - 1], &before[i - 1], now.realtime_usec);
        if (r >= 0)
                manager->poll_at_usec = now.monotonic_usec; /* what does the fabric say now? */

        manager_commit(manager, now);
        manager_dispatch(manager, now);
        return r;
}
