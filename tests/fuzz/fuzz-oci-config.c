/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "cli/oci-bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const OciRules narrow = {}, wide = { .nvidia_runtime = true };
        CLEANUP(oci_container_done) OciContainer container = { .id = "c" };
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(strv_free_ptr) char **few = NULL, **many = NULL;
        char tenant[TENANT_MAX + 1];
        int r;

        r = oci_config_parse((const char *) data, size, &container, &failure);
        assert((r < 0) == (failure.message != NULL));
        if (r < 0)
                return 0;
        assert(oci_tenant(&container, tenant) < 0 || tenant_is_valid(tenant));
        /* gpuagent-oci-hook asks with the wide rules only: who has a GPU by others must have one by
         * these. */
        if (oci_gpus(&container, &narrow, &few) > 0)
                assert(oci_gpus(&container, &wide, &many) != 0);
        return 0;
}
