/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/lease.h"
#include "cli/own-job.h"
#include "cli/program.h"
#include "cli/slurm-drain.h"
#include "cli/slurm-gpus.h"

#define UUID_0 "GPU-81477906-d580-de42-e868-ff62e9ef4317"
#define UUID_1 "GPU-8147ef90-7f0c-fc1e-c070-d80c4a3d939f"

/* As Slurm 24.11 prints it. */
#define GRES(file, count)                                                                \
        "slurmd: Gres Name=gpu Type=gb200 Count=" count " Index=3 ID=7696487 File=" file \
        " Links=-1,18 Flags=HAS_FILE,HAS_TYPE,ENV_NVML\n"

/* Index and minor differ, as they do on some machines. */
static GpuView gpus[] = {
        { .path = "/0", .uuid = UUID_0, .bus_id = "00000000:18:00.0", .index = 0, .minor = 1 },
        { .path = "/1", .uuid = UUID_1, .bus_id = "00000000:2A:00.0", .index = 1, .minor = 0 },
};
static const Tray tray = { .gpus = gpus, .n_gpus = ELEMENTSOF(gpus) };

static uint32_t zero_and_one[] = { 0, 1 };

static SlurmJob job_with(size_t n_positions, const char *visible_devices) {
        return (SlurmJob){ .id = 27,
                .positions = zero_and_one,
                .n_positions = n_positions,
                .visible_devices = visible_devices };
}

static void set_environment(const char *gpus_text, const char *id, const char *restarts) {
        assert_int_equal(gpus_text ? setenv("SLURM_JOB_GPUS", gpus_text, 1) : unsetenv("SLURM_JOB_GPUS"), 0);
        assert_int_equal(id ? setenv("SLURM_JOB_ID", id, 1) : unsetenv("SLURM_JOB_ID"), 0);
        assert_int_equal(restarts ? setenv("SLURM_JOB_RESTART_COUNT", restarts, 1)
                                  : unsetenv("SLURM_JOB_RESTART_COUNT"),
                        0);
}

static void test_a_job_without_gpus_needs_nothing(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        SlurmJob job;

        set_environment(NULL, NULL, NULL);
        assert_int_equal(slurm_job_read(&job, &failure), 0);
        set_environment("", "x", "x");
        assert_int_equal(slurm_job_read(&job, &failure), 0);
}

static void test_the_tenant_is_the_job_and_its_restarts(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(slurm_job_done) SlurmJob job = {};

        set_environment("0,3", "26", "2");
        assert_int_equal(slurm_job_read(&job, &failure), 1);
        assert_int_equal(slurm_job_read_positions(&job, &failure), 0);
        assert_string_equal(job.tenant, "slurm/26.2");
        assert_int_equal(job.n_positions, 2);
        assert_int_equal(job.positions[1], 3);
}

static void test_an_environment_with_a_mistake_is_refused(void **state) {
        static const char *const bad[][3] = {
                { "0", NULL, "0" },
                { "0", "", "0" },
                { "0", "x", "0" },
                { "0", "-1", "0" },
                { "0", "26", "x" },
                { "0,", "26", "0" },
                { "0-3", "26", "0" },
                { "0,0", "26", "0" },
                { "99999", "26", "0" },
                { " 0", "26", "0" },
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(slurm_job_done) SlurmJob job = {};

                set_environment(bad[i][0], bad[i][1], bad[i][2]);
                assert_true(slurm_job_read(&job, &failure) < 0 ||
                                slurm_job_read_positions(&job, &failure) < 0);
                assert_int_equal(failure.exit_code, CLI_FAILED);
                assert_non_null(failure.message);
        }
}

static void test_leases_are_told_by_whole_names(void **state) {
        assert_true(lease_names("slurm/26.0", "slurm/26.0"));
        assert_true(lease_names("pod/a-b, slurm/26.0 and 2 more", "slurm/26.0"));
        assert_false(lease_names("slurm/26.0", "slurm/2"));
        assert_false(lease_names("slurm/26.0", "slurm/26.01"));
        assert_false(lease_names("slurm/126.0", "slurm/26.0"));
        assert_false(lease_names("", "slurm/26.0"));
}

