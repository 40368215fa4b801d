/* SPDX-License-Identifier: MIT */
/* Reading a GPU from drivers of other ages, and from such that fail or answer success and say nothing. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/driver/device.h"

#define UUID "GPU-81477906-d580-de42-e868-ff62e9ef4317"

/* What the driver is like; set by each test. */
static struct {
        int fabric_version; /* the newest layout it knows */
        bool blank;         /* success, and nothing is written */
        bool lost_at_links; /* the GPU falls off the bus while it is read */
        unsigned n_links;
        NvmlReturn end_of_links;
        NvmlReturn uuid_result;
        NvmlReturn recovery_result;
        unsigned recovery_type;
        unsigned n_processes;
} driver;

static const char* fake_error_string(NvmlReturn result) {
        return result == NVML_GPU_IS_LOST ? "GPU is lost" : result == NVML_OK ? "Success" : "\x1b[31mbad";
}

static NvmlReturn fake_pci(NvmlDevice device, NvmlPciInfo *pci) {
        if (!driver.blank)
                (void) strcpy(pci->bus_id, "00000008:06:00.0");
        return NVML_OK;
}

static NvmlReturn fake_uuid(NvmlDevice device, char *uuid, unsigned length) {
        if (!driver.blank && driver.uuid_result == NVML_OK)
                (void) strcpy(uuid, "GPU-81477906-D580-DE42-E868-FF62E9EF4317");
        return driver.uuid_result;
}

static NvmlReturn fake_number(NvmlDevice device, unsigned *number) {
        if (!driver.blank)
                *number = 3;
        return NVML_OK;
}

static NvmlReturn fake_name(NvmlDevice device, char *name, unsigned length) {
        if (!driver.blank)
                (void) strcpy(name, "GB200\n");
        return NVML_OK;
}

static NvmlReturn fake_memory(NvmlDevice device, NvmlMemory *memory) {
        if (!driver.blank)
                *memory = (NvmlMemory){ .total = 100, .used = 7 };
        return NVML_OK;
}

static NvmlReturn fake_memory_v2(NvmlDevice device, NvmlMemoryV2 *memory) {
        return NVML_NOT_SUPPORTED;
}

static NvmlReturn fake_utilization(NvmlDevice device, NvmlUtilization *utilization) {
        if (!driver.blank)
                utilization->gpu = 50;
        return NVML_OK;
}

static NvmlReturn fake_mode(NvmlDevice device, int *mode) {
        if (!driver.blank)
                *mode = 1;
        return NVML_OK;
}

static NvmlReturn fake_mig(NvmlDevice device, unsigned *current, unsigned *pending) {
        if (!driver.blank)
                *current = *pending = 1;
        return NVML_OK;
}

static NvmlReturn fake_link(NvmlDevice device, unsigned link, int *active) {
        if (driver.lost_at_links)
                return NVML_GPU_IS_LOST;
        if (link >= driver.n_links)
                return driver.end_of_links;
        if (!driver.blank)
                *active = link % 2 == 0;
        return NVML_OK;
}

static NvmlReturn fake_remote(NvmlDevice device, unsigned link, NvmlPciInfo *pci) {
        memset(pci->bus_id, 'x', sizeof pci->bus_id); /* does not even end */
        return NVML_OK;
}

static NvmlReturn fake_temperature(NvmlDevice device, int sensor, unsigned *celsius) {
        if (!driver.blank)
                *celsius = 41;
        return NVML_OK;
}

static NvmlReturn fake_processes(NvmlDevice device, unsigned *count, NvmlProcessInfo *infos) {
        unsigned room = *count;

        if (driver.blank)
                return NVML_OK;
        *count = driver.n_processes;
        if (driver.n_processes > room)
                return NVML_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < driver.n_processes; i++)
                infos[i].pid = 100 + i;
        return NVML_OK;
}

static NvmlReturn fake_fields(NvmlDevice device, int n, NvmlFieldValue *values) {
        for (int i = 0; !driver.blank && i < n; i++) {
                values[i].value_type = NVML_VALUE_ULONG_LONG;
                switch (values[i].field_id) {
                case NVML_FIELD_RECOVERY_ACTION:
                        values[i].result = driver.recovery_result;
                        values[i].value_type = driver.recovery_type;
                        values[i].value.ull = UINT64_C(0x100000004);
                        break;
                case NVML_FIELD_NVLINK_XMIT_BYTES:
                        values[i].result = NVML_OK;
                        values[i].value.ull = 10;
                        break;
                default: values[i].result = NVML_NOT_SUPPORTED;
                }
        }
        return NVML_OK;
}

