/* SPDX-License-Identifier: MIT */
/* From a container's words for its GPUs to the tray's GPUs. */
#pragma once

#include "agent/config/config.h"
#include "cli/gpu-set.h"
#include "cli/oci-rules.h"

/* `gpus` as from oci_gpus(), of this container. 1 and *ret · 0 the container is no tenant: handover.mig
 * says to leave its MIG devices alone, or it observes, and has every GPU of the tray · negative, and
 * *failure says which is none of the tray's. */
int oci_gpus_find(const OciContainer *container, char *const *gpus, const Tray *tray, const Config *config,
                GpuSet *ret, Failure *failure);