static void test_a_job_s_only_lease_tells_its_restarts(void **state) {
        GpuView leased[] = { { .uuid = UUID_0, .tenant = "slurm/27.2" },
                { .uuid = UUID_1, .index = 1, .tenant = "pod/x, slurm/27.2" } };
        Tray leases = { .gpus = leased, .n_gpus = ELEMENTSOF(leased) };
        char tenant[TENANT_MAX + 1] = "slurm/27.0", other[TENANT_MAX + 1] = "slurm/2.0";
        char both[TENANT_MAX + 1] = "slurm/27.0";
        CLEANUP(free_ptr) char *names = NULL;

        lease_find_restart(&leases, tenant);
        assert_string_equal(tenant, "slurm/27.2");
        assert_int_equal(lease_gpus(&leases, tenant, &names), 2);
        assert_string_equal(names, "0,1");
        lease_find_restart(&leases, other);
        assert_string_equal(other, "slurm/2.0");

        leased[1].tenant = "slurm/27.3";
        lease_find_restart(&leases, both);
        assert_string_equal(both, "slurm/27.0");
}

static void test_an_epilog_finds_the_run_that_a_requeue_has_ended(void **state) {
        static const char *const cases[][2] = {
                { "slurm/27.3", "slurm/27.2" }, /* counted already */
                { "slurm/27.2", "slurm/27.2" }, /* its own */
                { "slurm/28.1", "slurm/28.1" }, /* both runs have GPUs */
                { "slurm/27.4", "slurm/27.4" }, /* two runs ago */
                { "slurm/27.0", "slurm/27.0" },
                { "slurm/2.3", "slurm/2.3" },
        };
        GpuView leased[] = { { .uuid = UUID_0, .tenant = "slurm/27.2" },
                { .uuid = UUID_1, .index = 1, .tenant = "slurm/28.0, slurm/28.1" } };
        Tray leases = { .gpus = leased, .n_gpus = ELEMENTSOF(leased) };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char tenant[TENANT_MAX + 1];

                (void) snprintf(tenant, sizeof tenant, "%s", cases[i][0]);
                lease_find_ended_run(&leases, tenant);
                assert_string_equal(tenant, cases[i][1]);
        }
}

static void test_slurmd_s_list_has_the_files_in_its_order(void **state) {
        static const char text[] = "slurmd: Node configuration differs from hardware: CPUs=4:2(hw)\n" GRES(
                        "/dev/nvidia3",
                        "1") "slurmd: Gres Name=shard Type=(null) Count=2 Index=0 ID=1918986455 "
                             "File=/dev/nvidia0 Links=(null) Flags=SHARED\n" GRES("/dev/nvidia[0-1,12]", "3")
                                             GRES("/dev/nvidia4,/dev/nvidia2", "2");
        static const uint32_t expected[] = { 3, 0, 1, 12, 4, 2 };
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(gres_list_done) GresList list = {};

        assert_int_equal(gres_list_parse(text, &list, &failure), 0);
        assert_int_equal(list.n_minors, ELEMENTSOF(expected));
        assert_memory_equal(list.minors, expected, sizeof expected);
}

static void test_a_list_that_is_not_certain_is_refused(void **state) {
        static const char *const lists[] = {
                "slurmd: Gres Name=gpu Type=(null) Count=4 ID=7696487 Links=(null) Flags=\n",
                GRES("/dev/nvidia0", "2"),
                GRES("/dev/nvidia[0-1]", "1"),
                GRES("/dev/nvidia[1-0]", "2"),
                GRES("/dev/nvidia[0-12", "2"),
                GRES("/dev/nvidia[0]x", "1"),
                GRES("/dev/nvidia", "1"),
                GRES("/dev/nvidiactl", "1"),
                GRES("/dev/dri/card0", "1"),
                GRES("/dev/nvidia0", "1") GRES("/dev/nvidia0", "1"),
                "Gres Name=gpu Type=a Count=1 ID=7 File=/dev/nvidia0 Links=(null) Flags=HAS_FILE,HAS_MULT\n",
        };

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(gres_list_done) GresList list = {};

                assert_true(gres_list_parse(lists[i], &list, &failure) < 0);
                assert_non_null(failure.message);
                assert_null(list.minors);
        }
}

