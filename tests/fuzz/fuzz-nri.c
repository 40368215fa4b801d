/* SPDX-License-Identifier: MIT */
/* What a runtime sends over NRI's socket: the first byte is how much of it comes with one read. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "hooks/nri/plugin.h"

static int on_gate(const OciContainer *container, char ret_why[static PLUGIN_WHY_SIZE], void *userdata) {
        const OciRules rules = {};
        char tenant[TENANT_MAX + 1];
        char **gpus = NULL;
        int r;

        if (oci_gpus(container, &rules, &gpus) > 0)
                assert(gpus && gpus[0]);
        (void) strv_free(gpus);
        r = oci_tenant(container, tenant);
        assert(r < 0 || tenant_is_valid(tenant));
        ret_why[0] = '\0';
        return r;
}

static void on_end(const OciContainer *container, void *userdata) {
        char tenant[TENANT_MAX + 1];

        (void) oci_tenant(container, tenant);
}

static void on_ready(const char *runtime, const char *version, void *userdata) {
        for (const char *c = runtime; *c; c++)
                assert(*c >= ' ' && *c <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const PluginOps ops = { on_gate, on_end, on_ready, NULL };
        CLEANUP(plugin_done) Plugin plugin = {};
        CLEANUP(wire_done) Wire wire = {};
        size_t piece;
        int r;

        if (size < 1 || plugin_begin(&plugin, &ops) < 0)
                return 0;
        piece = (size_t) data[0] + 1;
        data++;
        size--;
        for (r = 0; r >= 0 && size > 0;) {
                size_t n = size < piece ? size : piece;
                WireMessage message;

                r = wire_feed(&wire, data, n);
                data += n;
                size -= n;
                while (r >= 0 && (r = wire_next(&wire, &message)) > 0)
                        r = plugin_take(&plugin, &message);
                wire_buffer_done(&plugin.out);
        }
        return 0;
}
