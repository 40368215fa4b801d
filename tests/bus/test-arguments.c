/* SPDX-License-Identifier: MIT */
/* Callers who send what they should not: nothing is done, and the error says what is wrong. */
#include "tests/bus/bus-fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INVALID SD_BUS_ERROR_INVALID_ARGS

/* Nothing was asked of the driver, and no reset is counted since. */
typedef struct Before {
        uint64_t resets;
        unsigned asked;
} Before;

static Before before(const Fixture *f) {
        return (Before){ .resets = fixture_resets(f), .asked = fixture_count(f, "") };
}

static void assert_unchanged(const Fixture *f, Before was) {
        assert_int_equal(fixture_resets(f), was.resets);
        assert_int_equal(fixture_count(f, ""), was.asked);
}

static void test_an_unknown_gpu_fails_the_whole_request(void **state) {
        static const char *const unknown[] = {
                "4",
                "4294967294",
                "GPU-00000000-0000-4000-8000-0000000000ff",
                "00000000:7F:00.0",
        };
        const Fixture *f = *state;
        Before was = before(f);

        for (size_t i = 0; i < ELEMENTSOF(unknown); i++) {
                fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_NO_SUCH_GPU, "asa{sv}", 2, "0",
                                unknown[i], 0);
                fixture_expect(f->root, MANAGER, "Verify", BUS_ERROR_NO_SUCH_GPU, "asa{sv}", 1, unknown[i],
                                0);
                fixture_expect(f->root, MANAGER, "GetGPU", BUS_ERROR_NO_SUCH_GPU, "s", unknown[i]);
                fixture_expect(f->nobody, MANAGER, "Verify", BUS_ERROR_NO_SUCH_GPU, "asa{sv}", 1, unknown[i],
                                0);
        }
        assert_unchanged(f, was);
}

static void test_a_malformed_id_is_invalid(void **state) {
        static const char *const malformed[] = {
                "",
                " ",
                "-1",
                "00",
                "4294967296",
                "all",
                "0,1",
                "GPU-",
                "GPU-0",
                "../../etc/passwd",
                "0\n",
                "\xc3\xa4",
        };
        const Fixture *f = *state;
        Before was = before(f);

        for (size_t i = 0; i < ELEMENTSOF(malformed); i++) {
                fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 1, malformed[i], 0);
                fixture_expect(f->root, MANAGER, "GetGPU", INVALID, "s", malformed[i]);
                fixture_expect(f->nobody, MANAGER, "Verify", INVALID, "asa{sv}", 1, malformed[i], 0);
        }
        assert_unchanged(f, was);
}

static void test_an_unknown_object_has_no_methods(void **state) {
        static const char *const paths[] = {
                GPU_PATH("9"),
                BUS_GPU_PATH "/0",
                BUS_GPU_PATH "/GPU_00000000_0000_4000_8000_00000000000_",
                BUS_PATH "/partition",
        };
        const Fixture *f = *state;
        Before was = before(f);

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                fixture_expect(f->root, paths[i], BUS_GPU_INTERFACE, "Reset", SD_BUS_ERROR_UNKNOWN_OBJECT,
                                "a{sv}", 0);
        assert_unchanged(f, was);
}

static void test_more_ids_than_any_tray_has_are_invalid(void **state) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;
        CLEANUP(bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const Fixture *f = *state;
        Before was = before(f);

        assert_true(sd_bus_message_new_method_call(f->root, &msg, BUS_NAME, MANAGER, "Reset") >= 0);
        assert_true(sd_bus_message_open_container(msg, 'a', "s") >= 0);
        for (size_t i = 0; i < 1000000; i++)
                assert_true(sd_bus_message_append_basic(msg, 's', "0") >= 0);
        assert_true(sd_bus_message_close_container(msg) >= 0);
        assert_true(sd_bus_message_append(msg, "a{sv}", 0) >= 0);

        assert_true(sd_bus_call(f->root, msg, 0, &error, NULL) < 0);
        assert_string_equal(error.name, INVALID);
        assert_unchanged(f, was);
}

static void test_an_id_that_is_longer_than_any_is_invalid(void **state) {
        CLEANUP(free_ptr) char *id = malloc(1 << 20);
        const Fixture *f = *state;
        Before was = before(f);

        assert_non_null(id);
        memset(id, '0', 1 << 20);
        id[(1 << 20) - 1] = '\0';
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 1, id, 0);
        assert_unchanged(f, was);
}

static void test_another_signature_is_invalid(void **state) {
        const Fixture *f = *state;
        Before was = before(f);

        fixture_expect(f->root, MANAGER, "Reset", INVALID, "");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "as", 1, "0");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "sa{sv}", "0", 0);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "aua{sv}", 1, 0, 0);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}s", 0, 0, "more");
        fixture_expect(f->root, MANAGER, "Refresh", INVALID, "a{ss}", 0);
        fixture_expect(f->root, MANAGER, "Release", INVALID, "asa{sv}", 0, 0);
        fixture_expect(f->root, MANAGER, "GetGPU", INVALID, "u", 0);
        fixture_expect(f->root, GPU_PATH("0"), BUS_GPU_INTERFACE, "Reset", INVALID, "asa{sv}", 0, 0);
        assert_unchanged(f, was);
}

