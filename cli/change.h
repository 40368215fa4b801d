/* SPDX-License-Identifier: MIT */
/* Moving the chosen GPUs of a domain to another partition: in the fabric, by client.fabric-assign, and in
 * what their trays expect. All of them or none. */
#pragma once

#include "cli/domain.h"

/* Moves all members to this partition (PARTITION_NONE: out of theirs); what is there already stays. A
 * signal meanwhile waits. 0 · negative, and *failure says what has refused, such as somebody else's having
 * moved a GPU since it was chosen: what was done is undone, and where that is not possible it was
 * said. */
int domain_change(Domain *domain, const Partition *to, Failure *failure);
