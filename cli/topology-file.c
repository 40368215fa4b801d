/* SPDX-License-Identifier: MIT */
/* The file of a Topology: its forms for Slurm's versions, with the same comments in each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/node-list.h"
#include "cli/topology.h"

#define MADE_BY "written by gpuagentctl topology"
#define SILENT  ": silent since "
#define TIME    "%Y-%m-%dT%H:%M:%SZ"

/* Six digits, as many as are read. */
#define BLOCK_MAX 999999

/* The names of a block as Slurm writes them. 0 and *ret (to be freed) · -ENOMEM. */
static int block_nodes(const Topology *topology, uint32_t block, char **ret) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < topology->n_nodes; i++)
                if (topology->nodes[i].block == block)
                        r = strv_append(&names, topology->nodes[i].name);
        return r < 0 ? r : node_list_format(names, ret);
}

/* What people read, and we the next time. */
static void print_block_comments(const Topology *topology, uint32_t block, const char *indent, FILE *file) {
        for (size_t i = 0; i < topology->n_nodes; i++)
                if (topology->nodes[i].block == block) {
                        (void) fprintf(file, "%s# block%03u=%s.%u\n", indent, block,
                                        topology->nodes[i].clique.cluster, topology->nodes[i].clique.id);
                        break;
                }
        for (size_t i = 0; i < topology->n_nodes; i++) {
                const TopologyNode *node = &topology->nodes[i];
                time_t seconds = (time_t) (node->silent_since_usec / USEC_PER_SEC);
                char since[32] = "";
                struct tm tm;

                if (node->block != block || node->state != TOPOLOGY_SILENT)
                        continue;
                if (gmtime_r(&seconds, &tm))
                        (void) strftime(since, sizeof since, TIME, &tm);
                (void) fprintf(file, "%s# %s" SILENT "%s\n", indent, node->name, since);
        }
}

static void print_block(int format, uint32_t block, const char *nodes, FILE *file) {
        switch ((TopologyFormat) format) {
        case TOPOLOGY_BLOCK_SIZES:
        case TOPOLOGY_BLOCK_LEVELS:
                (void) fprintf(file, "BlockName=block%03u Nodes=%s\n", block, nodes);
                break;
        case TOPOLOGY_YAML:
                (void) fprintf(file, "    - block: block%03u\n      nodes: %s\n", block, nodes);
                break;
        case TOPOLOGY_FEATURES:
                (void) fprintf(file, "NodeName=%s Features=block%03u\n", nodes, block);
                break;
        }
}

/* The configured sizes, else the smallest block. */
static NumberList sizes_of(const Topology *topology, const ClientConfig *config) {
        NumberList sizes = config->topology.block_sizes;

        if (sizes.n > 0)
                return sizes;
        for (uint32_t block = 0; (block = topology_next_block(topology, block)) > 0;) {
                uint32_t n = (uint32_t) topology_block_size(topology, block);

                if (sizes.n == 0 || n < sizes.values[0])
                        sizes = (NumberList){ .n = 1, .values = { n } };
        }
        return sizes;
}

static void print_head(const Topology *topology, const ClientConfig *config, FILE *file) {
        NumberList sizes = sizes_of(topology, config);

        (void) fputs("# Slurm's topology, " MADE_BY " from the trays' cliques: changes are lost.\n", file);
        if (config->topology.format != TOPOLOGY_YAML)
                return;
        (void) fputs("- topology: default\n  cluster_default: true\n  block:\n    block_sizes:\n", file);
        for (size_t i = 0; i < sizes.n; i++)
                (void) fprintf(file, "    - %u\n", sizes.values[i]);
        (void) fputs("    blocks:\n", file);
}

/* In 23.11 a level is a power of two; the base is what all blocks have. */
static uint32_t level_of(const NumberList *sizes, size_t i) {
        uint32_t level = 0;

        for (uint32_t times = sizes->values[i] / sizes->values[0]; times > 1; times /= 2)
                level++;
        return level;
}

static void print_tail(const Topology *topology, const ClientConfig *config, FILE *file) {
        NumberList sizes = sizes_of(topology, config);
        bool levels = config->topology.format == TOPOLOGY_BLOCK_LEVELS;

        for (size_t i = 0; i < topology->n_nodes; i++)
                if (topology->nodes[i].state == TOPOLOGY_LEFT_OUT)
                        (void) fprintf(file, "# %s is left out: %s\n", topology->nodes[i].name,
                                        topology->nodes[i].why);
        if (config->topology.format != TOPOLOGY_BLOCK_SIZES && !levels)
                return;
        (void) fputs(levels ? "BlockLevels=" : "BlockSizes=", file);
        for (size_t i = 0; i < sizes.n; i++)
                (void) fprintf(file, "%s%u", i > 0 ? "," : "",
                                levels ? level_of(&sizes, i) : sizes.values[i]);
        (void) fputc('\n', file);
}

