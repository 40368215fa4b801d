/* SPDX-License-Identifier: MIT */
/* One handover after another: what leads to a clean GPU, and everything that does not. */
#include "tests/unit/fixture.h"

#include <errno.h>

/* --- a reset that the driver grants --- */

static void test_a_granted_reset_ends_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        const Gpu *gpu;
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        gpu = fixture_gpu(f, 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_CLEAN);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(gpu->reset_count, 1);
        assert_string_equal(gpu->last_tenant, "slurm/1.0");
        assert_string_equal(gpu->reason, "");
        assert_int_equal(gpu->last_reset.outcome, OUTCOME_DONE);
        assert_int_equal(gpu->last_reset.realtime_usec, f->now.realtime_usec);
        assert_string_equal(told.message, "");
        assert_int_equal(f->fake.gpus[1].resets, 0);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_UNKNOWN);
}

static void test_the_steps_of_a_reset_and_their_times_are_kept(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        static const char *const names[] = { "probe", "reset", "settle" };
        const GpuLastReset *last = &fixture_gpu(f, 0)->last_reset;
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        for (usec_t i = 1; i <= 3; i++) {
                fixture_advance(f, i * USEC_PER_SEC);
                fixture_answer(f);
        }
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(last->n_steps, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_string_equal(last->steps[i].name, names[i]);
                assert_int_equal(last->steps[i].duration_usec, (i + 1) * USEC_PER_SEC);
        }
        assert_int_equal(last->duration_usec, 6 * USEC_PER_SEC);
}

static void look_at_the_file(Fixture *f, const VendorRequest *request) {
        if (request->operation != VENDOR_RESET)
                return;
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
}

static void test_a_clean_gpu_is_dirty_on_file_before_its_reset_goes_out(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        f->fake.on_start = look_at_the_file;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_RESET], 2);
}

static void test_what_a_tenant_had_is_dirty_on_file_at_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
}

static void test_a_reset_is_told_from_start_to_end(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_count(f, "started 0 slurm/1.0"), 1);
        assert_int_equal(fixture_count(f, "finished 0 slurm/1.0 done"), 1);
        assert_true(fixture_position(f, "started 0 slurm/1.0") < fixture_position(f, "gpu 0 resetting: "));
        assert_true(fixture_position(f, "gpu 0 resetting: ") <
                        fixture_position(f, "finished 0 slurm/1.0 done"));
        assert_true(fixture_position(f, "finished 0 slurm/1.0 done") < fixture_position(f, "gpu 0 clean: "));
        assert_true(fixture_position(f, "gpu 0 clean: ") < fixture_position(f, "request done"));
}

static void test_an_agent_that_dies_at_any_step_knows_no_clean_gpu_afterwards(void **state) {
        for (unsigned steps = 0; steps < 3; steps++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                Told told;

                assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
                assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
                for (unsigned i = 0; i < steps; i++)
                        fixture_answer(f);
                fixture_crash(f);
                assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
                fixture_tick(f);
                fixture_answer(f);
                assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
                assert_int_equal(told.times, 0);
        }
}

static void test_a_verified_gpu_is_clean_for_the_next_agent_too(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fixture_crash(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(fixture_gpu(f, 0)->last_tenant, "slurm/1.0");
        assert_int_equal(fixture_gpu(f, 0)->reset_count, 1);
        assert_int_equal(fixture_gpu(f, 0)->last_reset.outcome, OUTCOME_DONE);
}

/* --- the look before --- */

static void refused_before_the_reset(Fixture *f, Outcome outcome, const char *why, GpuState after) {
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), outcome);
        assert_contains(told.message, why);
        assert_int_equal(f->fake.started[VENDOR_RESET], 0);
        assert_int_equal(fixture_state(f, 0), after);
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_count(f, "started*"), 0);
}

static void test_what_only_a_reboot_cures_is_not_reset(void **state) {
        static const int32_t actions[] = { RECOVERY_NODE_REBOOT, RECOVERY_BUS_RESET,
                RECOVERY_SYSTEM_REBOOT };

        for (size_t i = 0; i < ELEMENTSOF(actions); i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

                f->fake.gpus[0].sample.recovery_action = actions[i];
                refused_before_the_reset(f, OUTCOME_NEEDS_REBOOT, "reboot the tray", GPU_STATE_QUARANTINED);
        }
}

