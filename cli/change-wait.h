/* SPDX-License-Identifier: MIT */
/* partition --wait: from a change of partitions to GPUs that are in their new cliques. */
#pragma once

#include "cli/domain.h"

/* Waits until nobody has the members, which were moved to this partition, resets those that were not reset
 * since (a job's epilog may have done it), and sees that each is clean and in the clique that is expected;
 * says what is waited for, and where the GPUs are in the end. A GPU that somebody moves meanwhile is not
 * waited for. Without a timeout in the options it waits as long as it takes. A CliExit; what is not CLI_DONE
 * was said. */
int change_wait(Domain *domain, const Partition *to);
