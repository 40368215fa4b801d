/* SPDX-License-Identifier: MIT */
#include "cli/gpu-set.h"

#include <errno.h>

#include "agent/base/text.h"

void gpu_set_done(GpuSet *set) {
        (void) strv_free(set->ids);
        free(set->names);
        *set = (GpuSet){};
}

static int add(GpuSet *set, const char *id, const char *name, Failure *failure) {
        char *names;
        int r;

        if (strv_contains(set->ids, id))
                return 0;
        r = strv_append(&set->ids, id);
        if (r >= 0 && asprintf(&names, "%s%s%s", set->names ?: "", set->names ? "," : "", name) < 0)
                r = -ENOMEM;
        if (r < 0)
                return failure_errno(failure, r, "cannot name the GPUs");
        free(set->names);
        set->names = names;
        return 0;
}

int gpu_set_add(GpuSet *set, const GpuView *gpu, Failure *failure) {
        char name[GPU_UUID_SIZE];

        gpu_view_format(gpu, name, sizeof name);
        return add(set, gpu->uuid, name, failure);
}

int gpu_set_add_index(GpuSet *set, uint32_t index, Failure *failure) {
        char name[16];

        (void) snprintf(name, sizeof name, "%u", index);
        return add(set, name, name, failure);
}

int gpu_find_by_minor(const Tray *tray, uint32_t minor, const GpuView **ret, Failure *failure) {
        const GpuView *found = NULL;

        for (size_t i = 0; i < tray->n_gpus; i++) {
                if (tray->gpus[i].minor != minor)
                        continue;
                if (found)
                        return failure_set(
                                        failure, CLI_FAILED, "more than one GPU has /dev/nvidia%u", minor);
                found = &tray->gpus[i];
        }
        if (!found)
                return failure_set(failure, CLI_NO_GPU, "no GPU has /dev/nvidia%u", minor);

        *ret = found;
        return 0;
}
