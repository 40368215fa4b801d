/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "agent/base/text.h"
#include "cli/hosts-metrics.h"
#include "cli/hosts.h"

static void test_a_list_has_each_host_once_in_its_order(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(strv_free_ptr) char **hosts = NULL;

        assert_int_equal(hosts_parse("t2,joe@t1,t2,t3", &hosts, &failure), 0);
        assert_int_equal(strv_length(hosts), 3);
        assert_string_equal(hosts[0], "t2");
        assert_string_equal(hosts[1], "joe@t1");
        assert_string_equal(hosts[2], "t3");
}

static void test_a_bad_list_is_wrong_usage(void **state) {
        static const char *const bad[] = { "", ",", "t1,", "t1,,t2", "t1,-x", "t1, t2", "-oProxyCommand=x",
                "$(id)", "a@b@c", "a:22", "a\nb" };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                CLEANUP(failure_done) Failure failure = {};
                char **hosts = NULL;

                assert_true(hosts_parse(bad[i], &hosts, &failure) < 0);
                assert_null(hosts);
                assert_int_equal(failure.exit_code, CLI_USAGE);
                assert_non_null(failure.message);
        }
}

static void test_this_tray_is_local_by_its_name_alone(void **state) {
        char name[256] = "";

        assert_int_equal(gethostname(name, sizeof name - 1), 0);
        name[strcspn(name, ".")] = '\0';
        assert_true(host_is_local(name));
        assert_false(host_is_local("no-such-tray"));
        assert_false(host_is_local(""));
}

static void assert_merged(char *const *texts, size_t n, const char *expected) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        assert_non_null(file);
        metrics_merge(texts, n, file);
        assert_int_equal(fclose(file), 0);
        assert_string_equal(text, expected);
}

static void test_metrics_of_many_trays_have_each_metric_once(void **state) {
        char *texts[] = {
                (char *) "# HELP a An a.\n# TYPE a gauge\na{host=\"1\"} 1\n# HELP none.\n# TYPE none\n# "
                         "HELP b B.\n# TYPE b gauge\nb "
                         "1\n",
                (char *) "",
                (char *) "# HELP b B.\n# TYPE b gauge\nb 2\nb 3\n# HELP c C.\n# TYPE c gauge\nc 2\n",
                (char *) "# HELP none.\n# TYPE none\n# HELP a An a.\n# TYPE a gauge\n",
        };

        assert_merged(texts, ELEMENTSOF(texts),
                        "# HELP a An a.\n# TYPE a gauge\na{host=\"1\"} 1\n"
                        "# HELP none.\n# TYPE none\n"
                        "# HELP b B.\n# TYPE b gauge\nb 1\nb 2\nb 3\n"
                        "# HELP c C.\n# TYPE c gauge\nc 2\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_list_has_each_host_once_in_its_order),
                cmocka_unit_test(test_a_bad_list_is_wrong_usage),
                cmocka_unit_test(test_this_tray_is_local_by_its_name_alone),
                cmocka_unit_test(test_metrics_of_many_trays_have_each_metric_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
