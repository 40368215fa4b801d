/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "agent/config/client-config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(client_config_free_ptr) ClientConfig *client_config = NULL;
        CLEANUP(free_ptr) char *message = NULL, *client_message = NULL;
        int r;

        r = config_parse("fuzz", (const char *) data, size, &config, &message);
        assert((r >= 0) == (config != NULL)); /* all of it or nothing */
        assert(r >= 0 || message);

        r = client_config_parse("fuzz", (const char *) data, size, &client_config, &client_message);
        assert((r >= 0) == (client_config != NULL));
        assert(r >= 0 || client_message);
        return 0;
}