static void test_uuids_say_more_than_numbers(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(gpu_set_done) GpuSet found = {};
        SlurmJob job = job_with(2, UUID_1 "," UUID_0);
        SlurmNaming naming;

        assert_int_equal(slurm_naming(&job, GPU_INDEX_INDEX, &naming, &failure), 0);
        assert_int_equal(naming, SLURM_NAMES_UUID);
        assert_int_equal(slurm_gpus_from_uuids(&job, &tray, &found, &failure), 0);
        assert_string_equal(found.ids[0], UUID_1);
        assert_string_equal(found.ids[1], UUID_0);
        assert_string_equal(found.names, "1,0");
}

static void test_contradictions_and_mig_devices_are_refused(void **state) {
        static const char *const visible[] = { UUID_0, "MIG-91488ef0-5668-4b3a-b971-f8fb582a0fb2,MIG-x" };

        for (size_t i = 0; i < ELEMENTSOF(visible); i++) {
                CLEANUP(failure_done) Failure failure = {};
                SlurmJob job = job_with(2, visible[i]);
                SlurmNaming naming;

                assert_true(slurm_naming(&job, GPU_INDEX_AUTO, &naming, &failure) < 0);
                assert_non_null(failure.message);
        }
}

static void test_numbers_are_what_the_rule_says(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        SlurmJob job = job_with(2, "0,1");
        SlurmNaming naming;

        assert_int_equal(slurm_naming(&job, GPU_INDEX_AUTO, &naming, &failure), 0);
        assert_int_equal(naming, SLURM_NAMES_PLACE);
        assert_int_equal(slurm_naming(&job, GPU_INDEX_INDEX, &naming, &failure), 0);
        assert_int_equal(naming, SLURM_NAMES_INDEX);
        assert_int_equal(slurm_naming(&job, GPU_INDEX_MINOR, &naming, &failure), 0);
        assert_int_equal(naming, SLURM_NAMES_MINOR);
}

static void test_a_place_leads_to_a_minor_and_that_to_the_gpu(void **state) {
        static uint32_t minors[] = { 1, 0 };
        const GresList places = { .minors = minors, .n_minors = 2 };
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(gpu_set_done) GpuSet by_place = {}, by_minor = {};
        SlurmJob job = job_with(1, "0");

        assert_int_equal(slurm_gpus_from_minors(&job, &places, &tray, &by_place, &failure), 0);
        assert_string_equal(by_place.ids[0], UUID_0);
        assert_string_equal(by_place.names, "0");
        assert_int_equal(slurm_gpus_from_minors(&job, NULL, &tray, &by_minor, &failure), 0);
        assert_string_equal(by_minor.ids[0], UUID_1);
        assert_string_equal(by_minor.names, "1");
}

static void test_a_place_or_minor_that_is_not_there_is_no_gpu(void **state) {
        static uint32_t minors[] = { 1, 7 };
        const GresList one_place = { .minors = minors, .n_minors = 1 },
                       foreign_minor = { .minors = minors, .n_minors = 2 };
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(gpu_set_done) GpuSet found = {};
        SlurmJob job = job_with(2, "0,1");

        assert_true(slurm_gpus_from_minors(&job, &one_place, &tray, &found, &failure) < 0);
        assert_int_equal(failure.exit_code, CLI_NO_GPU);
        assert_true(slurm_gpus_from_minors(&job, &foreign_minor, &tray, &found, &failure) < 0);
        assert_int_equal(failure.exit_code, CLI_NO_GPU);
        assert_null(found.ids);
}

static void test_the_drain_reason_has_the_cause_first(void **state) {
        char reason[DRAIN_REASON_SIZE];

        drain_reason_format(
                        "GPU 0 is held by python (pid 1860, user root, unit session-3.scope)", 27, reason);
        assert_string_equal(reason,
                        "gpuagent: GPU 0 held by python (pid 1860, user root, unit session-3.scope), job "
                        "27");
}

static void test_the_drain_reason_is_short_and_harmless(void **state) {
        char cause[1000], reason[DRAIN_REASON_SIZE];

        memset(cause, 'x', sizeof cause);
        cause[sizeof cause - 1] = '\0';
        drain_reason_format(cause, UINT32_MAX, reason);
        assert_true(strlen(reason) < DRAIN_REASON_SIZE);
        assert_non_null(strstr(reason, "x, job 4294967295"));

        drain_reason_format("a\"b'c\nd\xff", 1, reason);
        assert_string_equal(reason, "gpuagent: a?b?c?d?, job 1");
}