static NvmlReturn fake_fabric_v(NvmlDevice device, void *info) {
        NvmlFabricInfoV2 *v2 = info;

        if ((driver.fabric_version < 3 && v2->version == NVML_FABRIC_INFO_V3_VERSION) ||
                        driver.fabric_version < 2)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        if (driver.blank)
                return NVML_OK;

        v2->state = NVML_FABRIC_COMPLETED;
        v2->status = NVML_OK;
        v2->clique_id = 7;
        memset(v2->cluster_uuid, 0xab, sizeof v2->cluster_uuid);
        v2->health_mask = 0x1a9; /* degraded bandwidth */
        if (v2->version == NVML_FABRIC_INFO_V3_VERSION)
                ((NvmlFabricInfoV3 *) info)->health_summary = NVML_FABRIC_SUMMARY_UNHEALTHY;
        return NVML_OK;
}

static NvmlReturn fake_fabric(NvmlDevice device, NvmlFabricInfo *info) {
        *info = (NvmlFabricInfo){ .state = NVML_FABRIC_COMPLETED, .clique_id = 7 };
        return NVML_OK;
}

static const Nvml nvml = {
        .nvmlErrorString = fake_error_string,
        .nvmlDeviceGetPciInfo_v3 = fake_pci,
        .nvmlDeviceGetUUID = fake_uuid,
        .nvmlDeviceGetIndex = fake_number,
        .nvmlDeviceGetMinorNumber = fake_number,
        .nvmlDeviceGetName = fake_name,
        .nvmlDeviceGetSerial = fake_name,
        .nvmlDeviceGetMemoryInfo = fake_memory,
        .nvmlDeviceGetMemoryInfo_v2 = fake_memory_v2,
        .nvmlDeviceGetUtilizationRates = fake_utilization,
        .nvmlDeviceGetPowerUsage = fake_number,
        .nvmlDeviceGetPersistenceMode = fake_mode,
        .nvmlDeviceGetMigMode = fake_mig,
        .nvmlDeviceGetNvLinkState = fake_link,
        .nvmlDeviceGetNvLinkRemotePciInfo_v2 = fake_remote,
        .nvmlDeviceGetTemperature = fake_temperature,
        .nvmlDeviceGetComputeRunningProcesses_v3 = fake_processes,
        .nvmlDeviceGetFieldValues = fake_fields,
        .nvmlDeviceGetGpuFabricInfo = fake_fabric,
        .nvmlDeviceGetGpuFabricInfoV = fake_fabric_v,
};

static int setup(void **state) {
        static GpuSample sample;

        memset(&driver, 0, sizeof driver);
        driver.fabric_version = 3;
        driver.n_links = 18;
        driver.end_of_links = NVML_INVALID_ARGUMENT;
        driver.recovery_type = NVML_VALUE_UINT;
        gpu_sample_init(&sample);
        *state = &sample;
        return 0;
}

static GpuSample* read_all(GpuSample *sample) {
        assert_int_equal(device_read_identity(&nvml, NULL, sample), 0);
        device_read_state(&nvml, NULL, sample);
        return sample;
}

static void test_a_gpu_is_read_whole(void **state) {
        const GpuSample *sample = read_all(*state);

        assert_string_equal(sample->uuid, UUID);
        assert_string_equal(sample->bus_id, "00000008:06:00.0");
        assert_string_equal(sample->name, "GB200\\x0a");
        assert_string_equal(sample->error, "");
        assert_int_equal(sample->minor, 3);
        assert_int_equal(sample->recovery_action, RECOVERY_DRAIN_AND_RESET);
        assert_int_equal(sample->clique_id, 7);
        assert_string_equal(sample->cluster_uuid, "abababab-abab-abab-abab-abababababab");
        assert_string_equal(sample->fabric_status_text, "Success");
        assert_int_equal(sample->fabric_health, FABRIC_HEALTH_UNHEALTHY);
        assert_int_equal(sample->n_links, 18);
        assert_int_equal(sample->n_links_active, 9);
        assert_string_equal(sample->links[0].remote, "");
        assert_int_equal(sample->memory_used, 7);  /* from the old call */
        assert_int_equal(sample->temperature, 41); /* from the only call */
        assert_int_equal(sample->utilization, 50);
        assert_int_equal(sample->n_processes, 0);
        assert_int_equal(sample->nvlink_tx_bytes, 18 * 10);
        assert_true(sample->mig);
        assert_true(sample->persistence);
}

