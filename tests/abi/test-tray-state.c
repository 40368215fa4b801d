/* SPDX-License-Identifier: MIT */
/* What a GPU is at one moment, worked out from its record and the time. */
#include <string.h>

#include "tests/unit/unit.h"

#include "agent/driver/nvml-abi.h"
#include "agent/emulation/process.h"
#include "agent/emulation/telemetry.h"
#include "agent/emulation/tray.h"

#define SECOND USEC_PER_SEC

typedef struct Fixture {
        Tray tray;
        TrayHeader header;
        TrayGpu gpu;
        TrayPartition partitions[2];
} Fixture;

static void fixture_fill(Fixture *f) {
        *f = (Fixture){ .tray = TRAY_INIT };
        f->header.model = gpu_preset_find("gb200")->model;
        f->header.n_gpus = 1;
        f->header.n_partitions = 2;
        f->header.settle_usec = 4 * SECOND;
        f->partitions[0] = (TrayPartition){ .id = 32766, .clique = 1 };
        f->partitions[1] = (TrayPartition){ .id = 7, .clique = 9 };
        f->gpu.partition = f->gpu.applied_partition = 32766;
        f->gpu.clique = 1;
        f->gpu.links_up = UINT64_MAX;
        f->gpu.settle_usec = TRAY_SETTLE_DEFAULT;
        f->tray.header = &f->header;
        f->tray.gpus = &f->gpu;
        f->tray.partitions = f->partitions;
}

static void start_reset(Fixture *f, ResetOutcome outcome) {
        f->gpu.reset_end_usec = 10 * SECOND;
        f->gpu.reset_outcome = outcome;
        f->gpu.reset_partition = f->gpu.partition;
        f->gpu.reset_clique = tray_wanted_clique(&f->tray, &f->gpu);
}

static void test_a_partition_change_waits_for_a_reset(void **state) {
        Fixture f;

        fixture_fill(&f);
        assert_int_equal(tray_gpu_recovery_action(&f.tray, &f.gpu), NVML_RECOVERY_NONE);
        f.gpu.partition = 7;
        assert_int_equal(tray_gpu_recovery_action(&f.tray, &f.gpu), NVML_RECOVERY_GPU_RESET);
        f.gpu.partition = 32766;
        assert_int_equal(tray_gpu_recovery_action(&f.tray, &f.gpu), NVML_RECOVERY_NONE);
}

static void test_a_reset_takes_effect_at_its_end(void **state) {
        Fixture f;

        fixture_fill(&f);
        f.gpu.partition = 7;
        start_reset(&f, RESET_OUTCOME_DONE);

        tray_gpu_at(&f.header, &f.gpu, 10 * SECOND - 1);
        assert_true(tray_gpu_is_resetting(&f.gpu, 10 * SECOND - 1));
        assert_int_equal(f.gpu.clique, 1);

        tray_gpu_at(&f.header, &f.gpu, 10 * SECOND);
        assert_false(tray_gpu_is_resetting(&f.gpu, 10 * SECOND));
        assert_int_equal(f.gpu.clique, 9);
        assert_int_equal(f.gpu.reset_count, 1);
        assert_int_equal(tray_gpu_recovery_action(&f.tray, &f.gpu), NVML_RECOVERY_NONE);
}

static void test_a_change_during_a_reset_waits_for_the_next(void **state) {
        Fixture f;

        fixture_fill(&f);
        start_reset(&f, RESET_OUTCOME_DONE);
        f.gpu.partition = 7;
        tray_gpu_at(&f.header, &f.gpu, 11 * SECOND);
        assert_int_equal(f.gpu.clique, 1);
        assert_int_equal(tray_gpu_recovery_action(&f.tray, &f.gpu), NVML_RECOVERY_GPU_RESET);
}

static void test_the_fabric_settles_after_a_reset(void **state) {
        Fixture f;

        fixture_fill(&f);
        start_reset(&f, RESET_OUTCOME_DONE);
        tray_gpu_at(&f.header, &f.gpu, 10 * SECOND);
        assert_int_equal(tray_gpu_fabric_state(&f.header, &f.gpu, 10 * SECOND), NVML_FABRIC_NOT_STARTED);
        assert_int_equal(tray_gpu_fabric_state(&f.header, &f.gpu, 12 * SECOND), NVML_FABRIC_IN_PROGRESS);
        assert_int_equal(tray_gpu_fabric_state(&f.header, &f.gpu, 14 * SECOND), NVML_FABRIC_COMPLETED);
}

