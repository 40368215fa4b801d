/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "agent/base/text.h"
#include "cli/gpu-list.h"

static GpuView gpus[] = {
        { .path = "/0",
                        .uuid = "GPU-81477906-d580-de42-e868-ff62e9ef4317",
                        .bus_id = "00000000:18:00.0",
                        .index = 0,
                        .minor = 3 },
        { .path = "/1",
                        .uuid = "GPU-8147ef90-7f0c-fc1e-c070-d80c4a3d939f",
                        .bus_id = "00000000:2A:00.0",
                        .index = 1,
                        .minor = 1 },
        { .path = "/2",
                        .uuid = "GPU-91488ef0-5668-4b3a-b971-f8fb582a0fb2",
                        .bus_id = "00000000:3A:00.0",
                        .index = 2,
                        .minor = 0 },
};
static const Tray tray = { .gpus = gpus, .n_gpus = ELEMENTSOF(gpus) };

static uint32_t index_of(const char *id) {
        CLEANUP(failure_done) Failure failure = {};
        const GpuView *gpu = NULL;

        return gpu_list_find(&tray, id, &gpu, &failure) < 0 ? UNKNOWN_U32 : gpu->index;
}

static CliExit exit_of(const char *id) {
        CLEANUP(failure_done) Failure failure = {};
        const GpuView *gpu = NULL;

        assert_true(gpu_list_find(&tray, id, &gpu, &failure) < 0);
        assert_non_null(failure.message);
        assert_null(gpu);
        return failure.exit_code;
}

static void test_a_gpu_has_an_index_a_uuid_and_a_bus_id(void **state) {
        assert_int_equal(index_of("2"), 2);
        assert_int_equal(index_of("GPU-8147ef90-7f0c-fc1e-c070-d80c4a3d939f"), 1);
        assert_int_equal(index_of("GPU-8147EF90-7F0C-FC1E-C070-D80C4A3D939F"), 1);
        assert_int_equal(index_of("0000:3a:00.0"), 2);
        assert_int_equal(index_of("00000000:18:00.0"), 0);
}

static void test_the_beginning_of_a_uuid_is_enough_where_it_is_the_only_one(void **state) {
        assert_int_equal(index_of("GPU-9"), 2);
        assert_int_equal(index_of("GPU-8147e"), 1);
        assert_int_equal(index_of("GPU-8147EF90-7f0c"), 1);
        assert_int_equal(exit_of("GPU-8147"), CLI_USAGE);
        assert_int_equal(exit_of("GPU-7"), CLI_NO_GPU);
}

static void test_what_is_no_gpu_is_told_from_one_that_is_not_there(void **state) {
        static const char *const no_ids[] = { "", "x", "-1", "01", "GPU-", "GPU-x", "gpu-9", "MIG-91488ef0",
                "18:00", "\xff" };

        assert_int_equal(exit_of("3"), CLI_NO_GPU);
        assert_int_equal(exit_of("0000:5d:00.0"), CLI_NO_GPU);
        assert_int_equal(exit_of("GPU-00000000-0000-0000-0000-000000000000"), CLI_NO_GPU);
        for (size_t i = 0; i < ELEMENTSOF(no_ids); i++)
                assert_int_equal(exit_of(no_ids[i]), CLI_USAGE);
}

static void test_a_list_is_split_and_completed(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(strv_free_ptr) char **ids = NULL;

        assert_int_equal(gpu_list_parse("0,GPU-9,0000:2a:00.0", &ids, &failure), 0);
        assert_int_equal(strv_length(ids), 3);
        assert_true(gpu_list_has_prefix(ids));
        assert_int_equal(gpu_list_complete(ids, &tray, &failure), 0);
        assert_string_equal(ids[0], "0");
        assert_string_equal(ids[1], gpus[2].uuid);
        assert_string_equal(ids[2], "0000:2a:00.0");
        assert_false(gpu_list_has_prefix(ids));
        assert_false(gpu_list_has_prefix(NULL));
}

static void test_a_list_with_a_mistake_is_wrong_usage(void **state) {
        static const char *const lists[] = { "", ",", "0,", ",0", "0,,1", "0, 1", "0-3", "all" };

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(strv_free_ptr) char **ids = NULL;

                assert_true(gpu_list_parse(lists[i], &ids, &failure) < 0);
                assert_int_equal(failure.exit_code, CLI_USAGE);
                assert_null(ids);
        }
}

static void test_nothing_that_steers_a_terminal_gets_through(void **state) {
        char text[] = "a\033[2J\nb\xff";

        text_sanitize(text);
        assert_string_equal(text, "a?[2J?b?");
}

static void test_errors_of_the_bus_have_exit_codes(void **state) {
        assert_int_equal(exit_from_bus_error("org.gpuagent1.Error.Busy"), CLI_FAILED);
        assert_int_equal(exit_from_bus_error("org.gpuagent1.Error.NoSuchGPU"), CLI_NO_GPU);
        assert_int_equal(exit_from_bus_error(SD_BUS_ERROR_INVALID_ARGS), CLI_USAGE);
        assert_int_equal(exit_from_bus_error(SD_BUS_ERROR_ACCESS_DENIED), CLI_DENIED);
        assert_int_equal(exit_from_bus_error(SD_BUS_ERROR_SERVICE_UNKNOWN), CLI_NO_AGENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_gpu_has_an_index_a_uuid_and_a_bus_id),
                cmocka_unit_test(test_the_beginning_of_a_uuid_is_enough_where_it_is_the_only_one),
                cmocka_unit_test(test_what_is_no_gpu_is_told_from_one_that_is_not_there),
                cmocka_unit_test(test_a_list_is_split_and_completed),
                cmocka_unit_test(test_a_list_with_a_mistake_is_wrong_usage),
                cmocka_unit_test(test_nothing_that_steers_a_terminal_gets_through),
                cmocka_unit_test(test_errors_of_the_bus_have_exit_codes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
