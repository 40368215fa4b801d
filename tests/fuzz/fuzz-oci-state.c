/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "cli/oci-bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(oci_container_done) OciContainer container = {};
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *bundle = NULL;
        char tenant[TENANT_MAX + 1];
        int r;

        r = oci_state_parse((const char *) data, size, &container, &bundle, &failure);
        assert((r >= 0) == (bundle != NULL));
        assert((r < 0) == (failure.message != NULL));
        if (r >= 0 && oci_tenant(&container, tenant) >= 0)
                assert(tenant_is_valid(tenant));
        return 0;
}
