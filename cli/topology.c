/* SPDX-License-Identifier: MIT */
#include "cli/topology.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/text.h"

/* Slurm's own limit: a size is the base times up to two to the power of this. */
#define BLOCK_LEVEL_MAX 15

#define WHY_UNKNOWN "it says nothing, and its clique is not known"

void topology_done(Topology *topology) {
        for (size_t i = 0; i < topology->n_nodes; i++)
                free(topology->nodes[i].name);
        free(topology->nodes);
        *topology = (Topology){};
}

TopologyNode* topology_find(const Topology *topology, const char *name) {
        for (size_t i = 0; i < topology->n_nodes; i++)
                if (streq(topology->nodes[i].name, name))
                        return &topology->nodes[i];
        return NULL;
}

static bool clique_equal(const TopologyClique *a, const TopologyClique *b) {
        return a->id == b->id && streq(a->cluster, b->cluster);
}

/* It is written into a file of the controller's: a tray cannot put anything else there. */
static bool is_uuid(const char *s) {
        return strlen(s) == strlen("7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91") &&
                        strspn(s, "0123456789abcdef-") == strlen(s);
}

/* 1 and *ret: it tells a clique · 0: not now · -ENOENT: there is no fabric for it to tell one of. */
static int gpu_clique(const GpuView *gpu, TopologyClique *ret) {
        if (streq(gpu->state, "lost"))
                return 0;
        if (streq(gpu->fabric_state, "not-supported"))
                return -ENOENT;
        if (!streq(gpu->fabric_state, "completed") || gpu->clique_id == UNKNOWN_U32)
                return 0;
        if (!is_uuid(gpu->cluster_uuid))
                return -ENOENT;
        *ret = (TopologyClique){ .id = gpu->clique_id };
        (void) snprintf(ret->cluster, sizeof ret->cluster, "%s", gpu->cluster_uuid);
        return 1;
}

static void node_set(TopologyNode *node, TopologyState state, const char *why) {
        node->state = state;
        node->why = why;
}

/* Only a clique that all its GPUs tell is the tray's. */
static void node_read(TopologyNode *node, const Tray *tray) {
        size_t n_told = 0, n_without = 0;

        node_set(node, TOPOLOGY_SILENT, "silent");
        if (!tray || !streq(tray->driver_state, "ok"))
                return;

        for (size_t i = 0; i < tray->n_gpus; i++) {
                TopologyClique clique;
                int r;

                r = gpu_clique(&tray->gpus[i], &clique);
                n_without += r < 0;
                if (r <= 0)
                        continue;
                if (n_told++ == 0)
                        node->clique = clique;
                else if (!clique_equal(&node->clique, &clique))
                        return node_set(node, TOPOLOGY_LEFT_OUT, "its GPUs are in several cliques");
        }
        if (tray->n_gpus == 0)
                return;
        if (n_without == tray->n_gpus)
                node_set(node, TOPOLOGY_LEFT_OUT, "its GPUs have no NVLink fabric");
        else if (n_told == tray->n_gpus && node->clique.id == 0)
                node_set(node, TOPOLOGY_LEFT_OUT, "its GPUs are in no partition");
        else if (n_told == tray->n_gpus)
                node_set(node, TOPOLOGY_IN_CLIQUE, NULL);
}

int topology_add(Topology *topology, const char *name, const Tray *tray) {
        TopologyNode *node;
        int r;

        if (topology_find(topology, name))
                return -EEXIST;
        r = array_reserve(&topology->nodes, topology->n_nodes, 1);
        if (r < 0)
                return r;
        node = &topology->nodes[topology->n_nodes];
        *node = (TopologyNode){ .name = strdup(name) };
        if (!node->name)
                return -ENOMEM;
        topology->n_nodes++;
        node_read(node, tray);
        return 0;
}

static void node_resolve(TopologyNode *node, const TopologyNode *old, uint64_t now) {
        bool says_other = old && node->clique.cluster[0] && !clique_equal(&node->clique, &old->clique);

        if (node->state != TOPOLOGY_SILENT)
                return;
        if (!old || old->block == 0 || says_other)
                return node_set(node, TOPOLOGY_LEFT_OUT, WHY_UNKNOWN);
        node->clique = old->clique;
        node->silent_since_usec = old->silent_since_usec;
        if (node->silent_since_usec == 0 || node->silent_since_usec > now) /* or the clock was set back */
                node->silent_since_usec = now;
        if (now - node->silent_since_usec >= TOPOLOGY_SILENCE_USEC)
                node_set(node, TOPOLOGY_LEFT_OUT, WHY_UNKNOWN);
}

