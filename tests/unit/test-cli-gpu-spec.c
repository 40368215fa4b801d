/* SPDX-License-Identifier: MIT */
/* How a person names GPUs of many trays. */
#include "cli/gpu-spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "cli/domain.h"
#include "tests/unit/unit.h"

/* "TRAY 0 2", "TRAY" for all GPUs. */
static void reads(const char *text, const char *expected) {
        CLEANUP(gpu_spec_done) GpuSpec spec = {};
        char got[512];
        size_t n;

        assert_int_equal(gpu_spec_parse(text, &spec), 0);
        n = (size_t) snprintf(got, sizeof got, "%s", spec.tray);
        for (size_t i = 0; i < spec.n_indexes && n < sizeof got; i++)
                n += (size_t) snprintf(got + n, sizeof got - n, " %u", spec.indexes[i]);
        assert_string_equal(got, expected);
}

static void test_trays_and_their_gpus_are_read(void **state) {
        reads("sched-worker2", "sched-worker2");
        reads("sched-worker2:0-1", "sched-worker2 0 1");
        reads("sched-worker2:0,2", "sched-worker2 0 2");
        reads("2:0,3", "2 0 3");
        reads("2", "2");
        reads("admin@tray.example:3", "admin@tray.example 3");
        reads("a:5-5", "a 5");
        reads("a:4095", "a 4095");
}

static void test_a_gpu_that_is_named_twice_counts_once(void **state) {
        reads("a:3,0-2,1,3", "a 0 1 2 3");
}

static void test_what_names_no_gpus_is_refused(void **state) {
        static const char *const texts[] = { "", ":", ":0", "a:", "a:,", "a:0,", "a:,0", "a:0,,1", "a:-1",
                "a:1-", "a:2-1", "a:0-1-2", "a:x", "a:0x1", "a:01", "a: 0", "a:0 ", "a:4096", "a:0-4096",
                "a:99999999999", "a:0:1", "a b", "a/b", "-a", "-oProxyCommand=x:0", "a@b@c", ".", "a\n",
                "a:0\n", "a:0;1", "\xc3\xa4" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                GpuSpec spec = {};

                if (gpu_spec_parse(texts[i], &spec) != -EINVAL)
                        fail_msg("'%s' was read", texts[i]);
                assert_null(spec.indexes);
        }
}

static void test_a_name_of_any_length_is_refused_or_read(void **state) {
        char name[HOST_MAX + 3];
        GpuSpec spec = {};

        memset(name, 'a', sizeof name);
        name[HOST_MAX + 1] = '\0';
        assert_int_equal(gpu_spec_parse(name, &spec), -EINVAL);
        name[HOST_MAX] = '\0';
        reads(name, name);
}

static void finds(const char *text, char *const *hosts, int expected) {
        CLEANUP(gpu_spec_done) GpuSpec spec = {};
        size_t place = 77;
        int r;

        assert_int_equal(gpu_spec_parse(text, &spec), 0);
        r = gpu_spec_find(&spec, hosts, &place);
        assert_int_equal(r < 0 ? r : (int) place, expected);
}

static void test_a_tray_is_found_by_name_before_slot(void **state) {
        static const char *const trays[] = { "root@a", "b", "1", NULL };
        char *const *hosts = (char *const *) trays;

        finds("a", hosts, 0);
        finds("other@a:0", hosts, 0);
        finds("2", hosts, 1);
        finds("3:0", hosts, 2);
        finds("1", hosts, 2); /* its name */
        finds("0", hosts, -ENOENT);
        finds("4", hosts, -ENOENT);
        finds("c", hosts, -ENOENT);
        finds("99999999999", hosts, -ENOENT);
        finds("a", NULL, -ENOENT);
}

/* A tray that is not what it was could have the fabric's controller read an option, or another command. */
static void test_a_gpu_without_a_true_uuid_is_not_chosen(void **state) {
        GpuView gpus[] = { { .uuid = "GPU-05229201-2719-ab58-c1f2-18f06f8ab938", .partition_name = "" },
                { .uuid = "--all", .index = 1, .partition = 7, .partition_name = "" } };
        HostTray tray = { .name = "a", .tray = { .gpus = gpus, .n_gpus = 2 } };
        Domain domain = { .hosts = (char *[]){ (char *) "a", NULL },
                .trays = { .trays = &tray, .n_trays = 1 } };
        CLEANUP(failure_done) Failure failure = {};

        assert_int_equal(domain_choose(&domain, "a:0", &failure), 0);
        assert_true(domain_choose(&domain, "a", &failure) < 0);
        assert_string_equal(failure.message, "a says that it has '--all', which is no GPU");
        assert_true(domain_choose_partition(&domain, 7, &failure) < 0);
        assert_int_equal(domain.n_members, 1);
        free(domain.members);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_trays_and_their_gpus_are_read),
                cmocka_unit_test(test_a_gpu_that_is_named_twice_counts_once),
                cmocka_unit_test(test_what_names_no_gpus_is_refused),
                cmocka_unit_test(test_a_name_of_any_length_is_refused_or_read),
                cmocka_unit_test(test_a_tray_is_found_by_name_before_slot),
                cmocka_unit_test(test_a_gpu_without_a_true_uuid_is_not_chosen),
        };

        return cmocka_run_group_tests_name("cli-gpu-spec", tests, NULL, NULL);
}