int topology_format(const Topology *topology, const ClientConfig *config, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);

        if (!file)
                return -ENOMEM;
        print_head(topology, config, file);
        for (uint32_t block = 0; (block = topology_next_block(topology, block)) > 0;) {
                CLEANUP(free_ptr) char *nodes = NULL;
                int r;

                r = block_nodes(topology, block, &nodes);
                if (r < 0)
                        return r;
                print_block_comments(topology, block, config->topology.format == TOPOLOGY_YAML ? "    " : "",
                                file);
                print_block(config->topology.format, block, nodes, file);
        }
        print_tail(topology, config, file);
        return text_stream_take(&stream, ret);
}

/* "block001=UUID.CLIQUE". */
static bool parse_block(const char *text, uint32_t *ret_block, TopologyClique *ret) {
        TopologyClique clique = {};
        uint32_t block;
        int end = 0;

        /* sscanf() takes a sign, too. */
        if (sscanf(text, "block%6u=%39[0-9a-f-].%10u%n", &block, clique.cluster, &clique.id, &end) != 3 ||
                        text[end] != '\0' || block == 0 || block > BLOCK_MAX)
                return false;
        *ret_block = block;
        *ret = clique;
        return true;
}

/* "NODE: silent since TIME". Which node it is, is told before what block it is in. */
static bool parse_silence(const char *text, char *ret_name, size_t size, uint64_t *ret_usec) {
        const char *since = strstr(text, SILENT), *end;
        struct tm tm = {};
        time_t seconds;

        if (!since || (size_t) (since - text) >= size)
                return false;
        end = strptime(since + strlen(SILENT), TIME, &tm);
        if (!end || *end != '\0')
                return false;
        seconds = timegm(&tm);
        if (seconds <= 0)
                return false;
        (void) snprintf(ret_name, size, "%.*s", (int) (since - text), text);
        *ret_usec = (uint64_t) seconds * USEC_PER_SEC;
        return true;
}

static int add_nodes(Topology *topology, const char *line, uint32_t block, const TopologyClique *clique) {
        static const char *const keys[] = { "Nodes=", "nodes: ", "NodeName=" };
        CLEANUP(strv_free_ptr) char **names = NULL;
        CLEANUP(free_ptr) char *list = NULL;
        const char *found = NULL;
        int r;

        for (size_t i = 0; !found && i < ELEMENTSOF(keys); i++) {
                found = strstr(line, keys[i]);
                if (found)
                        found += strlen(keys[i]);
        }
        if (!found || block == 0)
                return 0;
        list = strndup(found, strcspn(found, " "));
        r = list ? node_list_parse(list, &names) : -ENOMEM;
        STRV_FOREACH (name, names) {
                if (r >= 0)
                        r = topology_add(topology, *name, NULL);
                if (r >= 0) {
                        topology->nodes[topology->n_nodes - 1].block = block;
                        topology->nodes[topology->n_nodes - 1].clique = *clique;
                }
        }
        return r == -EEXIST || r == -E2BIG ? -EINVAL : r;
}

/* The silent ones of a block stand before its nodes, so they are noted when all are there. */
static void note_silence(Topology *topology, const char *comment) {
        char name[256];
        uint64_t since;
        TopologyNode *node;

        if (!parse_silence(comment, name, sizeof name, &since))
                return;
        node = topology_find(topology, name);
        if (node)
                node->silent_since_usec = since;
}

int topology_parse(const char *text, Topology *ret) {
        CLEANUP(topology_done) Topology topology = {};
        CLEANUP(free_ptr) char *copy = NULL;
        TopologyClique clique = {};
        uint32_t block = 0;
        int r = 0;

        if (text[0] != '#' || memmem(text, strcspn(text, "\n"), MADE_BY, strlen(MADE_BY)) == NULL)
                return -EMEDIUMTYPE;

        for (int pass = 0; r >= 0 && pass < 2; pass++) {
                char *saved = NULL;

                free(copy);
                copy = strdup(text);
                if (!copy)
                        return -ENOMEM;
                for (char *line = strtok_r(copy, "\n", &saved); r >= 0 && line;
                                line = strtok_r(NULL, "\n", &saved)) {
                        const char *comment = startswith(line + strspn(line, " "), "# ");

                        if (pass == 1 && comment)
                                note_silence(&topology, comment);
                        else if (pass == 0 && comment)
                                (void) parse_block(comment, &block, &clique);
                        else if (pass == 0)
                                r = add_nodes(&topology, line, block, &clique);
                }
        }
        if (r < 0)
                return r;

        *ret = topology;
        topology = (Topology){};
        return 0;
}

int topology_strip(const char *text, char **ret) {
        char *stripped = strdup(text), *end = stripped;

        if (!stripped)
                return -ENOMEM;
        while (*text != '\0') {
                size_t n = strcspn(text, "\n");

                n += text[n] == '\n';
                if (text[strspn(text, " ")] != '#')
                        end = mempcpy(end, text, n);
                text += n;
        }
        *end = '\0';

        *ret = stripped;
        return 0;
}
