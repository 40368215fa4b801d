/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

#define UUID "GPU-81477906-d580-de42-e868-ff62e9ef4317"

static void test_numbers_are_plain_decimal_digits(void **state) {
        static const char *const bad[] = { "", " 1", "1 ", "+1", "-1", "01", "00", "0x1", "1.0", "1\n",
                "\xff" };
        uint32_t value = 77;

        assert_int_equal(parse_u32("0", 10, &value), 0);
        assert_int_equal(value, 0);
        assert_int_equal(parse_u32("4294967295", UINT32_MAX, &value), 0);
        assert_int_equal(value, UINT32_MAX);

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                value = 77;
                assert_int_equal(parse_u32(bad[i], UINT32_MAX, &value), -EINVAL);
                assert_int_equal(value, 77);
        }
}

static void test_a_number_above_its_maximum_is_out_of_range(void **state) {
        uint32_t value = 77;
        uint64_t large = 77;

        assert_int_equal(parse_u32("11", 10, &value), -ERANGE);
        assert_int_equal(parse_u32("4294967296", UINT32_MAX, &value), -ERANGE);
        assert_int_equal(value, 77);

        assert_int_equal(parse_u64("18446744073709551615", UINT64_MAX, &large), 0);
        assert_true(large == UINT64_MAX);
        assert_int_equal(parse_u64("18446744073709551616", UINT64_MAX, &large), -ERANGE);
        assert_int_equal(parse_u64("99999999999999999999999999", UINT64_MAX, &large), -ERANGE);
        assert_true(large == UINT64_MAX);
}

static void test_a_number_with_garbage_behind_it_is_malformed_however_large(void **state) {
        uint64_t large = 77;

        assert_int_equal(parse_u64("1x", UINT64_MAX, &large), -EINVAL);
        assert_int_equal(parse_u64("5x", 1, &large), -EINVAL);
        assert_true(large == 77);
}

static void test_booleans_have_four_pairs_of_words(void **state) {
        static const char *const yes[] = { "yes", "true", "on", "1", "True", "YES" };
        static const char *const no[] = { "no", "false", "off", "0", "False", "OFF" };
        static const char *const neither[] = { "", "y", "2", "on " };
        bool value;

        for (size_t i = 0; i < ELEMENTSOF(yes); i++) {
                value = false;
                assert_int_equal(parse_boolean(yes[i], &value), 0);
                assert_true(value);
        }
        for (size_t i = 0; i < ELEMENTSOF(no); i++) {
                value = true;
                assert_int_equal(parse_boolean(no[i], &value), 0);
                assert_false(value);
        }
        for (size_t i = 0; i < ELEMENTSOF(neither); i++)
                assert_int_equal(parse_boolean(neither[i], &value), -EINVAL);
}

static void test_durations_take_a_unit_or_are_seconds(void **state) {
        static const struct {
                const char *text;
                usec_t usec;
        } good[] = {
                { "0", 0 },
                { "90", 90 * USEC_PER_SEC },
                { "1.5s", 1500 * USEC_PER_MSEC },
                { "200ms", 200 * USEC_PER_MSEC },
                { "500us", 500 },
                { "0.25", 250 * USEC_PER_MSEC },
                { "2min", 120 * USEC_PER_SEC },
                { "1.5h", 5400 * USEC_PER_SEC },
                { "1.0000000000000000000001s", USEC_PER_SEC },
        };
        usec_t usec;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                usec = USEC_INFINITY;
                assert_int_equal(parse_duration(good[i].text, &usec), 0);
                assert_true(usec == good[i].usec);
        }
}

