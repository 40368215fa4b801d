/* SPDX-License-Identifier: MIT */
/* The reset of emulated GPUs. It is decided and recorded at its start and takes effect when its time is
 * over, whether or not the process that asked for it lives to see that. */
#pragma once

#include "agent/emulation/tray.h"

typedef enum TrayReset {
        TRAY_RESET_NONE, /* was not asked for */
        TRAY_RESET_DONE,
        TRAY_RESET_BUSY,
        TRAY_RESET_NOT_SUPPORTED, /* in MIG mode */
        TRAY_RESET_FAILED,
        TRAY_RESET_LOST,
} TrayReset;

/* Starts the reset of the GPUs that are marked in `wanted` (by index, `n` of them), all at once; what a
 * GPU's reset will come to is in ret_results, and *ret_end_usec when they are over. The memory of those that
 * are reset is cleared.
 * 0 · -ESTALE the tray has another number of GPUs by now · -errno; then nothing was started. */
int tray_reset(const bool *wanted, uint32_t n, TrayReset *ret_results, usec_t *ret_end_usec);
