/* SPDX-License-Identifier: MIT */
/* What stays of the work: the metrics file, and the audit lines (which go to stderr where there is no
 * journal). */
#include "tests/bus/bus-fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"

#define LINE_MAX_SIZE 1024

/* Whether a file of the fixture has this whole line. */
static bool has_line(const Fixture *f, const char *name, const char *wanted) {
        CLEANUP(free_ptr) char *path = NULL;
        CLEANUP(file_close) FILE *file = NULL;
        char line[LINE_MAX_SIZE];

        assert_true(asprintf(&path, "%s/%s", f->dir, name) > 0);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file)) {
                line[strcspn(line, "\n")] = '\0';
                if (streq(line, wanted))
                        return true;
        }
        return false;
}

static bool is_audited(const Fixture *f, const char *message) {
        char line[LINE_MAX_SIZE];

        (void) snprintf(line, sizeof line, "gpuagentd: %s", message);
        return has_line(f, "output", line);
}

/* A series of GPU 0, or of the tray, on this host. */
static bool has_metric(const Fixture *f, const char *name, const char *gpu_hex, const char *rest) {
        char line[LINE_MAX_SIZE], host[HOST_NAME_MAX + 1] = "", gpu[96] = "";

        assert_int_equal(gethostname(host, sizeof host - 1), 0);
        host[strcspn(host, ".")] = '\0';
        if (gpu_hex)
                (void) snprintf(gpu, sizeof gpu, ",gpu=\"%s\",uuid=\"" GPU_UUID("%s") "\"", gpu_hex,
                                gpu_hex);
        (void) snprintf(line, sizeof line, "%s{host=\"%s\"%s%s", name, host, gpu, rest);
        return has_line(f, "run/metrics.prom", line);
}

static void test_a_job_s_reset_is_one_line_with_its_gpus_in_order(void **state) {
        const Fixture *f = *state;

        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "slurm/26.1", 3, "3", "0", "2", 1,
                        "identifier", "s", "slurm-epilog");
        assert_true(is_audited(f, "job 26: GPUs 0,2,3 reset"));
}

static void test_a_job_s_failed_reset_names_the_gpu_and_its_holder(void **state) {
        const Fixture *f = *state;

        fixture_script(f, "busy 0\nholder 0 python\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "Busy", "asa{sv}", 2, "0", "1", 1,
                        "tenant", "s", "slurm/27.0");
        assert_true(is_audited(f,
                        "job 27: GPU reset of 0 failed: GPU 0 is held by python (pid 1860, user joe, "
                        "unit session-3.scope)"));
}

static void test_resets_without_a_job_say_for_whom_and_why(void **state) {
        const Fixture *f = *state;

        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, "1", 2, "tenant", "s", "pod/1-2",
                        "reason", "s", "driver\nupgrade");
        assert_true(is_audited(f, "GPUs 1 reset for pod/1-2 (driver\\x0aupgrade)"));
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 2, "1", "2", 0);
        assert_true(is_audited(f, "GPUs 1,2 reset"));
}

static void test_a_release_that_resets_nothing_says_so(void **state) {
        const Fixture *f = *state;

        fixture_config(f, "handover: {reset: false}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "slurm/28.0", 2, "0", "1", 0);
        assert_true(is_audited(f, "job 28: GPUs 0,1 not reset: handover.reset is off"));
}

static void test_a_quarantine_and_a_new_clique_are_told(void **state) {
        const Fixture *f = *state;

        fixture_script(f, "next 9\n");
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, "3", 0);
        assert_true(is_audited(f,
                        "GPU 3 is in another clique after its reset: "
                        "00000000-0000-4000-9000-000000000001.9"));
        fixture_script(f, "broken 1\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "ResetFailed", "asa{sv}", 1, "1", 0);
        assert_true(is_audited(f, "GPU 1 is quarantined: could not be reset: "));
}

static void test_questions_leave_no_line(void **state) {
        const Fixture *f = *state;

        fixture_expect(f->root, MANAGER, "Verify", NULL, "asa{sv}", 0, 1, "tenant", "s", "slurm/990.0");
        fixture_expect(f->root, MANAGER, "ListProcesses", NULL, "asa{sv}", 0, 1, "tenant", "s",
                        "slurm/990.0");
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 1, "tenant", "s", "slurm/990.0");
        assert_false(is_audited(f, "job 990: GPUs 0,1,2,3 reset"));
}