static void test_what_is_no_duration_is_refused(void **state) {
        static const char *const bad[] = {
                "",
                "s",
                "-1",
                "+1",
                ".5",
                "1.",
                "1.s",
                "1 s",
                " 1",
                "1 ",
                "1S",
                "1sec",
                "1.5.5",
                "1e3",
                "infinity",
        };
        usec_t usec = 77;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(parse_duration(bad[i], &usec), -EINVAL);
        assert_int_equal(parse_duration("18446744073709551616us", &usec), -ERANGE);
        assert_int_equal(parse_duration("18446744073709551615us", &usec), -ERANGE); /* that is "infinity" */
        assert_int_equal(parse_duration("6000000000000000h", &usec), -ERANGE);
        assert_int_equal(parse_duration("18446744073709551614.9us", &usec), 0);
        assert_true(usec == USEC_INFINITY - 1);
}

static void test_a_bus_id_is_known_in_every_spelling(void **state) {
        char id[GPU_BUS_ID_SIZE];

        for (const char *const *s = (const char *const[]){ "00000000:3a:00.0", "0000:3A:00.0", "3a:00.0",
                             NULL };
                        *s; s++) {
                memset(id, 'x', sizeof id);
                assert_int_equal(bus_id_parse(*s, id), 0);
                assert_string_equal(id, "00000000:3A:00.0");
        }
        assert_int_equal(bus_id_parse("FFFF0008:01:1f.7", id), 0);
        assert_string_equal(id, "FFFF0008:01:1F.7");
}

static void test_what_is_no_bus_id_is_refused(void **state) {
        static const char *const bad[] = {
                "",
                ":",
                "::",
                ":18:00.0",
                "0:18:00.0",
                "000:18:00.0",
                "00000:18:00.0",
                "000000000:18:00.0",
                "0000:18:00",
                "0000:18:00.",
                "0000:18:00.8",
                "0000:18:20.0",
                "0000:1g:00.0",
                "0000:18:00.00",
                "0000:18:00.0 ",
                "0000-18:00.0",
                "0000:18-00.0",
                "18:00:0",
                "18.00.0",
                "0000:18:00.0:",
                "g000:18:00.0",
        };
        char id[GPU_BUS_ID_SIZE] = "untouched";

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(bus_id_parse(bad[i], id), -EINVAL);
        assert_string_equal(id, "untouched");
}

static void test_a_uuid_has_its_hex_digits_in_lower_case(void **state) {
        char uuid[GPU_UUID_SIZE];

        assert_int_equal(gpu_uuid_parse("GPU-81477906-D580-DE42-E868-FF62E9EF4317", uuid), 0);
        assert_string_equal(uuid, UUID);
}

static void test_what_is_no_uuid_is_refused(void **state) {
        static const char *const bad[] = {
                "",
                "GPU-",
                "81477906-d580-de42-e868-ff62e9ef4317",
                "gpu-81477906-d580-de42-e868-ff62e9ef4317",
                "GPU-81477906-d580-de42-e868-ff62e9ef431",
                UUID "0",
                "MIG-81477906-d580-de42-e868-ff62e9ef4317",
                "GPU-81477906-d580-de42-e868-ff62e9ef431g",
                "GPU-81477906_d580-de42-e868-ff62e9ef4317",
                "GPU-81477906-d580-de42-e868\nff62e9ef4317",
        };
        char uuid[GPU_UUID_SIZE] = "untouched";

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(gpu_uuid_parse(bad[i], uuid), -EINVAL);
        assert_string_equal(uuid, "untouched");
}

static void test_a_gpu_id_tells_its_kind(void **state) {
        GpuId id;

        assert_int_equal(gpu_id_parse("3", &id), 0);
        assert_int_equal(id.kind, GPU_ID_INDEX);
        assert_int_equal(id.index, 3);
        assert_int_equal(gpu_id_parse(UUID, &id), 0);
        assert_int_equal(id.kind, GPU_ID_UUID);
        assert_string_equal(id.uuid, UUID);
        assert_int_equal(gpu_id_parse("0000:18:00.0", &id), 0);
        assert_int_equal(id.kind, GPU_ID_BUS_ID);
        assert_string_equal(id.bus_id, "00000000:18:00.0");
}

