/* SPDX-License-Identifier: MIT */
/* Slurm 26.05 names a job's folder in the cgroups by a SLUID, unless cgroup.conf has CgroupJobIdPaths=yes.
 * Which job that is says the title of the slurmstepd of each of its steps, which has a folder where no
 * process of the job can get. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the first `n` characters are one: 's' and 13 digits or letters. */
bool is_sluid(const char *s, size_t n);

/* The job whose folder below /sys/fs/cgroup the first `n` characters of the path are. 1 · 0 none of its
 * steps is left that could tell. */
int sluid_job(const char *path, size_t n, uint32_t *ret);
