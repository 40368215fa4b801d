/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "agent/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        int r;

        r = config_parse("fuzz", (const char *) data, size, &config, &message);
        assert((r >= 0) == (config != NULL)); /* all of it or nothing */
        assert(r >= 0 || message);
        return 0;
}
