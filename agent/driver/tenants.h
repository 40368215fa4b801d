/* SPDX-License-Identifier: MIT */
/* Where tenants leave signs of life on their node. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The job of a step's socket in slurmd's spool folder, "NODE_JOB.STEP" with a possible third number. 1 · 0
 * it is none · -EOPNOTSUPP it is a step's, but named by something else than a number (a SLUID). */
int step_socket_parse(const char *name, uint32_t *ret_job);

/* SlurmdSpoolDir from the text of a slurm.conf, as a pattern for glob(3): %h and %n, the host and node
 * names, become "*". 1 and *ret (to be freed) · 0 the text does not say · -ENOMEM. */
int slurm_spool_parse(const char *text, char **ret);

/* The pod of a cgroup's folder by its name under either cgroup driver, "pod<uid>" or
 * "kubepods-…-pod<uid>.slice", as "pod <uid>". */
bool pod_folder_parse(const char *name, char *ret, size_t size);
