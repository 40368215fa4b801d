/* SPDX-License-Identifier: MIT */
/* Which GPUs a job had. What cannot be told for certain is refused: the wrong GPU may be another job's. */
#pragma once

#include "agent/config/config.h"
#include "cli/gpu-set.h"
#include "cli/slurm-gres.h"

/* What the job's numbers or UUIDs are. */
typedef enum SlurmNaming {
        SLURM_NAMES_UUID,  /* CUDA_VISIBLE_DEVICES has the UUIDs */
        SLURM_NAMES_INDEX, /* the numbers are NVML's indexes */
        SLURM_NAMES_MINOR, /* the numbers are N of /dev/nvidiaN */
        SLURM_NAMES_PLACE, /* the numbers are places in slurmd's gres list */
} SlurmNaming;

/* 0 and *ret · negative: MIG devices, or the two variables contradict each other; *failure says so. For
 * GPU_INDEX_AUTO the answer is SLURM_NAMES_UUID or SLURM_NAMES_PLACE. */
int slurm_naming(const SlurmJob *job, GpuIndexRule rule, SlurmNaming *ret, Failure *failure);

/* The GPUs by the job's indexes. 0 and *ret · negative, and *failure says why. */
int slurm_gpus_from_indexes(const SlurmJob *job, GpuSet *ret, Failure *failure);

/* The GPUs by the UUIDs in CUDA_VISIBLE_DEVICES. As above. */
int slurm_gpus_from_uuids(const SlurmJob *job, const Tray *tray, GpuSet *ret, Failure *failure);

/* The GPUs by their minors: the job's numbers, or what `places` has for them. As above. */
int slurm_gpus_from_minors(const SlurmJob *job, const GresList *places, const Tray *tray, GpuSet *ret,
                Failure *failure);
