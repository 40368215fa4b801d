/* SPDX-License-Identifier: MIT */
/* nvidia-smi's arguments, one a line of the input. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "cli/nvidia-smi.h"

#define ARGUMENTS_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(free_ptr) char *text = strndup((const char *) data, size);
        char program[] = "nvidia-smi", *arguments[ARGUMENTS_MAX + 2] = { program };
        char *rest = text, *line;
        char bus_id[GPU_BUS_ID_SIZE];
        SmiOptions options;
        int n = 1;

        while (text && n <= ARGUMENTS_MAX && (line = strsep(&rest, "\n"))) {
                (void) bus_id_scan(line, bus_id);
                arguments[n++] = line;
        }
        smi_options_parse(n, arguments, &options);

        /* What is accepted is complete. */
        if (!options.problem && (options.mode == SMI_MODE_QUERY_GPU || options.mode == SMI_MODE_QUERY_APPS))
                assert(options.fields && options.format);
        return 0;
}
