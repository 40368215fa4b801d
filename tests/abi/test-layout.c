/* SPDX-License-Identifier: MIT */
/* Sizes and offsets of our header against the vendor's. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "tests/abi/layout.h"

static void test_our_layouts_are_the_vendors(void **state) {
        assert_int_equal(n_our_layouts, n_their_layouts);
        for (size_t i = 0; i < n_our_layouts; i++) {
                const Layout *ours = &our_layouts[i], *theirs = &their_layouts[i];

                assert_string_equal(ours->name, theirs->name);
                if (ours->size != theirs->size)
                        fail_msg("%s has %zu bytes, and %zu in nvml.h", ours->name, ours->size,
                                        theirs->size);
                assert_int_equal(ours->n, theirs->n);
                for (size_t k = 0; k < ours->n; k++)
                        if (ours->offsets[k] != theirs->offsets[k])
                                fail_msg("%s: member %zu is at %zu, and at %zu in nvml.h", ours->name, k,
                                                ours->offsets[k], theirs->offsets[k]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_our_layouts_are_the_vendors) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
