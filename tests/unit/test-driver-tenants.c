/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/driver/tenants.h"

#define POD             "a1b2c3d4-0000-1111-2222-333344445555"
#define POD_UNDERSCORES "a1b2c3d4_0000_1111_2222_333344445555"

static void test_a_steps_socket_names_its_job(void **state) {
        static const struct {
                const char *name;
                int r;
                uint32_t job;
        } cases[] = {
                { "n1_27.0", 1, 27 },
                { "gpu_node_1_4294967294.4294967291", 1, 4294967294 },
                { "n1_27.0.1", 1, 27 },
                { "n1_s0123456789abc.0", -EOPNOTSUPP, 0 },
                { "n1_027.0", 0, 0 },
                { "n1_27", 0, 0 },
                { "n1_27.", 0, 0 },
                { "n1_27.x", 0, 0 },
                { "_27.0", 0, 0 },
                { "27.0", 0, 0 },
                { "n1_99999999999.0", 0, 0 },
                { "n1_-1.0", 0, 0 },
                { "cred_state", 0, 0 },
                { "cred_state.old", 0, 0 },
                { "job00027", 0, 0 },
                { "", 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint32_t job = 0;

                assert_int_equal(step_socket_parse(cases[i].name, &job), cases[i].r);
                assert_int_equal(job, cases[i].job);
        }
}

static void test_slurm_conf_says_where_the_spool_is(void **state) {
        static const struct {
                const char *text;
                const char *pattern;
        } cases[] = {
                { "ClusterName=c\nSlurmdSpoolDir=/var/spool/d\n", "/var/spool/d" },
                { "slurmdspooldir = /a # comment\n", "/a" },
                { "  SLURMDSPOOLDIR=/x/%n/%h/%%\n", "/x/*/*/%%" },
                { "SlurmdSpoolDir=/a\nSlurmdSpoolDir=/b\n", "/b" },
                { "SlurmdSpoolDir=/a[b]*?\\\n", "/a\\[b]\\*\\?\\\\" },
                { "SlurmdSpoolDir=/end-without-newline", "/end-without-newline" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CLEANUP(free_ptr) char *pattern = NULL;

                assert_int_equal(slurm_spool_parse(cases[i].text, &pattern), 1);
                assert_string_equal(pattern, cases[i].pattern);
        }
}

static void test_slurm_conf_need_not_say_it(void **state) {
        static const char *const texts[] = { "", "#SlurmdSpoolDir=/a\n", "SlurmdSpoolDir\n",
                "SlurmdSpoolDir=\n", "SlurmdSpoolDir=relative\n", "SlurmdSpoolDirectory=/a\n",
                "StateSaveLocation=/a\n" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                char *pattern = NULL;

                assert_int_equal(slurm_spool_parse(texts[i], &pattern), 0);
                assert_null(pattern);
        }
}

static void test_a_pods_folder_names_it_under_either_driver(void **state) {
        static const char *const names[] = { "pod" POD, "kubepods-pod" POD_UNDERSCORES ".slice",
                "kubepods-burstable-pod" POD_UNDERSCORES ".slice",
                "kubelet-kubepods-besteffort-pod" POD_UNDERSCORES ".slice" };
        static const char *const others[] = { "pod", "pod1", "burstable", "kubepods.slice", "job_27", POD,
                "", "cri-containerd-0123.scope" };
        char where[96];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                assert_true(pod_folder_parse(names[i], where, sizeof where));
                assert_string_equal(where, "pod " POD);
        }
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_false(pod_folder_parse(others[i], where, sizeof where));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_steps_socket_names_its_job),
                cmocka_unit_test(test_slurm_conf_says_where_the_spool_is),
                cmocka_unit_test(test_slurm_conf_need_not_say_it),
                cmocka_unit_test(test_a_pods_folder_names_it_under_either_driver),
        };

        return cmocka_run_group_tests_name("driver-tenants", tests, NULL, NULL);
}