static void test_who_has_drained_a_node_is_told_by_its_reason(void **state) {
        static const char text[] =
                        "NodeName=n1 Arch=x86_64\n   State=%s ThreadsPerCore=1\n   Reason=%s [root@now]\n";
        static const struct {
                const char *state, *reason;
                NodeDrain drain;
        } nodes[] = {
                { "IDLE", "gpuagent: GPU 0", NODE_IN_USE },
                { "MIXED+DRAIN", "gpuagent: GPU 0 held by python", NODE_DRAINED_BY_US },
                { "IDLE+DRAIN", "Epilog error", NODE_DRAINED_BY_OTHERS },
                { "DOWN*+DRAIN", "DRAIN gpuagent:", NODE_DRAINED_BY_OTHERS },
                { "DOWN", "not DRAINed", NODE_IN_USE },
        };
        char shown[256];

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                (void) snprintf(shown, sizeof shown, text, nodes[i].state, nodes[i].reason);
                assert_int_equal(node_drain_parse(shown), nodes[i].drain);
        }
        assert_int_equal(node_drain_parse("NodeName=n1\n   State=IDLE+DRAIN\n"), NODE_DRAINED_BY_OTHERS);
        assert_int_equal(node_drain_parse(""), NODE_IN_USE);
}

static void test_a_reason_without_a_job_names_none(void **state) {
        char reason[DRAIN_REASON_SIZE];

        drain_reason_format("GPU 0 is quarantined", 0, reason);
        assert_string_equal(reason, "gpuagent: GPU 0 is quarantined");
}

static void test_an_administrator_s_reason_is_foreign(void **state) {
        static const char format[] = "NodeName=n1 Arch=x86_64\n   State=IDLE+DRAIN\n   Reason=%s "
                                     "[root@2026-10-07T02:58:49]\n";
        char text[200];

        (void) snprintf(text, sizeof text, format, "fan broken");
        assert_true(node_has_foreign_reason(text));
        (void) snprintf(text, sizeof text, format, "gpuagent: GPU 0 held by x, job 1");
        assert_false(node_has_foreign_reason(text));
        (void) snprintf(text, sizeof text, format, "Epilog error");
        assert_false(node_has_foreign_reason(text));
        assert_false(node_has_foreign_reason("NodeName=n1 Arch=x86_64\n   State=IDLE\n"));
}

static void test_slurm_s_own_limit_is_found(void **state) {
        static const char both[] = "PrologEpilogTimeout=90\nPrologTimeout=30\nEpilogTimeout=60\n";

        assert_true(slurm_timeout_parse(both, SLURM_PROLOG) == 30 * USEC_PER_SEC);
        assert_true(slurm_timeout_parse(both, SLURM_EPILOG) == 60 * USEC_PER_SEC);
        assert_true(slurm_timeout_parse("", SLURM_EPILOG) == USEC_INFINITY);
        assert_true(slurm_timeout_parse("A=1\nPrologEpilogTimeout=90\nB=2\n", SLURM_EPILOG) ==
                        90 * USEC_PER_SEC);
        assert_true(slurm_timeout_parse("PrologEpilogTimeout=90\n  epilogtimeout=60 # ours\n",
                                    SLURM_EPILOG) == 60 * USEC_PER_SEC);
        assert_true(slurm_timeout_parse("#PrologEpilogTimeout=90\n", SLURM_EPILOG) == USEC_INFINITY);
        assert_true(slurm_timeout_parse("PrologEpilogTimeout=65534\nPrologEpilogTimeout=0", SLURM_EPILOG) ==
                        USEC_PER_SEC * 65534);
}

static void test_included_files_are_noticed(void **state) {
        assert_true(slurm_conf_has_include("ClusterName=a\n  Include nodes.conf\n"));
        assert_true(slurm_conf_has_include("include nodes.conf"));
        assert_false(slurm_conf_has_include("ClusterName=a\n#Include nodes.conf\nNodeName=include1\n"));
        assert_false(slurm_conf_has_include(""));
}

static void test_a_program_s_end_and_output_are_told(void **state) {
        CLEANUP(free_ptr) char *good = NULL, *bad = NULL;
        const char *const echo[] = { "/bin/sh", "-c", "echo out; echo err >&2", NULL };
        const char *const fail_command[] = { "/bin/sh", "-c", "echo $PATH; exit 3", NULL };
        const char *const absent[] = { "/nonexistent/program", NULL };
        usec_t deadline = now_monotonic_usec() + 10 * USEC_PER_SEC;

        assert_int_equal(program_run((char *const *) echo, deadline, &good), 0);
        assert_string_equal(good, "out\nerr\n");
        assert_int_equal(program_run((char *const *) fail_command, deadline, &bad), 1);
        assert_string_equal(bad, "/usr/sbin:/usr/bin:/sbin:/bin\n");
        assert_int_equal(program_run((char *const *) absent, deadline, &bad), -ENOENT);
}