static void test_an_option_of_another_name_or_type_is_invalid(void **state) {
        const Fixture *f = *state;
        Before was = before(f);

        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "force", "b", 1);
        fixture_expect(f->root, MANAGER, "Verify", INVALID, "asa{sv}", 0, 1, "checks", "s", "yes");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "", "s", "");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "Tenant", "s", "slurm/1.0");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "tenant", "u", 1);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "tenant", "as", 1, "slurm/1.0");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "timeout-usec", "u", 1);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "timeout-usec", "t",
                        (uint64_t) 0);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "wait", "s", "yes");
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 2, "wait", "b", 1, "wait", "b", 1);
        fixture_expect(f->root, MANAGER, "Verify", INVALID, "asa{sv}", 0, 1, "wait", "b", 0);
        fixture_expect(f->root, MANAGER, "ListProcesses", INVALID, "asa{sv}", 0, 1, "wait", "b", 0);
        fixture_expect(f->root, GPU_PATH("0"), BUS_GPU_INTERFACE, "Reset", INVALID, "a{sv}", 1, "force", "b",
                        1);
        assert_unchanged(f, was);
}

static void test_a_text_that_is_not_what_it_should_be_is_invalid(void **state) {
        static const char *const tenants[] = {
                "",
                "slurm",
                "slurm/",
                "/26.0",
                "Slurm/26.0",
                "slurm/../../etc",
                "slurm/26 0",
                "slurm/26.0\n",
                "pod/\xc3\xa4",
        };
        static const char *const identifiers[] = { "", "slurm epilog", "a\nb", "\033[31m" };
        CLEANUP(free_ptr) char *long_text = malloc(4096);
        const Fixture *f = *state;
        Before was = before(f);

        for (size_t i = 0; i < ELEMENTSOF(tenants); i++) {
                fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "tenant", "s",
                                tenants[i]);
                fixture_expect(f->root, MANAGER, "Release", INVALID, "sasa{sv}", tenants[i], 1, "0", 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(identifiers); i++)
                fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "identifier", "s",
                                identifiers[i]);

        assert_non_null(long_text);
        memset(long_text, 'x', 4096);
        memcpy(long_text, "slurm/", 6);
        long_text[4095] = '\0';
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "tenant", "s", long_text);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 0, 1, "reason", "s", long_text);
        fixture_expect(f->root, MANAGER, "Release", INVALID, "sasa{sv}", "slurm/1.0", 1, "0", 1, "tenant",
                        "s", "slurm/2.0");
        assert_unchanged(f, was);
}

static void test_the_common_options_are_taken(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *tenant = NULL;
        uint64_t resets = fixture_resets(f);

        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, GPU_UUID("0"), 5, "tenant", "s",
                        "pod/a-b.c_d", "timeout-usec", "t", (uint64_t) 60000000, "wait", "b", 1,
                        "identifier", "s", "slurm-epilog", "reason", "s", "\033[31m a test");
        assert_int_equal(fixture_resets(f), resets + 1);
        tenant = fixture_text(f, GPU_PATH("0"), BUS_GPU_INTERFACE, "LastTenant");
        assert_string_equal(tenant, "pod/a-b.c_d");
}

static void test_every_spelling_of_an_id_names_the_same_gpu(void **state) {
        static const char *const ids[] = { "1", GPU_UUID("1"), "00000000:00:01.0", "0000:00:01.0" };
        const Fixture *f = *state;
        uint64_t resets = fixture_number(f, GPU_PATH("1"), BUS_GPU_INTERFACE, "ResetCount", 't');

        for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
                fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, ids[i], 0);
                assert_int_equal(fixture_number(f, GPU_PATH("1"), BUS_GPU_INTERFACE, "ResetCount", 't'),
                                resets + i + 1);
        }
}

static void test_without_waiting_the_answer_comes_before_the_work_is_done(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        fixture_script(f, "delay 300\n");
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 0, 1, "wait", "b", 0);
        assert_int_equal(fixture_resets(f), resets);
        wait_until(fixture_resets(f) == resets + 4);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_an_unknown_gpu_fails_the_whole_request, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_malformed_id_is_invalid, bus_fixture_calm),
                cmocka_unit_test_setup(test_an_unknown_object_has_no_methods, bus_fixture_calm),
                cmocka_unit_test_setup(test_more_ids_than_any_tray_has_are_invalid, bus_fixture_calm),
                cmocka_unit_test_setup(test_an_id_that_is_longer_than_any_is_invalid, bus_fixture_calm),
                cmocka_unit_test_setup(test_another_signature_is_invalid, bus_fixture_calm),
                cmocka_unit_test_setup(test_an_option_of_another_name_or_type_is_invalid, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_a_text_that_is_not_what_it_should_be_is_invalid, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_common_options_are_taken, bus_fixture_calm),
                cmocka_unit_test_setup(test_every_spelling_of_an_id_names_the_same_gpu, bus_fixture_calm),
                cmocka_unit_test_setup(test_without_waiting_the_answer_comes_before_the_work_is_done,
                                bus_fixture_calm),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("arguments", tests, bus_fixture_setup, bus_fixture_teardown);
}
