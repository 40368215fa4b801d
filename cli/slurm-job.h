/* SPDX-License-Identifier: MIT */
/* What slurmd's environment says about the job that a script of its runs for. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/base/parse.h"
#include "cli/print.h"

/* The strings are the environment's. */
typedef struct SlurmJob {
        uint32_t id;
        char tenant[TENANT_MAX + 1]; /* "slurm/ID.N", N the restarts */
        const char *gpus;            /* SLURM_JOB_GPUS */
        uint32_t *positions;         /* the same as numbers: places in slurmd's own list of GPUs */
        size_t n_positions;
        const char *visible_devices; /* CUDA_VISIBLE_DEVICES, "" if unset */
        const char *node;            /* SLURMD_NODENAME, NULL if unset */
        const char *configuration;   /* SLURM_CONF, NULL if unset */
} SlurmJob;

void slurm_job_done(SlurmJob *job);

/* All but the positions. 1 and *ret · 0: the job has no GPUs · negative, and *failure says what is wrong
 * with the environment. */
int slurm_job_read(SlurmJob *ret, Failure *failure);

/* 0 · negative, and *failure says what is wrong with the list. */
int slurm_job_read_positions(SlurmJob *job, Failure *failure);
