/* SPDX-License-Identifier: MIT */
/* What NRI's events mean to GPUs: a container gets them booked before it is made, and the end of its pod
 * gives them back. */
#pragma once

#include "cli/oci-rules.h"
#include "cli/options.h"
#include "hooks/nri/plugin.h"

/* Books the container's GPUs, if it has any. A runtime waits for 2 s, and goes on without a plugin that
 * takes longer: what takes time is refused, and kubelet tries again. 0 · negative: it must not start, and
 * ret_why says why. */
int gate_book(const Options *options, const OciContainer *container, char ret_why[static PLUGIN_WHY_SIZE]);

/* Gives back what the container, or its pod, has. What fails is logged: the agent sees the end of a pod. */
void gate_release(const Options *options, const OciContainer *container);
