/* SPDX-License-Identifier: MIT */
/* Whether this process is part of a Slurm job: what starts containers inside a job is, and the job's GPUs
 * are its own. */
#pragma once

#include <stdint.h>

#include "cli/gpu.h"

/* The job in what /proc/PID/cgroup says. 1 and *ret · 0 it is in none. Only slurmd's own cgroups count, from
 * the root on: anybody may call one further down by its name. */
int own_job_parse(const char *cgroups, uint32_t *ret);

/* Whether the job that this process is part of has all of the GPUs, and whom they are leased to. 1 and
 * *ret_tenant · 0. */
int own_job_has_gpus(const Tray *tray, char **ids, char ret_tenant[static TENANT_MAX + 1]);