static void test_a_fabric_may_never_settle(void **state) {
        Fixture f;

        fixture_fill(&f);
        f.gpu.settle_usec = USEC_INFINITY;
        start_reset(&f, RESET_OUTCOME_DONE);
        tray_gpu_at(&f.header, &f.gpu, 10 * SECOND);
        assert_int_equal(
                        tray_gpu_fabric_state(&f.header, &f.gpu, 1000000 * SECOND), NVML_FABRIC_IN_PROGRESS);
}

static void test_a_failed_reset_changes_nothing_and_asks_for_another(void **state) {
        Fixture f;

        fixture_fill(&f);
        f.gpu.partition = 7;
        start_reset(&f, RESET_OUTCOME_FAILED);
        tray_gpu_at(&f.header, &f.gpu, 10 * SECOND);
        assert_int_equal(f.gpu.clique, 1);
        assert_int_equal(f.gpu.reset_count, 0);
        assert_int_equal(tray_gpu_recovery_action(&f.tray, &f.gpu), NVML_RECOVERY_GPU_RESET);
}

static void test_health_follows_the_links(void **state) {
        Fixture f;

        fixture_fill(&f);
        assert_int_equal(tray_gpu_fabric_health(&f.header, &f.gpu), 0xaa);
        assert_int_equal(fabric_health_summary(0xaa), NVML_FABRIC_SUMMARY_HEALTHY);
        f.gpu.links_up &= ~UINT64_C(1);
        assert_int_equal(fabric_health_summary(tray_gpu_fabric_health(&f.header, &f.gpu)),
                        NVML_FABRIC_SUMMARY_LIMITED_CAPACITY);
        assert_int_equal(fabric_health_summary(0), NVML_FABRIC_SUMMARY_NOT_SUPPORTED);
        assert_int_equal(fabric_health_summary(0x2aa | 2 << 12), NVML_FABRIC_SUMMARY_UNHEALTHY);
}

static void test_load_warms_with_a_lag_and_cools_again(void **state) {
        Client client = { .alive = true,
                .record = { .load = 80, .used_bytes = 1 << 20, .until_usec = 100 * SECOND } };
        Clients clients = { .items = &client, .n = 1 };
        Telemetry telemetry;
        Fixture f;

        fixture_fill(&f);
        telemetry_read(&f.header, &f.gpu, &(Clients){}, 100 * SECOND, &telemetry);
        assert_int_equal(telemetry.power_mw, 140000);
        assert_int_equal(telemetry.celsius, 32);

        client.record.since_usec = 98 * SECOND;
        telemetry_read(&f.header, &f.gpu, &clients, 100 * SECOND, &telemetry);
        assert_int_equal(telemetry.load, 80);
        assert_uint_in_range(telemetry.celsius, 34, 37);

        client.record.since_usec = 0;
        telemetry_read(&f.header, &f.gpu, &clients, 100 * SECOND, &telemetry);
        assert_uint_in_range(telemetry.power_mw, 849000, 850000);
        assert_int_equal(telemetry.celsius, 68);
        assert_int_equal(telemetry.used_bytes, 1 << 20);

        client.alive = false;
        telemetry_read(&f.header, &f.gpu, &clients, 105 * SECOND, &telemetry);
        assert_int_equal(telemetry.load, 0);
        assert_int_equal(telemetry.used_bytes, 0);
        assert_uint_in_range(telemetry.celsius, 58, 62);
        telemetry_read(&f.header, &f.gpu, &clients, 300 * SECOND, &telemetry);
        assert_int_equal(telemetry.celsius, 32);
}

static void test_bus_ids_in_all_spellings(void **state) {
        static const char *const good[] = { "00000000:18:00.0", "0000:18:00.0", "0:18:0.0", "18:00.0",
                "0:18:00", "18:0" };
        static const char *const bad[] = { "", "18", "18:", ":18:00", "18:00.8", "18:20.0", "1:2:3:4",
                "g:18:00", "000000000:18:00.0", "18:00.0 ", "-1:18:00.0" };
        char text[GPU_BUS_ID_SIZE];

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_int_equal(bus_id_scan(good[i], text), 0);
                assert_string_equal(text, "00000000:18:00.0");
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_true(bus_id_scan(bad[i], text) < 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_partition_change_waits_for_a_reset),
                cmocka_unit_test(test_a_reset_takes_effect_at_its_end),
                cmocka_unit_test(test_a_change_during_a_reset_waits_for_the_next),
                cmocka_unit_test(test_the_fabric_settles_after_a_reset),
                cmocka_unit_test(test_a_fabric_may_never_settle),
                cmocka_unit_test(test_a_failed_reset_changes_nothing_and_asks_for_another),
                cmocka_unit_test(test_health_follows_the_links),
                cmocka_unit_test(test_load_warms_with_a_lag_and_cools_again),
                cmocka_unit_test(test_bus_ids_in_all_spellings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
