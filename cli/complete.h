/* SPDX-License-Identifier: MIT */
/* Words for the shells' completion, one a line on stdout. Whoever presses Tab wants no complaint: where
 * there is no answer, or not at once, nothing is printed. */
#pragma once

#include "cli/options.h"

/* "gpus" and "partitions" of this tray, or "trays": this one, and those that are configured. */
void complete_from_agent(const Options *options, const char *what);
