/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "cli/gpu-spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(gpu_spec_done) GpuSpec spec = {};
        CLEANUP(free_ptr) char *text = strndup((const char *) data, size);
        static const char *const hosts[] = { "sched-worker1", "root@sched-worker2", NULL };
        size_t place;

        if (!text || gpu_spec_parse(text, &spec) < 0) {
                assert(!spec.indexes); /* all of it or nothing */
                return 0;
        }
        assert(host_is_valid(spec.tray));
        for (size_t i = 0; i < spec.n_indexes; i++)
                assert(spec.indexes[i] <= GPU_SPEC_INDEX_MAX &&
                                (i == 0 || spec.indexes[i - 1] < spec.indexes[i]));
        if (gpu_spec_find(&spec, (char *const *) hosts, &place) >= 0)
                assert(place < 2);
        return 0;
}
