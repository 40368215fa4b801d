/* SPDX-License-Identifier: MIT */
/* What nvidia-smi printed about a reset. Its words are no interface and differ between drivers: they only
 * tell one refusal from another after it failed, and go to the log. A GPU is clean by other signs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/sample.h"

/* What the output of a run that failed says about one GPU, named by its bus id or UUID. A line of its own
 * decides; without one, whether anything was in use: nothing was done to it then. RESET_DONE only where its
 * success is printed. */
ResetVerdict smi_text_verdict(const char *output, const char *bus_id, const char *uuid);

/* The lines that name the GPU, or all of them if none does, as one printable line; cut. */
void smi_text_detail(const char *output, const char *bus_id, const char *uuid, char *ret, size_t size);