static void test_an_older_fabric_layout_is_stepped_down_to(void **state) {
        GpuSample *sample = *state;

        driver.fabric_version = 2;
        (void) read_all(sample);
        assert_int_equal(sample->clique_id, 7);
        assert_int_equal(sample->fabric_health, FABRIC_HEALTH_LIMITED_CAPACITY); /* from the mask */

        gpu_sample_init(sample);
        driver.fabric_version = 1;
        (void) read_all(sample);
        assert_int_equal(sample->clique_id, 7);
        assert_int_equal(sample->fabric_state, FABRIC_COMPLETED);
        assert_int_equal(sample->fabric_health, FABRIC_HEALTH_NOT_SUPPORTED);
        assert_string_equal(sample->cluster_uuid, ""); /* zeros are none */
}

static void test_success_without_an_answer_is_unknown(void **state) {
        GpuSample *sample = *state;

        driver.blank = true;
        assert_int_equal(device_read_identity(&nvml, NULL, sample), -ENODATA);
        assert_string_not_equal(sample->error, "");

        gpu_sample_init(sample);
        device_read_state(&nvml, NULL, sample);
        assert_int_equal(sample->recovery_action, RECOVERY_UNKNOWN);
        assert_int_equal(sample->n_processes, UNKNOWN_U32);
        assert_int_equal(sample->memory_used, UNKNOWN_U64);
        assert_int_equal(sample->utilization, UNKNOWN_U32);
        assert_int_equal(sample->power_mw, UNKNOWN_U32);
        assert_int_equal(sample->temperature, UNKNOWN_I32);
        assert_int_equal(sample->fabric_state, FABRIC_NOT_SUPPORTED);
        assert_int_equal(sample->n_links, 0);
        assert_false(sample->mig);
}

static void test_a_gpu_that_is_lost_meanwhile_is_asked_no_more(void **state) {
        GpuSample *sample = *state;

        driver.lost_at_links = true;
        (void) read_all(sample);
        assert_true(sample->lost);
        assert_string_equal(sample->error, "GPU is lost");
        assert_string_equal(sample->uuid, UUID);
        assert_int_equal(sample->memory_used, UNKNOWN_U64);
}

static void test_a_gpu_without_uuid_says_why_and_where(void **state) {
        GpuSample *sample = *state;

        driver.uuid_result = NVML_UNKNOWN;
        assert_int_equal(device_read_identity(&nvml, NULL, sample), -ENODATA);
        assert_string_equal(sample->error, "\\x1b[31mbad");
        assert_string_equal(sample->bus_id, "00000008:06:00.0");
        assert_false(sample->lost);
}

static void test_a_reset_that_is_required_is_noted(void **state) {
        GpuSample *sample = *state;

        assert_false(device_note(&nvml, NVML_RESET_REQUIRED, sample));
        assert_true(sample->reset_required);
        assert_false(device_note(&nvml, NVML_OK, sample));
        assert_true(sample->reset_required);
}

static void test_a_field_that_failed_is_unknown(void **state) {
        driver.recovery_result = NVML_NOT_SUPPORTED;
        assert_int_equal(read_all(*state)->recovery_action, RECOVERY_UNKNOWN);
}

static void test_every_link_there_can_be_is_read_and_no_more(void **state) {
        driver.n_links = 1000;
        assert_int_equal(read_all(*state)->n_links, GPU_LINKS_MAX);
}

static void test_no_links_are_no_error(void **state) {
        const GpuSample *sample;

        driver.n_links = 0;
        driver.end_of_links = NVML_NOT_SUPPORTED;
        sample = read_all(*state);
        assert_int_equal(sample->n_links, 0);
        assert_int_equal(sample->nvlink_tx_bytes, UNKNOWN_U64);
        assert_int_equal(sample->memory_used, 7);
}

static void test_processes_are_counted_also_where_they_are_many(void **state) {
        GpuSample *sample = *state;

        driver.n_processes = 5;
        assert_int_equal(read_all(sample)->n_processes, 5);
        gpu_sample_init(sample);
        driver.n_processes = 5000;
        assert_int_equal(read_all(sample)->n_processes, 5000);
}

#define WITH_DRIVER(test) cmocka_unit_test_setup(test, setup)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH_DRIVER(test_a_gpu_is_read_whole),
                WITH_DRIVER(test_an_older_fabric_layout_is_stepped_down_to),
                WITH_DRIVER(test_success_without_an_answer_is_unknown),
                WITH_DRIVER(test_a_gpu_that_is_lost_meanwhile_is_asked_no_more),
                WITH_DRIVER(test_a_gpu_without_uuid_says_why_and_where),
                WITH_DRIVER(test_a_reset_that_is_required_is_noted),
                WITH_DRIVER(test_a_field_that_failed_is_unknown),
                WITH_DRIVER(test_every_link_there_can_be_is_read_and_no_more),
                WITH_DRIVER(test_no_links_are_no_error),
                WITH_DRIVER(test_processes_are_counted_also_where_they_are_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