static void test_a_lost_gpu_needs_a_reboot(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].sample.lost = true;
        (void) strcpy(f->fake.gpus[0].sample.error, "GPU is lost");
        refused_before_the_reset(f, OUTCOME_NEEDS_REBOOT,
                        "GPU 0 is lost: the driver cannot reach it any more; reboot the tray",
                        GPU_STATE_LOST);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
        assert_string_equal(fixture_gpu(f, 0)->reason, "the driver cannot reach it any more");
}

static void test_a_gpu_that_the_driver_lists_no_more_needs_a_reboot(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].listed = false;
        refused_before_the_reset(
                        f, OUTCOME_NEEDS_REBOOT, "GPU 0 is gone from the driver's list", GPU_STATE_LOST);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_gpu_in_mig_mode_is_refused_and_not_quarantined(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].sample.mig = true;
        refused_before_the_reset(f, OUTCOME_NOT_SUPPORTED, "MIG", GPU_STATE_UNKNOWN);
}

static void test_an_unknown_recovery_action_is_tried_and_then_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.recovery_action = f->fake.gpus[0].action_after = 9;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message, "GPU 0 is not clean after its reset: needs the recovery action 9");
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

/* --- the driver --- */

static void without_a_driver(
                VendorOperation operation, DriverState driver, Outcome outcome, GpuState after) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        if (operation == VENDOR_HOLDERS)
                fake_hold(&f->fake, 0, "python", 1860, true);
        f->fake.driver_state[operation] = driver;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), outcome);
        assert_string_equal(told.message, "GPU 0 was not reset: the driver says no");
        assert_int_equal(fixture_state(f, 0), after);
        assert_int_equal(manager_driver_state(f->manager), driver);
        assert_string_equal(manager_driver_error(f->manager), "the driver says no");
}

static void test_without_a_driver_at_the_first_look_nothing_happens(void **state) {
        without_a_driver(VENDOR_PROBE, DRIVER_MISSING, OUTCOME_NO_DRIVER, GPU_STATE_UNKNOWN);
        without_a_driver(VENDOR_PROBE, DRIVER_FAILED, OUTCOME_NO_DRIVER, GPU_STATE_UNKNOWN);
        without_a_driver(VENDOR_PROBE, DRIVER_UNRESPONSIVE, OUTCOME_DRIVER_UNRESPONSIVE, GPU_STATE_UNKNOWN);
}

static void test_a_clean_gpu_that_could_not_be_asked_is_clean_without_a_reason(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_MISSING;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NO_DRIVER);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(fixture_gpu(f, 0)->reason, "");
        assert_string_equal(fixture_gpu(f, 0)->last_reset.detail, told.message);
}

static void test_a_driver_that_fails_in_the_reset_quarantines(void **state) {
        without_a_driver(VENDOR_RESET, DRIVER_MISSING, OUTCOME_NO_DRIVER, GPU_STATE_QUARANTINED);
        without_a_driver(VENDOR_RESET, DRIVER_FAILED, OUTCOME_RESET_FAILED, GPU_STATE_QUARANTINED);
        without_a_driver(VENDOR_RESET, DRIVER_UNRESPONSIVE, OUTCOME_DRIVER_UNRESPONSIVE,
                        GPU_STATE_QUARANTINED);
}

static void test_a_driver_that_fails_in_the_search_for_holders_quarantines(void **state) {
        without_a_driver(VENDOR_HOLDERS, DRIVER_MISSING, OUTCOME_NO_DRIVER, GPU_STATE_QUARANTINED);
        without_a_driver(VENDOR_HOLDERS, DRIVER_FAILED, OUTCOME_RESET_FAILED, GPU_STATE_QUARANTINED);
        without_a_driver(VENDOR_HOLDERS, DRIVER_UNRESPONSIVE, OUTCOME_DRIVER_UNRESPONSIVE,
                        GPU_STATE_QUARANTINED);
}

static void test_a_driver_that_fails_after_the_reset_quarantines(void **state) {
        static const Outcome outcomes[] = { [DRIVER_MISSING] = OUTCOME_NO_DRIVER,
                [DRIVER_FAILED] = OUTCOME_RESET_FAILED,
                [DRIVER_UNRESPONSIVE] = OUTCOME_DRIVER_UNRESPONSIVE };

        for (DriverState driver = DRIVER_MISSING; driver <= DRIVER_UNRESPONSIVE; driver++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                Told told;

                assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
                fixture_answer(f);
                fixture_answer(f);
                f->fake.driver_state[VENDOR_PROBE] = driver;
                fixture_run_until_told(f, &told);
                assert_int_equal(told.outcome, outcomes[driver]);
                assert_string_equal(
                                told.message, "GPU 0 was not verified after its reset: the driver says no");
                assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
                assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
        }
}

