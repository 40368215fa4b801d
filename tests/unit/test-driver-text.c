/* SPDX-License-Identifier: MIT */
/* What other programs print: nvidia-smi's words about a reset, fabric.query's lines; and the fabric's health
 * mask. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/driver/device.h"
#include "agent/driver/fabric-query.h"
#include "agent/driver/record.h"
#include "agent/driver/smi-text.h"

#define BUS_0  "00000000:18:00.0"
#define BUS_1  "00000000:2A:00.0"
#define UUID_0 "GPU-81477906-d580-de42-e868-ff62e9ef4317"
#define UUID_1 "GPU-8147ef90-7f0c-fc1e-c070-d80c4a3d939f"

static const char busy_frame[] =
                "GPU 00000000:2A:00.0 was successfully reset.\n"
                "The following GPUs could not be reset:\n"
                "  GPU 00000000:18:00.0: In use by another client\n"
                "\n"
                "1 device is currently being used by one or more other processes (e.g., Fabric Manager, "
                "CUDA application, graphics "
                "application such as an X server, or a monitoring application such as another instance of "
                "nvidia-smi). Please first "
                "kill all processes using this device and all compute applications running in the system.\n";

static void test_each_gpu_of_a_partial_failure_has_its_own_verdict(void **state) {
        assert_int_equal(smi_text_verdict(busy_frame, BUS_0, UUID_0), RESET_IN_USE);
        assert_int_equal(smi_text_verdict(busy_frame, BUS_1, UUID_1), RESET_DONE);
}

static void test_refusals_of_all_kinds_are_told_apart(void **state) {
        static const struct {
                const char *text;
                ResetVerdict verdict;
        } cases[] = {
                { "Unable to reset GPU 00000000:18:00.0 because it's being used by some other process (e.g. "
                  "CUDA application). "
                  "Please first kill all processes using this GPU.\nSome GPUs could not be reset.\n",
                                RESET_IN_USE },
                { "GPU 00000000:18:00.0 is currently in use by another process.\n", RESET_IN_USE },
                { "The following GPUs could not be reset:\n  GPU 00000000:18:00.0: Not Supported\n",
                                RESET_NOT_SUPPORTED },
                { "Resetting GPU 00000000:18:00.0 is not supported.\n", RESET_NOT_SUPPORTED },
                { "GPU 00000000:18:00.0: did not complete reset successfully, and may be in an unstable "
                  "state.\n",
                                RESET_FAILED },
                { "Unable to reset GPU 00000000:18:00.0: Insufficient Permissions\n", RESET_FAILED },
                { "GPU 00000000:18:00.0 was successfully reset.\nGPU 00000000:18:00.0: Unknown Error\n",
                                RESET_FAILED },
                { "GPU 00000000:18:00.0: Unknown Error\nGPU 00000000:18:00.0 was successfully reset.\n",
                                RESET_FAILED },
                { "gpu 00000000:18:00.0 WAS SUCCESSFULLY RESET.\r\n", RESET_DONE },
                { "GPU " UUID_0 " was successfully reset.", RESET_DONE },
                { "3 devices are currently being used by one or more other processes\n", RESET_IN_USE },
                { "All done.\n", RESET_FAILED },
                { "", RESET_FAILED },
                { "\n\n \n", RESET_FAILED },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(smi_text_verdict(cases[i].text, BUS_0, UUID_0), cases[i].verdict);
}

static void test_the_detail_is_the_gpus_own_lines(void **state) {
        char detail[256];

        smi_text_detail(busy_frame, BUS_1, UUID_1, detail, sizeof detail);
        assert_string_equal(detail, "GPU 00000000:2A:00.0 was successfully reset");
        smi_text_detail("Something\r\n  is \xff wrong \n", BUS_0, UUID_0, detail, sizeof detail);
        assert_string_equal(detail, "Something is \\xff wrong");
        smi_text_detail(busy_frame, "x", "x", detail, sizeof detail);
        assert_int_equal(strlen(detail), sizeof detail - 1);
        smi_text_detail("", BUS_0, UUID_0, detail, sizeof detail);
        assert_string_equal(detail, "");
}

static void test_a_line_of_the_fabric_query_is_read(void **state) {
        FabricLine line;

        assert_int_equal(fabric_line_parse(UUID_0 " 7 tray2 7", &line), 0);
        assert_string_equal(line.uuid, UUID_0);
        assert_int_equal(line.partition, 7);
        assert_string_equal(line.name, "tray2");
        assert_int_equal(line.clique, 7);
        assert_int_equal(fabric_line_parse("\t" UUID_0 "\t0  -  -\r", &line), 0);
        assert_int_equal(line.partition, 0);
        assert_string_equal(line.name, "");
        assert_int_equal(line.clique, UNKNOWN_U32);
}

static void test_a_bad_line_of_the_fabric_query_is_refused(void **state) {
        static const char *const lines[] = {
                "",
                UUID_0,
                UUID_0 " 7 tray2",
                UUID_0 " 7 tray2 7 8",
                UUID_0 " -1 tray2 7",
                UUID_0 " 7 tr\x1b 7",
                UUID_0 " 7 tray2 x",
                "GPU-1 7 tray2 7",
                UUID_0 " 32767 tray2 7",
                UUID_0 " 7 tray2 4294967295",
                UUID_0 " 7 0123456789012345678901234567890123456789012345678901234567890123 7",
        };
        FabricLine line;

        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_int_equal(fabric_line_parse(lines[i], &line), -EINVAL);
}

/* What a query costs shows in what it says. */
static bool query_is_asked(char **uuids, const GpuSample *sample, bool hangs) {
        char record_path[] = "/tmp/test-query-XXXXXX";
        CLEANUP(fd_close) int fd = mkstemp(record_path);
        Config config = { .fabric.query = (char *) "/bin/echo nonsense" };
        Record record = { .kind = TASK_PROBE, .deadline_usec = USEC_INFINITY, .n_processes = 1 };
        GpuSample copy = *sample;
        Answer answer = { .kind = TASK_PROBE, .samples = &copy, .n = 1 };
        Task task = { .kind = TASK_PROBE,
                .config = &config,
                .record = record_path,
                .uuids = uuids,
                .query_hangs = hangs,
                .deadline_usec = now_monotonic_usec() + 60 * USEC_PER_SEC };

        assert_true(fd >= 0);
        assert_int_equal(process_id_read(getpid(), &record.processes[0]), 0);
        assert_int_equal(record_write(record_path, &record), 0);
        fabric_query_run(&task, &answer);
        (void) unlink(record_path);
        return strstr(answer.warning, "nonsense");
}

