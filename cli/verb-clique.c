/* SPDX-License-Identifier: MIT */
/* gpuagentctl clique: the cliques and their GPUs. */
#include "cli/groups.h"

int verb_clique(const Options *options, int argc, char **argv) {
        static const char *const columns[] = { "CLUSTER", "CLIQUE", "GPUS" };

        return groups_print(options, "ListCliques", GROUP_NAME_NUMBER, columns);
}
