/* SPDX-License-Identifier: MIT */
/* What an operation has done or noticed, in the journal. */
#pragma once

#include "agent/driver/task.h"

/* Tells of what was done to processes and units, which has a message id. true: that was it · false: what the
 * answer warns of is no deed. */
bool tell_deed(char **uuids, char **tenants, const Answer *answer);
