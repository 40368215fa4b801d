/* SPDX-License-Identifier: MIT */
#include "cli/slurm-job.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/text.h"

/* Far above what a node can have; a number beyond is no position. */
#define POSITION_MAX 65535U

void slurm_job_done(SlurmJob *job) {
        free(job->positions);
        *job = (SlurmJob){};
}

/* "0,3" to numbers. 0, *ret (to be freed) and *ret_n · -EINVAL · -ENOMEM. */
static int slurm_positions_parse(const char *text, uint32_t **ret, size_t *ret_n) {
        CLEANUP(strv_free_ptr) char **items = NULL;
        CLEANUP(free_ptr) uint32_t *positions = NULL;
        size_t n;
        int r;

        r = list_parse(text, &items);
        if (r < 0)
                return r;
        n = strv_length(items);
        positions = calloc(n, sizeof *positions);
        if (!positions)
                return -ENOMEM;

        for (size_t i = 0; i < n; i++) {
                if (parse_u32(items[i], POSITION_MAX, &positions[i]) < 0)
                        return -EINVAL;
                for (size_t k = 0; k < i; k++)
                        if (positions[k] == positions[i])
                                return -EINVAL;
        }

        *ret = take_ptr(&positions);
        *ret_n = n;
        return 0;
}

int slurm_job_read(SlurmJob *ret, Failure *failure) {
        SlurmJob job = {};
        const char *gpus = getenv("SLURM_JOB_GPUS"), *id = getenv("SLURM_JOB_ID");
        const char *restarts_text = getenv("SLURM_JOB_RESTART_COUNT");
        uint32_t restarts = 0;

        if (!gpus || gpus[0] == '\0')
                return 0;

        if (!id || parse_u32(id, UINT32_MAX, &job.id) < 0)
                return failure_set(failure, CLI_FAILED, "SLURM_JOB_ID is '%s', which is no job", id ?: "");
        if (restarts_text && restarts_text[0] != '\0' && parse_u32(restarts_text, UINT32_MAX, &restarts) < 0)
                return failure_set(failure, CLI_FAILED, "SLURM_JOB_RESTART_COUNT is '%s', which is no count",
                                restarts_text);

        (void) snprintf(job.tenant, sizeof job.tenant, "slurm/%u.%u", job.id, restarts);
        job.gpus = gpus;
        job.visible_devices = getenv("CUDA_VISIBLE_DEVICES") ?: "";
        job.node = getenv("SLURMD_NODENAME");
        job.configuration = getenv("SLURM_CONF");
        *ret = job;
        return 1;
}

int slurm_job_read_positions(SlurmJob *job, Failure *failure) {
        int r;

        r = slurm_positions_parse(job->gpus, &job->positions, &job->n_positions);
        if (r == -EINVAL)
                return failure_set(failure, CLI_FAILED, "SLURM_JOB_GPUS is '%s', which is no list of GPUs",
                                job->gpus);
        return r < 0 ? failure_errno(failure, r, "cannot read SLURM_JOB_GPUS") : 0;
}
