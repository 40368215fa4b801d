/* SPDX-License-Identifier: MIT */
/* A BMC's answer. What is taken of it prints as ASCII without control characters, and reads the same once
 * more. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "cli/redfish-body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(free_ptr) char *text = NULL, *again = NULL, *message = NULL;

        if (redfish_body_error((const char *) data, size, &message) >= 0)
                for (const char *p = message; *p != '\0'; p++)
                        assert(*p >= ' ' && *p <= '~');
        if (redfish_body_format((const char *) data, size, OUTPUT_JSON_SHORT, &text) < 0)
                return 0;
        for (const char *p = text; *p != '\0'; p++)
                assert(*p >= ' ' && *p <= '~');
        assert(redfish_body_format(text, strlen(text), OUTPUT_JSON_SHORT, &again) == 0);
        assert(strcmp(text, again) == 0);
        return 0;
}
