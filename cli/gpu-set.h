/* SPDX-License-Identifier: MIT */
/* The GPUs of one tenant, as the agent and as people know them. */
#pragma once

#include "cli/gpu.h"

/* Zero at first. */
typedef struct GpuSet {
        char **ids;  /* for the agent */
        char *names; /* for people: "0,1,2,3"; NULL for none */
} GpuSet;

void gpu_set_done(GpuSet *set);

/* Adds a GPU that is not in the set yet. 0 · negative, and *failure says why. */
int gpu_set_add(GpuSet *set, const GpuView *gpu, Failure *failure);

/* The same for one by its index, whether or not it is there. */
int gpu_set_add_index(GpuSet *set, uint32_t index, Failure *failure);

/* The GPU with the node /dev/nvidia<minor>. 0 and *ret · negative: there is none (CLI_NO_GPU), or more than
 * one; *failure says so. */
int gpu_find_by_minor(const Tray *tray, uint32_t minor, const GpuView **ret, Failure *failure);
