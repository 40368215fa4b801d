/* SPDX-License-Identifier: MIT */
/* Blocks as features of Slurm's nodes, which every version of Slurm has:
 * --constraint="[block001|block002]" keeps a job inside one. */
#pragma once

#include "cli/topology.h"

/* The features of a node, "a,block001" or "(null)", with those of ours replaced by that of its block (0:
 * none). 0 and *ret (to be freed) · -ENOMEM. */
int features_replace(const char *features, uint32_t block, char **ret);

/* Has slurmctld change the features of the nodes that have other ones. 0 · negative, and *failure says
 * why. */
int features_apply(const Topology *topology, usec_t deadline_usec, Failure *failure);
