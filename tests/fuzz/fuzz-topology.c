/* SPDX-License-Identifier: MIT */
/* The file that gpuagentctl topology has written before, which somebody may have changed since. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "cli/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(topology_done) Topology old = {}, none = {}, again = {};
        CLEANUP(free_ptr) char *text = strndup((const char *) data, size), *stripped = NULL, *written = NULL;
        ClientConfig config = { .topology = { .format = size > 0 ? data[size - 1] % 4 : 0 } };

        if (!text || topology_strip(text, &stripped) < 0 || topology_parse(text, &old) < 0)
                return 0;
        /* What was read is written and read again as the same. */
        for (size_t i = 0; i < old.n_nodes; i++)
                old.nodes[i].state = TOPOLOGY_SILENT;
        if (topology_format(&old, &config, &written) < 0)
                return 0;
        assert(topology_parse(written, &again) >= 0);
        assert(again.n_nodes == old.n_nodes);
        for (size_t i = 0; i < old.n_nodes; i++) {
                const TopologyNode *node = topology_find(&again, old.nodes[i].name);

                assert(node && node->block == old.nodes[i].block);
        }
        topology_resolve(&again, &none, 1);
        return 0;
}
