/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <string.h>

#include "agent/base/sample.h"

static void test_a_recovery_action_without_a_name_is_its_number(void **state) {
        char text[16];

        recovery_action_format(RECOVERY_NONE, text, sizeof text);
        assert_string_equal(text, "none");
        recovery_action_format(RECOVERY_SYSTEM_REBOOT, text, sizeof text);
        assert_string_equal(text, "system-reboot");
        recovery_action_format(4711, text, sizeof text);
        assert_string_equal(text, "4711");
        recovery_action_format(RECOVERY_UNKNOWN, text, sizeof text);
        assert_string_equal(text, "unknown");
}

static void test_values_out_of_range_have_no_name(void **state) {
        assert_string_equal(fabric_state_to_string(FABRIC_COMPLETED), "completed");
        assert_null(fabric_state_to_string(_FABRIC_STATE_MAX));
        assert_null(fabric_health_to_string(UNKNOWN_U32));
        assert_null(driver_state_to_string(_DRIVER_STATE_INVALID));
        assert_null(reset_verdict_to_string(_RESET_VERDICT_MAX));
}

static void test_a_new_sample_knows_nothing(void **state) {
        GpuSample sample;

        memset(&sample, 'x', sizeof sample);
        gpu_sample_init(&sample);
        assert_string_equal(sample.uuid, "");
        assert_string_equal(sample.cluster_uuid, "");
        assert_int_equal(sample.index, UNKNOWN_U32);
        assert_int_equal(sample.recovery_action, RECOVERY_UNKNOWN);
        assert_int_equal(sample.temperature, UNKNOWN_I32);
        assert_true(sample.memory_used == UNKNOWN_U64);
}

static void test_a_holder_is_named_with_what_is_known(void **state) {
        GpuHolder holder = {
                .pid = 1860, .user = "joe", .command = "python", .where = "unit session-3.scope"
        };
        char text[128];

        gpu_holder_format(&holder, text, sizeof text);
        assert_string_equal(text, "python (pid 1860, user joe, unit session-3.scope)");
        holder.where[0] = holder.command[0] = '\0';
        gpu_holder_format(&holder, text, sizeof text);
        assert_string_equal(text, "a process (pid 1860, user joe)");
        gpu_holder_format(&holder, text, 8);
        assert_string_equal(text, "a proce");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_recovery_action_without_a_name_is_its_number),
                cmocka_unit_test(test_values_out_of_range_have_no_name),
                cmocka_unit_test(test_a_new_sample_knows_nothing),
                cmocka_unit_test(test_a_holder_is_named_with_what_is_known),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
