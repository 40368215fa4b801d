/* SPDX-License-Identifier: MIT */
/* The kernel's lines about Xids; the journal they come from is followed in the lab. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "agent/observers/xid.h"

static void test_an_xid_has_its_gpu_and_number(void **state) {
        static const struct {
                const char *line, *bus_id;
                uint32_t xid;
        } lines[] = {
                { "NVRM: Xid (PCI:0000:18:00): 79, pid=1234, GPU has fallen off the bus.",
                                "00000000:18:00.0", 79 },
                { "NVRM: Xid (PCI:0008:c1:00): 119, Timeout", "00000008:C1:00.0", 119 },
                { "NVRM: Xid (PCI:0000:18:00.0): 94", "00000000:18:00.0", 94 },
                { "NVRM: Xid (PCI:00000000:18:00): 154, GPU recovery action changed", "00000000:18:00.0",
                                154 },
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                char bus_id[GPU_BUS_ID_SIZE];
                uint32_t xid;

                assert_int_equal(xid_parse(lines[i].line, bus_id, &xid), 0);
                assert_string_equal(bus_id, lines[i].bus_id);
                assert_int_equal(xid, lines[i].xid);
        }
}

static void test_other_lines_are_passed_over(void **state) {
        static const char *const lines[] = {
                "",
                "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
                "NVRM: Xid (PCI:",
                "NVRM: Xid (PCI:0000:18:00)",
                "NVRM: Xid (PCI:0000:18:00): ",
                "NVRM: Xid (PCI:0000:18:00): -1",
                "NVRM: Xid (PCI:0000:18:00): 4294967296",
                "NVRM: Xid (PCI:0000:18:00): 99999999999999999999",
                "NVRM: Xid (PCI:): 79",
                "NVRM: Xid (PCI:0000:18): 79",
                "NVRM: Xid (PCI:0000:18:00:00000000000000000000): 79",
                "a job says NVRM: Xid (PCI:0000:18:00): 79",
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                char bus_id[GPU_BUS_ID_SIZE];
                uint32_t xid;

                assert_int_equal(xid_parse(lines[i], bus_id, &xid), -EINVAL);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_xid_has_its_gpu_and_number),
                cmocka_unit_test(test_other_lines_are_passed_over),
        };

        return cmocka_run_group_tests_name("xid", tests, NULL, NULL);
}
