/* SPDX-License-Identifier: MIT */
#include "cli/slurm-gpus.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"

int slurm_naming(const SlurmJob *job, GpuIndexRule rule, SlurmNaming *ret, Failure *failure) {
        size_t n = 1;

        if (strstr(job->visible_devices, "MIG-"))
                return failure_set(failure, CLI_FAILED,
                                "the job has MIG devices (%s), which cannot be reset one by one",
                                job->visible_devices);
        if (startswith(job->visible_devices, "GPU-")) {
                for (const char *c = job->visible_devices; *c != '\0'; c++)
                        n += *c == ',';
                if (n != job->n_positions)
                        return failure_set(failure, CLI_FAILED,
                                        "SLURM_JOB_GPUS has %zu GPUs and CUDA_VISIBLE_DEVICES %zu (%s)",
                                        job->n_positions, n, job->visible_devices);
                *ret = SLURM_NAMES_UUID;
                return 0;
        }

        switch (rule) {
        case GPU_INDEX_AUTO: *ret = SLURM_NAMES_PLACE; break;
        case GPU_INDEX_INDEX: *ret = SLURM_NAMES_INDEX; break;
        case GPU_INDEX_MINOR: *ret = SLURM_NAMES_MINOR; break;
        }
        return 0;
}

int slurm_gpus_from_indexes(const SlurmJob *job, GpuSet *ret, Failure *failure) {
        CLEANUP(gpu_set_done) GpuSet gpus = {};

        for (size_t i = 0; i < job->n_positions; i++) {
                int r = gpu_set_add_index(&gpus, job->positions[i], failure);

                if (r < 0)
                        return r;
        }

        *ret = gpus;
        gpus = (GpuSet){};
        return 0;
}

int slurm_gpus_from_uuids(const SlurmJob *job, const Tray *tray, GpuSet *ret, Failure *failure) {
        CLEANUP(gpu_set_done) GpuSet gpus = {};
        CLEANUP(strv_free_ptr) char **uuids = NULL;
        int r;

        r = list_parse(job->visible_devices, &uuids);
        if (r < 0)
                return failure_set(failure, CLI_FAILED,
                                "CUDA_VISIBLE_DEVICES is '%s', which is no list of GPUs",
                                job->visible_devices);
        STRV_FOREACH (item, uuids) {
                char uuid[GPU_UUID_SIZE];
                const GpuView *gpu;

                if (gpu_uuid_parse(*item, uuid) < 0)
                        return failure_set(failure, CLI_FAILED,
                                        "CUDA_VISIBLE_DEVICES has '%s', which is no UUID", *item);
                gpu = tray_gpu_by_uuid(tray, uuid);
                if (!gpu)
                        return failure_set(failure, CLI_NO_GPU, "there is no GPU %s", uuid);
                r = gpu_set_add(&gpus, gpu, failure);
                if (r < 0)
                        return r;
        }

        *ret = gpus;
        gpus = (GpuSet){};
        return 0;
}

int slurm_gpus_from_minors(const SlurmJob *job, const GresList *places, const Tray *tray, GpuSet *ret,
                Failure *failure) {
        CLEANUP(gpu_set_done) GpuSet gpus = {};

        for (size_t i = 0; i < job->n_positions; i++) {
                uint32_t minor = job->positions[i];
                const GpuView *gpu = NULL;
                int r;

                if (places && minor >= places->n_minors)
                        return failure_set(failure, CLI_NO_GPU,
                                        "SLURM_JOB_GPUS has place %u, and slurmd's gres list only %zu GPUs",
                                        minor, places->n_minors);
                if (places)
                        minor = places->minors[minor];
                r = gpu_find_by_minor(tray, minor, &gpu, failure);
                if (r >= 0)
                        r = gpu_set_add(&gpus, gpu, failure);
                if (r < 0)
                        return r;
        }

        *ret = gpus;
        gpus = (GpuSet){};
        return 0;
}