static void test_what_is_no_gpu_id_is_refused(void **state) {
        static const char *const bad[] = {
                "",
                " ",
                "0 ",
                "00",
                "-1",
                "all",
                "GPU-",
                "GPU-0",
                "/dev/nvidia0",
                "nvidia0",
                "0,1",
                "4294967295", /* all ones is "unknown" */
                "4294967296",
                "99999999999999999999",
                "\x1b[31m",
                "\xff",
        };
        GpuId id = { .index = 77 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(gpu_id_parse(bad[i], &id), -EINVAL);
        assert_int_equal(id.index, 77);
}

static void test_a_list_keeps_the_order_of_its_items(void **state) {
        CLEANUP(strv_free_ptr) char **items = NULL;

        assert_int_equal(list_parse("3,1,GPU-x,0000:18:00.0", &items), 0);
        assert_int_equal(strv_length(items), 4);
        assert_string_equal(items[0], "3");
        assert_string_equal(items[3], "0000:18:00.0");
}

static void test_a_list_has_no_empty_items(void **state) {
        char **items = NULL;

        for (const char *const *s = (const char *const[]){ "", ",", "0,", ",0", "0,,1", NULL }; *s; s++)
                assert_int_equal(list_parse(*s, &items), -EINVAL);
        assert_null(items);
}

static void test_a_tenant_is_a_realm_and_a_name(void **state) {
        char longest[TENANT_MAX + 2] = "slurm/";

        assert_true(tenant_is_valid("slurm/27.0"));
        assert_true(tenant_is_valid("pod/2f6a8b04-1111-4222-8333-123456789abc"));
        assert_true(tenant_is_valid("x/A._-b"));

        for (const char *const *s = (const char *const[]){ "", "slurm", "slurm/", "/27", "Slurm/27",
                             "slurm/.27", "slurm/-1", "slurm/_1", "slurm/2/7", "slurm/..", "slurm/27 ",
                             "slurm/2\n7", "slurm/\xc3\xa4", "slurm2/27", NULL };
                        *s; s++)
                assert_false(tenant_is_valid(*s));

        memset(longest + strlen(longest), 'a', TENANT_MAX - strlen(longest));
        assert_true(tenant_is_valid(longest));
        longest[TENANT_MAX] = 'a';
        assert_false(tenant_is_valid(longest));
}

static void test_an_identifier_is_a_short_word(void **state) {
        char longest[66] = "";

        assert_true(identifier_is_valid("slurm-epilog"));
        assert_false(identifier_is_valid(""));
        assert_false(identifier_is_valid("slurm epilog"));
        assert_false(identifier_is_valid("a\nPRIORITY=0"));

        memset(longest, 'a', 64);
        assert_true(identifier_is_valid(longest));
        longest[64] = 'a';
        assert_false(identifier_is_valid(longest));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers_are_plain_decimal_digits),
                cmocka_unit_test(test_a_number_above_its_maximum_is_out_of_range),
                cmocka_unit_test(test_a_number_with_garbage_behind_it_is_malformed_however_large),
                cmocka_unit_test(test_booleans_have_four_pairs_of_words),
                cmocka_unit_test(test_durations_take_a_unit_or_are_seconds),
                cmocka_unit_test(test_what_is_no_duration_is_refused),
                cmocka_unit_test(test_a_bus_id_is_known_in_every_spelling),
                cmocka_unit_test(test_what_is_no_bus_id_is_refused),
                cmocka_unit_test(test_a_uuid_has_its_hex_digits_in_lower_case),
                cmocka_unit_test(test_what_is_no_uuid_is_refused),
                cmocka_unit_test(test_a_gpu_id_tells_its_kind),
                cmocka_unit_test(test_what_is_no_gpu_id_is_refused),
                cmocka_unit_test(test_a_list_keeps_the_order_of_its_items),
                cmocka_unit_test(test_a_list_has_no_empty_items),
                cmocka_unit_test(test_a_tenant_is_a_realm_and_a_name),
                cmocka_unit_test(test_an_identifier_is_a_short_word),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
