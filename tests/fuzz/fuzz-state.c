/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "agent/core/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(free_ptr) char *text = strndup((const char *) data, size);
        CLEANUP(inventory_done) Inventory inventory = {};
        StateTray tray;
        int r;

        if (!text)
                return 0;
        r = state_parse(text, &inventory, &tray);
        assert(r >= 0 || inventory.n == 0); /* all of it or nothing */
        for (size_t i = 0; i < inventory.n; i++)
                assert(inventory_by_uuid(&inventory, inventory.by_index[i]->sample.uuid) ==
                                inventory.by_index[i]);
        return 0;
}
