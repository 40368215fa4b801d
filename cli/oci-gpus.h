/* SPDX-License-Identifier: MIT */
/* From a container's words for its GPUs to the tray's GPUs. */
#pragma once

#include "agent/config/config.h"
#include "cli/gpu-set.h"

/* `gpus` as from oci_gpus(). MIG devices are passed over where `mig` says so. 1 and *ret · 0 they were all
 * passed over · negative, and *failure says which is none of the tray's. */
int oci_gpus_find(char *const *gpus, const Tray *tray, MigPolicy mig, GpuSet *ret, Failure *failure);