static void test_a_driver_service_that_cannot_be_asked_ends_the_handover(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.start_error[VENDOR_PROBE] = -ECONNREFUSED;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_NO_DRIVER);
        assert_contains(told.message, "Connection refused");
        assert_int_equal(manager_driver_state(f->manager), DRIVER_FAILED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_UNKNOWN);
        fixture_tick(f);
}

/* The driver service is restarted at the looks around a reset. */
static void test_a_driver_service_that_comes_back_costs_no_handover(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.driver_state[VENDOR_PROBE] = DRIVER_FAILED;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_OK;
        fixture_run_for(f, 200 * USEC_PER_MSEC);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_FAILED;
        fixture_run_for(f, 10 * USEC_PER_SEC);
        assert_int_equal(told.times, 0);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_OK;
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

/* --- what the driver says of the reset --- */

static void test_a_reset_that_failed_quarantines(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].verdict = RESET_FAILED;
        f->fake.gpus[0].detail = "Unable to reset this GPU because it's broken";
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        assert_string_equal(told.message,
                        "GPU 0 could not be reset: Unable to reset this GPU because it's broken");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_string_equal(fixture_gpu(f, 0)->reason,
                        "could not be reset: Unable to reset this GPU because it's broken");
}

static void test_a_verdict_out_of_range_is_a_failure(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].verdict = 77;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_gpu_that_a_reset_does_not_mention_is_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        VendorReply reply = { .operation = VENDOR_RESET,
                .driver_state = DRIVER_OK,
                .driver_error = "",
                .driver_version = "" };
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        f->fake.out = false;
        manager_vendor_done(f->manager, &reply, f->now);
        assert_int_equal(told.outcome, OUTCOME_RESET_FAILED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_reset_that_is_not_supported_does_not_quarantine(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].verdict = RESET_NOT_SUPPORTED;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_SUPPORTED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_UNKNOWN);
}

/* --- the look after --- */

static void not_clean(Fixture *f, const char *message) {
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message, message);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_recovery_action_that_goes_a_little_later_is_waited_for(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.recovery_action = RECOVERY_GPU_RESET;
        f->fake.gpus[0].action_lag = 4;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_driver_that_says_done_and_wants_a_reset_still_is_not_believed(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].sample.recovery_action = f->fake.gpus[0].action_after = RECOVERY_GPU_RESET;
        not_clean(f, "GPU 0 is not clean after its reset: needs the recovery action gpu-reset");
}

static void test_a_gpu_that_answers_reset_required_is_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        /* an old driver: NVML says so in its error code, and knows no recovery action */
        f->fake.gpus[0].sample.reset_required = true;
        f->fake.gpus[0].sample.recovery_action = f->fake.gpus[0].action_after = RECOVERY_UNKNOWN;
        not_clean(f, "GPU 0 is not clean after its reset: needs another reset");
}

static void test_a_wrong_clique_is_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].sample.partition = 7;
        not_clean(f, "GPU 0 is not clean after its reset: is in clique 1, clique 7 is expected");
}

static void test_the_clique_of_the_partition_is_the_expected_one(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.partition = 7;
        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_gpu(f, 0)->sample.clique_id, 7);
}

static void test_the_fabric_settles_in_its_time(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].settle_after = 10;
        f->fake.gpus[0].sample.partition = f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_true(f->fake.started[VENDOR_PROBE] <= 14);
}

static void test_looks_after_a_reset_are_half_a_second_apart_at_most(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        usec_t start_usec = f->now.monotonic_usec;
        Told told;

        f->fake.gpus[0].settle_after = 20; /* looks */
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_true(f->now.monotonic_usec - start_usec <= 20 * 500 * USEC_PER_MSEC);
}

static void test_a_fabric_that_never_settles_is_not_clean_where_a_clique_is_expected(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].settle_after = UINT32_MAX;
        f->fake.gpus[0].sample.partition = 7;
        not_clean(f, "GPU 0 is not clean after its reset: its fabric is in-progress, clique 7 is expected");
}

static void test_a_fabric_that_never_settles_is_pending_where_none_is_expected(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].settle_after = UINT32_MAX;
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_FABRIC_PENDING);
        assert_false(outcome_is_failure(told.outcome));
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(fixture_gpu(f, 0)->reason, "its fabric has not settled yet");
        assert_int_equal(fixture_count(f, "finished 0 slurm/1.0 fabric-pending"), 1);
}