static void test_a_query_is_asked_where_its_answer_matters(void **state) {
        char uuid[] = UUID_0, *some[] = { uuid, NULL }, *all[] = { NULL };
        CLEANUP(fd_close) int fd = -1;
        GpuSample sample;
        ProcessId id;

        /* valgrind 3.19 does not know pidfd_open(2). */
        if (process_id_read(getpid(), &id) >= 0 && process_open(&id, &fd) == -ENOSYS)
                skip();

        gpu_sample_init(&sample);
        sample.fabric_state = FABRIC_COMPLETED;
        assert_true(query_is_asked(some, &sample, false));
        assert_true(query_is_asked(NULL, &sample, false));
        assert_false(query_is_asked(NULL, &sample, true));
        sample.fabric_state = FABRIC_IN_PROGRESS; /* after a reset: the next look asks */
        assert_false(query_is_asked(some, &sample, false));
        assert_true(query_is_asked(all, &sample, false));
}

static void test_the_health_mask_is_summed_up_as_the_driver_does(void **state) {
        static const struct {
                uint32_t mask;
                FabricHealth health;
        } cases[] = {
                { 0, FABRIC_HEALTH_NOT_SUPPORTED },
                { 0xaa, FABRIC_HEALTH_HEALTHY },           /* before incorrect configuration was told */
                { 0x1aa, FABRIC_HEALTH_HEALTHY },          /* driver 580 */
                { 0x11aa, FABRIC_HEALTH_HEALTHY },         /* 595, with a partition */
                { 0x1a9, FABRIC_HEALTH_LIMITED_CAPACITY }, /* degraded bandwidth */
                { 0x1a6, FABRIC_HEALTH_LIMITED_CAPACITY }, /* route recovery */
                { 0x19a, FABRIC_HEALTH_UNHEALTHY },        /* route unhealthy */
                { 0x16a, FABRIC_HEALTH_UNHEALTHY },        /* access timeout recovery */
                { 0x4aa, FABRIC_HEALTH_UNHEALTHY },        /* no partition, the old way */
                { 0x21aa, FABRIC_HEALTH_UNHEALTHY },       /* no partition, the new way */
                { 0x199, FABRIC_HEALTH_UNHEALTHY },        /* the worse of two */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(fabric_health_from_mask(cases[i].mask), cases[i].health);
}

static void test_a_field_is_read_by_the_type_that_it_says(void **state) {
        uint64_t value;

        assert_int_equal(device_field_number(&(NvmlFieldValue){ .value_type = NVML_VALUE_UINT,
                                                             .value.ull = UINT64_C(0xdeadbeef00000004) },
                                         &value),
                        0);
        assert_int_equal(value, 4);
        assert_int_equal(device_field_number(&(NvmlFieldValue){ .value_type = NVML_VALUE_ULONG_LONG,
                                                             .value.ull = UINT64_C(1) << 40 },
                                         &value),
                        0);
        assert_int_equal(value, UINT64_C(1) << 40);
        assert_int_equal(device_field_number(&(NvmlFieldValue){ .value_type = NVML_VALUE_SIGNED_INT,
                                                             .value.si = -1 },
                                         &value),
                        -ENODATA);
        assert_int_equal(device_field_number(&(NvmlFieldValue){ .value_type = NVML_VALUE_UINT,
                                                             .result = NVML_NOT_SUPPORTED },
                                         &value),
                        -ENODATA);
        assert_int_equal(device_field_number(&(NvmlFieldValue){ .value_type = UINT32_MAX }, &value),
                        -ENODATA);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_gpu_of_a_partial_failure_has_its_own_verdict),
                cmocka_unit_test(test_refusals_of_all_kinds_are_told_apart),
                cmocka_unit_test(test_the_detail_is_the_gpus_own_lines),
                cmocka_unit_test(test_a_line_of_the_fabric_query_is_read),
                cmocka_unit_test(test_a_bad_line_of_the_fabric_query_is_refused),
                cmocka_unit_test(test_a_query_is_asked_where_its_answer_matters),
                cmocka_unit_test(test_the_health_mask_is_summed_up_as_the_driver_does),
                cmocka_unit_test(test_a_field_is_read_by_the_type_that_it_says),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
