/* SPDX-License-Identifier: MIT */
/* A tray's GPUs as lines of Slurm's gres.conf. */
#pragma once

#include "cli/gpu.h"

/* The Type of a GPU: its name without the maker, in lower case, "gb200" or "h100_80gb_hbm3", which also
 * fits into what slurmd finds with AutoDetect=nvml. `size` is at least 1; "" if the name is not known. */
void gres_type_format(const char *name, char *ret, size_t size);

/* "Name=gpu Type=gb200 File=/dev/nvidia0 Links=-1,18,18,18", a line a GPU in the order of their indexes,
 * so that Slurm's number of a GPU is NVML's. Two GPUs are connected by their NVLinks to each other, and
 * through switches by as many as both have to one. 0 and *ret (to be freed) · negative, and *failure says
 * which GPU cannot be told. */
int gres_format(const Tray *tray, char **ret, Failure *failure);
