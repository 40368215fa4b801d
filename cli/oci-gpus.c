/* SPDX-License-Identifier: MIT */
#include "cli/oci-gpus.h"

#include "agent/base/text.h"
#include "cli/gpu-list.h"

/* What is off the bus no container gets. */
static size_t count_all(const Tray *tray) {
        size_t n = 0;

        for (size_t i = 0; i < tray->n_gpus; i++)
                n += !streq(tray->gpus[i].state, "lost");
        return n;
}

static int add_all(const Tray *tray, GpuSet *set, Failure *failure) {
        int r = 0;

        for (size_t i = 0; i < tray->n_gpus && r >= 0; i++)
                if (!streq(tray->gpus[i].state, "lost"))
                        r = gpu_set_add(set, &tray->gpus[i], failure);
        if (r >= 0 && !set->ids)
                return failure_set(
                                failure, CLI_NO_GPU, "the container is given all GPUs, and there are none");
        return r;
}

static int add_one(const char *name, const Tray *tray, GpuSet *set, Failure *failure) {
        const char *number = startswith(name, "/dev/nvidia");
        const GpuView *gpu = NULL;
        uint32_t minor;
        int r;

        if (streq(name, "all"))
                return add_all(tray, set, failure);
        if (number && parse_u32(number, UINT32_MAX, &minor) >= 0)
                r = gpu_find_by_minor(tray, minor, &gpu, failure);
        else
                r = gpu_list_find(tray, name, &gpu, failure);
        return r < 0 ? r : gpu_set_add(set, gpu, failure);
}

int oci_gpus_find(const OciContainer *container, char *const *gpus, const Tray *tray, const Config *config,
                GpuSet *ret, Failure *failure) {
        CLEANUP(gpu_set_done) GpuSet set = {};

        for (; *gpus; gpus++) {
                int r = 0;

                if (!oci_gpu_is_mig(*gpus))
                        r = add_one(*gpus, tray, &set, failure);
                else if (config->handover.mig == MIG_REFUSE)
                        return failure_set(failure, CLI_FAILED,
                                        "the container has MIG devices (%s), "
                                        "which cannot be reset one by one",
                                        *gpus);
                if (r < 0)
                        return r;
        }
        /* NVIDIA's runtime makes device nodes of NVIDIA_VISIBLE_DEVICES=all, and takes the variable away. */
        if (!set.ids ||
                        (oci_observes(container, config->oci.observers) &&
                                        strv_length(set.ids) >= count_all(tray)))
                return 0;

        *ret = set;
        set = (GpuSet){};
        return 1;
}