static uint32_t block_of(const Topology *topology, const TopologyClique *clique) {
        for (size_t i = 0; i < topology->n_nodes; i++)
                if (topology->nodes[i].block > 0 && clique_equal(&topology->nodes[i].clique, clique))
                        return topology->nodes[i].block;
        return 0;
}

static uint32_t lowest_free_block(const Topology *topology) {
        uint32_t block = 1;

        while (topology_block_size(topology, block) > 0)
                block++;
        return block;
}

void topology_resolve(Topology *topology, const Topology *old, uint64_t now_realtime_usec) {
        for (size_t i = 0; i < topology->n_nodes; i++) {
                TopologyNode *node = &topology->nodes[i];

                node_resolve(node, topology_find(old, node->name), now_realtime_usec);
                if (node->state != TOPOLOGY_LEFT_OUT)
                        node->block = block_of(old, &node->clique);
        }
        for (size_t i = 0; i < topology->n_nodes; i++) {
                TopologyNode *node = &topology->nodes[i];

                if (node->state != TOPOLOGY_LEFT_OUT && node->block == 0)
                        node->block = block_of(topology, &node->clique) ?: lowest_free_block(topology);
        }
}

uint32_t topology_next_block(const Topology *topology, uint32_t block) {
        uint32_t next = 0;

        for (size_t i = 0; i < topology->n_nodes; i++) {
                uint32_t other = topology->nodes[i].block;

                if (other > block && (next == 0 || other < next))
                        next = other;
        }
        return next;
}

size_t topology_block_size(const Topology *topology, uint32_t block) {
        size_t n = 0;

        for (size_t i = 0; i < topology->n_nodes; i++)
                n += topology->nodes[i].block == block;
        return n;
}

static int refuse(char **ret_why, const char *format, ...) PRINTF_FORMAT(2, 3);

static int refuse(char **ret_why, const char *format, ...) {
        va_list args;

        va_start(args, format);
        if (vasprintf(ret_why, format, args) < 0)
                *ret_why = NULL;
        va_end(args);
        return -EINVAL;
}

static int check_sizes(const NumberList *sizes, char **ret_why) {
        for (size_t i = 0; i < sizes->n; i++) {
                uint32_t base = sizes->values[0], times = sizes->values[i] / base;

                if (sizes->values[i] % base != 0 || (times & (times - 1)) != 0 ||
                                times > 1U << BLOCK_LEVEL_MAX)
                        return refuse(ret_why,
                                        "client.topology.block-sizes: %u is not %u times a power of two",
                                        sizes->values[i], base);
        }
        return 0;
}

int topology_check(const Topology *topology, const ClientConfig *config, char **ret_why) {
        const NumberList *sizes = &config->topology.block_sizes;
        size_t first = 0;
        int r;

        r = check_sizes(sizes, ret_why);
        if (r < 0)
                return r;
        if (config->topology.format == TOPOLOGY_FEATURES)
                return 0;
        if (topology_next_block(topology, 0) == 0)
                return refuse(ret_why, "no tray tells a clique, and slurmctld needs one block at least");

        for (uint32_t block = 0; (block = topology_next_block(topology, block)) > 0;) {
                size_t n = topology_block_size(topology, block);

                first = first > 0 ? first : n;
                if (config->topology.format == TOPOLOGY_BLOCK_SIZES && sizes->n > 0 && n < sizes->values[0])
                        return refuse(ret_why,
                                        "block%03u has %zu node%s, and client.topology.block-sizes starts "
                                        "with %u, with which slurmctld would not start",
                                        block, n, n == 1 ? "" : "s", sizes->values[0]);
                if (config->topology.format == TOPOLOGY_BLOCK_LEVELS && n != first)
                        return refuse(ret_why,
                                        "block%03u has %zu node%s and another has %zu, with which slurmctld "
                                        "23.11 would not start",
                                        block, n, n == 1 ? "" : "s", first);
        }
        return 0;
}