static void test_missing_nvlinks_are_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        f->config->handover.expected_nvlinks = 18;
        f->fake.gpus[0].sample.n_links_active = 17;
        not_clean(f, "GPU 0 is not clean after its reset: has 17 of the expected 18 NVLinks");
}

static void test_a_gpu_that_does_not_come_back_has_failed(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        f->fake.gpus[0].listed = false;
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_RESET_FAILED);
        assert_string_equal(told.message,
                        "GPU 0 did not come back after its reset: gone from the driver's list");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_LOST);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
        assert_true(f->now.monotonic_usec >= 120 * USEC_PER_SEC);
}

static void test_a_gpu_that_is_lost_after_the_reset_is_never_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        f->fake.gpus[0].sample.lost = true; /* and no word why */
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_RESET_FAILED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_LOST);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_later_verified_reset_lifts_the_quarantine(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_int_equal(manager_quarantined(f->manager), 1);
        f->fake.gpus[0].verdict = RESET_DONE;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(manager_quarantined(f->manager), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_granted_reset_ends_clean),
                cmocka_unit_test(test_the_steps_of_a_reset_and_their_times_are_kept),
                cmocka_unit_test(test_a_clean_gpu_is_dirty_on_file_before_its_reset_goes_out),
                cmocka_unit_test(test_what_a_tenant_had_is_dirty_on_file_at_once),
                cmocka_unit_test(test_a_reset_is_told_from_start_to_end),
                cmocka_unit_test(test_an_agent_that_dies_at_any_step_knows_no_clean_gpu_afterwards),
                cmocka_unit_test(test_a_verified_gpu_is_clean_for_the_next_agent_too),
                cmocka_unit_test(test_what_only_a_reboot_cures_is_not_reset),
                cmocka_unit_test(test_a_lost_gpu_needs_a_reboot),
                cmocka_unit_test(test_a_gpu_that_the_driver_lists_no_more_needs_a_reboot),
                cmocka_unit_test(test_a_gpu_in_mig_mode_is_refused_and_not_quarantined),
                cmocka_unit_test(test_an_unknown_recovery_action_is_tried_and_then_not_clean),
                cmocka_unit_test(test_without_a_driver_at_the_first_look_nothing_happens),
                cmocka_unit_test(test_a_clean_gpu_that_could_not_be_asked_is_clean_without_a_reason),
                cmocka_unit_test(test_a_driver_that_fails_in_the_reset_quarantines),
                cmocka_unit_test(test_a_driver_that_fails_in_the_search_for_holders_quarantines),
                cmocka_unit_test(test_a_driver_that_fails_after_the_reset_quarantines),
                cmocka_unit_test(test_a_driver_service_that_cannot_be_asked_ends_the_handover),
                cmocka_unit_test(test_a_driver_service_that_comes_back_costs_no_handover),
                cmocka_unit_test(test_a_reset_that_failed_quarantines),
                cmocka_unit_test(test_a_verdict_out_of_range_is_a_failure),
                cmocka_unit_test(test_a_gpu_that_a_reset_does_not_mention_is_not_clean),
                cmocka_unit_test(test_a_reset_that_is_not_supported_does_not_quarantine),
                cmocka_unit_test(test_a_recovery_action_that_goes_a_little_later_is_waited_for),
                cmocka_unit_test(test_a_driver_that_says_done_and_wants_a_reset_still_is_not_believed),
                cmocka_unit_test(test_a_gpu_that_answers_reset_required_is_not_clean),
                cmocka_unit_test(test_a_wrong_clique_is_not_clean),
                cmocka_unit_test(test_the_clique_of_the_partition_is_the_expected_one),
                cmocka_unit_test(test_the_fabric_settles_in_its_time),
                cmocka_unit_test(test_looks_after_a_reset_are_half_a_second_apart_at_most),
                cmocka_unit_test(test_a_fabric_that_never_settles_is_not_clean_where_a_clique_is_expected),
                cmocka_unit_test(test_a_fabric_that_never_settles_is_pending_where_none_is_expected),
                cmocka_unit_test(test_missing_nvlinks_are_not_clean),
                cmocka_unit_test(test_a_gpu_that_does_not_come_back_has_failed),
                cmocka_unit_test(test_a_gpu_that_is_lost_after_the_reset_is_never_clean),
                cmocka_unit_test(test_a_later_verified_reset_lifts_the_quarantine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