static void test_a_program_that_is_too_slow_is_ended(void **state) {
        const char *const slow[] = { "/bin/sh", "-c", "trap '' TERM; exec sleep 60", NULL };
        usec_t start = now_monotonic_usec();
        char *output = NULL;

        assert_int_equal(program_run((char *const *) slow, start + 50 * USEC_PER_MSEC, &output), -ETIMEDOUT);
        assert_null(output);
        assert_true(now_monotonic_usec() - start < 10 * USEC_PER_SEC);
}

static void test_a_job_is_told_by_slurmd_s_own_cgroups(void **state) {
        static const struct {
                const char *text;
                uint32_t job; /* 0: none */
        } cases[] = {
                { "0::/system.slice/slurmstepd.scope/job_27/step_0/user/task_0\n", 27 },
                { "0::/system.slice/n1_slurmstepd.scope/job_27/step_extern\n", 27 },
                { "4:memory:/slurm/uid_1000/job_27/step_0\n1:name=systemd:/system.slice/slurmd.service\n",
                                27 },
                { "4:devices:/slurm_n1/uid_1000/job_4294967295\n0::/\n", 4294967295U },
                { "0::/system.slice/slurmstepd.scope/job_\n", 0 },
                { "0::/system.slice/slurmstepd.scope/job_27x/step_0\n", 0 },
                { "0::/system.slice/slurmstepd.scope/job_99999999999999999999/step_0\n", 0 },
                { "0::/system.slice/slurmstepd.scope/system\n", 0 },
                { "0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_27/step_0\n", 0 },
                { "0::/user.slice/system.slice/slurmstepd.scope/job_27\n", 0 },
                { "0::/system.slice/docker.service/slurm/uid_0/job_27\n", 0 },
                { "0::/slurmx/uid_0/job_27\n", 0 },
                { "0::/\n", 0 },
                { "", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint32_t job = 0;

                assert_int_equal(own_job_parse(cases[i].text, &job), cases[i].job != 0);
                if (cases[i].job != 0)
                        assert_int_equal(job, cases[i].job);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_job_without_gpus_needs_nothing),
                cmocka_unit_test(test_the_tenant_is_the_job_and_its_restarts),
                cmocka_unit_test(test_an_environment_with_a_mistake_is_refused),
                cmocka_unit_test(test_leases_are_told_by_whole_names),
                cmocka_unit_test(test_a_job_s_only_lease_tells_its_restarts),
                cmocka_unit_test(test_an_epilog_finds_the_run_that_a_requeue_has_ended),
                cmocka_unit_test(test_slurmd_s_list_has_the_files_in_its_order),
                cmocka_unit_test(test_a_list_that_is_not_certain_is_refused),
                cmocka_unit_test(test_uuids_say_more_than_numbers),
                cmocka_unit_test(test_contradictions_and_mig_devices_are_refused),
                cmocka_unit_test(test_numbers_are_what_the_rule_says),
                cmocka_unit_test(test_a_place_leads_to_a_minor_and_that_to_the_gpu),
                cmocka_unit_test(test_a_place_or_minor_that_is_not_there_is_no_gpu),
                cmocka_unit_test(test_the_drain_reason_has_the_cause_first),
                cmocka_unit_test(test_the_drain_reason_is_short_and_harmless),
                cmocka_unit_test(test_who_has_drained_a_node_is_told_by_its_reason),
                cmocka_unit_test(test_a_reason_without_a_job_names_none),
                cmocka_unit_test(test_an_administrator_s_reason_is_foreign),
                cmocka_unit_test(test_slurm_s_own_limit_is_found),
                cmocka_unit_test(test_a_job_is_told_by_slurmd_s_own_cgroups),
                cmocka_unit_test(test_included_files_are_noticed),
                cmocka_unit_test(test_a_program_s_end_and_output_are_told),
                cmocka_unit_test(test_a_program_that_is_too_slow_is_ended),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
