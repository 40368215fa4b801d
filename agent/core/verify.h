/* SPDX-License-Identifier: MIT */
/* What a clean GPU looks like: one place for the last look of a handover and for Verify. */
#pragma once

#include "agent/config/config.h"
#include "agent/core/gpu.h"

/* Whether what the last probe saw is what a GPU has to look like after its reset: no recovery action, the
 * expected clique, the expected NVLinks. 0 · 1 and ret_why, such as "needs the recovery action
 * gpu-reset". */
int verify_sample(const Gpu *gpu, const Config *config, char *ret_why, size_t size);

/* Whether the GPU may be given to a tenant: the record says clean, nothing holds it, and its sample is in
 * order. 0 · 1 and ret_why: every reason, separated by "; ". */
int verify_gpu(const Gpu *gpu, const Config *config, char *ret_why, size_t size);
