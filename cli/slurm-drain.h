/* SPDX-License-Identifier: MIT */
/* Draining the job's node with the cause as its reason, before Slurm does so with "Epilog error". */
#pragma once

#include <stdbool.h>

#include "agent/base/clock.h"
#include "cli/slurm-job.h"

#define DRAIN_REASON_SIZE 240

/* "gpuagent: GPU 0 held by python (pid 1860, …), job 27": the cause first, as sinfo -R shows 20
 * characters. Job 0 is none. */
void drain_reason_format(const char *cause, uint32_t job_id, char ret[static DRAIN_REASON_SIZE]);

/* Whether what `scontrol show node` prints has a reason that somebody else has set and that stays: not ours,
 * not Slurm's own after a failed prolog or epilog. */
bool node_has_foreign_reason(const char *scontrol_output);

/* Whether a node takes no jobs, and by whose doing. */
typedef enum NodeDrain {
        NODE_IN_USE,
        NODE_DRAINED_BY_US,
        NODE_DRAINED_BY_OTHERS, /* an administrator, or Slurm itself */
} NodeDrain;

/* By what `scontrol show node` prints. */
NodeDrain node_drain_parse(const char *scontrol_output);

/* The same, asked of the controller. 0 and *ret · negative, and *failure says why not. */
int node_drain_read(const char *node, usec_t deadline_usec, NodeDrain *ret, Failure *failure);

/* Takes a drained node back into use. 0 · negative, and *failure says why not. */
int resume_node(const char *node, usec_t deadline_usec, Failure *failure);

/* Sets the reason, unless there is a foreign one; all by the deadline (monotonic). 0 · negative, and
 * *failure says why not. */
int drain_node(const SlurmJob *job, const char *cause, usec_t deadline_usec, Failure *failure);
