/* SPDX-License-Identifier: MIT */
/* Who has which GPU, by the tray's Tenant properties. */
#pragma once

#include "cli/gpu.h"

/* Whether `tenant` is named in a Tenant property: "slurm/26.0", or several of a shared GPU with commas
 * between. */
bool lease_names(const char *text, const char *tenant);

/* The GPUs that the tenant has: their number, and "0,1" in *ret_names (to be freed; NULL for none). 0
 * without memory. */
size_t lease_gpus(const Tray *tray, const char *tenant, char **ret_names);

/* "slurm/27.2" of the tray's only lease of Slurm job 27, for the tenant "slurm/27.0" of a command line that
 * told no restarts, into *tenant; where there is none, or leases of several runs, it stays. */
void lease_find_restart(const Tray *tray, char tenant[static TENANT_MAX + 1]);

/* The run of a Slurm job that an epilog is for. Slurm counts a requeue before the epilog of the run that it
 * has ended, so that "slurm/27.3" may come for the lease of "slurm/27.2": *tenant is that one, if it has
 * GPUs and "slurm/27.3" has none. */
void lease_find_ended_run(const Tray *tray, char tenant[static TENANT_MAX + 1]);
