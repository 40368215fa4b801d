/* SPDX-License-Identifier: MIT */
/* Which tray is in which NVLink clique, as Slurm's blocks: what the trays say, completed by what the file
 * before said of those that say nothing. The file is its own memory: each block's number, and since when
 * a tray is silent. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/base/cleanup.h"
#include "agent/config/client-config.h"
#include "cli/gpu.h"

/* How long a tray keeps its block without saying anything: a rolling reboot must not change the file. */
#define TOPOLOGY_SILENCE_USEC (24 * 3600 * USEC_PER_SEC)

typedef struct TopologyClique {
        char cluster[40];
        uint32_t id;
} TopologyClique;

typedef enum TopologyState {
        TOPOLOGY_IN_CLIQUE, /* all its GPUs are in one */
        TOPOLOGY_SILENT,    /* it does not say, or not of all its GPUs */
        TOPOLOGY_LEFT_OUT,  /* it is in no clique as a whole, or silent for too long */
} TopologyState;

typedef struct TopologyNode {
        char *name;
        TopologyState state;
        TopologyClique clique;      /* what it says, or said; of a silent one "" if nothing is known */
        uint64_t silent_since_usec; /* realtime */
        const char *why;            /* of those that are not in a clique; never changes by itself */
        uint32_t block;             /* its number, 0 for none */
} TopologyNode;

typedef struct Topology {
        TopologyNode *nodes;
        size_t n_nodes;
} Topology;

void topology_done(Topology *topology);

/* Adds a node that says `tray`, or nothing (NULL). 0 · -EEXIST it is there already · -ENOMEM. */
int topology_add(Topology *topology, const char *name, const Tray *tray);

/* The node of that name, NULL if there is none. */
TopologyNode* topology_find(const Topology *topology, const char *name);

/* Gives silent nodes the clique that they had in `old` (the file before, empty for none), for a day, and
 * numbers the blocks: a clique keeps its number, a new one has the lowest that is free. */
void topology_resolve(Topology *topology, const Topology *old, uint64_t now_realtime_usec);

/* The lowest number of a block above this one, so that from 0 on all of them come by. 0: there is none. */
uint32_t topology_next_block(const Topology *topology, uint32_t block);

/* How many nodes a block has. */
size_t topology_block_size(const Topology *topology, uint32_t block);

/* Whether slurmctld takes it: it does not even start with a file that it does not like. 0 · -EINVAL and
 * *ret_why (to be freed, NULL only without memory). */
int topology_check(const Topology *topology, const ClientConfig *config, char **ret_why);

/* The file. 0 and *ret (to be freed) · -ENOMEM. */
int topology_format(const Topology *topology, const ClientConfig *config, char **ret);

/* What the file says, if topology_format() has made it. 0 and *ret (to be given to topology_done) ·
 * -EMEDIUMTYPE: somebody else has made it · -EINVAL · -ENOMEM. */
int topology_parse(const char *text, Topology *ret);

/* The same without comments: what Slurm reads of it. 0 and *ret (to be freed) · -ENOMEM. */
int topology_strip(const char *text, char **ret);