static void test_the_metrics_follow_the_state(void **state) {
        const Fixture *f = *state;

        wait_until(has_metric(f, "gpuagent_gpu_state", "2", ",state=\"clean\"} 1"));
        assert_true(has_metric(f, "gpuagent_gpu_state", "2", ",state=\"quarantined\"} 0"));
        assert_true(has_metric(f, "gpuagent_resets_total", "2", ",result=\"reset-failed\"} 0"));
        assert_true(has_metric(f, "gpuagent_resets_total", "2", ",result=\"needs-reboot\"} 0"));
        assert_true(has_metric(f, "nvlink_gpu_links", "0", "} 18"));
        assert_true(has_metric(f, "nvlink_gpu_healthy", "0", "} 1"));
        assert_true(has_metric(f, "nvlink_gpu_reset_pending", "0", "} 0"));
        assert_true(has_metric(f, "gpuagent_gpu_power_watts", "0", "} 123.456"));
        assert_true(has_metric(f, "gpuagent_gpu_utilization_ratio", "0", "} 0.07"));
        assert_true(has_metric(f, "gpuagent_gpu_memory_total_bytes", "0", "} 206158430208"));
        assert_true(has_metric(f, "gpuagent_driver_up", NULL, "} 1"));

        fixture_script(f, "clique 5\nbroken 2\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "ResetFailed", "asa{sv}", 0, 0);
        wait_until(has_metric(f, "gpuagent_gpu_state", "2", ",state=\"quarantined\"} 1"));
        assert_true(has_metric(f, "gpuagent_gpu_state", "2", ",state=\"clean\"} 0"));
        assert_true(has_metric(f, "gpuagent_resets_total", "2", ",result=\"reset-failed\"} 1"));
        assert_true(has_metric(f, "nvlink_gpu_clique_id", "1", "} 5"));
}

static void test_an_unknown_value_has_no_series(void **state) {
        CLEANUP(free_ptr) char *path = NULL, *text = NULL;
        const Fixture *f = *state;

        assert_true(asprintf(&path, "%s/run/metrics.prom", f->dir) > 0);
        wait_until(has_metric(f, "gpuagent_gpu_state", "0", ",state=\"clean\"} 1"));
        assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &text, NULL), 0);
        assert_null(strstr(text, "nvlink_gpu_partition_id{"));
        assert_null(strstr(text, "4294967295"));
        assert_null(strstr(text, "nan"));
}

static void test_the_lab_s_series_can_be_left_out(void **state) {
        const Fixture *f = *state;

        fixture_config(f, "metrics: {nvlink: false}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        wait_until(!has_metric(f, "nvlink_gpu_links", "0", "} 18"));
        assert_true(has_metric(f, "gpuagent_gpu_power_watts", "0", "} 123.456"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(
                                test_a_job_s_reset_is_one_line_with_its_gpus_in_order, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_a_job_s_failed_reset_names_the_gpu_and_its_holder, bus_fixture_calm),
                cmocka_unit_test_setup(test_resets_without_a_job_say_for_whom_and_why, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_release_that_resets_nothing_says_so, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_quarantine_and_a_new_clique_are_told, bus_fixture_calm),
                cmocka_unit_test_setup(test_questions_leave_no_line, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_metrics_follow_the_state, bus_fixture_calm),
                cmocka_unit_test_setup(test_an_unknown_value_has_no_series, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_lab_s_series_can_be_left_out, bus_fixture_calm),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("records", tests, bus_fixture_setup, bus_fixture_teardown);
}
