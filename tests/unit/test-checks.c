/* SPDX-License-Identifier: MIT */
/* The site's checks: after the reset and before the last look, and as a dry run. */
#include "tests/unit/fixture.h"

static Fixture* fixture_new_checked(size_t n) {
        Fixture *f = fixture_new(n);

        for (size_t i = 0; i < n; i++)
                f->fake.gpus[i].sample.checks = true;
        fixture_tick(f);
        fixture_answer(f);
        return f;
}

static void look_at_checks(Fixture *f, const VendorRequest *request) {
        if (request->operation != VENDOR_CHECKS)
                return;
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(request->tenants[0], "slurm/1.0");
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_checks_run_after_the_reset_and_before_the_last_look(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(1);
        unsigned probes = f->fake.started[VENDOR_PROBE];
        Told told;

        f->fake.on_start = look_at_checks;
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_CHECKS], 1);
        assert_int_equal(f->fake.started[VENDOR_PROBE], probes + 3);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(fixture_gpu(f, 0)->last_reset.steps[3].name, "checks");
}

static void test_without_checks_none_is_asked_for(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_CHECKS], 0);
}

static void test_a_failed_check_quarantines_with_its_reason(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(2);
        Told told;

        f->fake.gpus[1].check_failure = "nccl: 12 GB/s, expected 300";
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(
                        told.message, "GPU 1 failed a check after its reset: nccl: 12 GB/s, expected 300");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_QUARANTINED);
        assert_int_equal(fixture_file_state(f, 1), GPU_STATE_QUARANTINED);
        assert_int_equal(f->fake.started[VENDOR_CHECKS], 1);
        f->fake.gpus[1].check_failure = NULL;
        assert_int_equal(fixture_reset(f, "1", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN);
}

static void test_a_driver_service_that_dies_in_a_check_leaves_the_gpu_unverified(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(1);
        Told told;

        f->fake.driver_state[VENDOR_CHECKS] = DRIVER_FAILED;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        assert_contains(told.message, "GPU 0 was not verified after its reset");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void leave_a_process(Fixture *f, const VendorRequest *request) {
        if (request->operation == VENDOR_CHECKS)
                fake_hold(&f->fake, 0, "all_reduce_perf", 99, true);
}

static void test_what_a_check_leaves_behind_is_seen(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(1);
        Told told;

        f->fake.on_start = leave_a_process;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_contains(told.message, "GPU 0 is held by all_reduce_perf");
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
}

static void test_an_agent_that_dies_in_a_check_knows_no_clean_gpu(void **state) {
        for (unsigned steps = 0; steps < 5; steps++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(1);
                Told told;

                assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
                for (unsigned i = 0; i < steps; i++)
                        fixture_answer(f);
                assert_int_equal(told.times, 0);
                fixture_crash(f);
                assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        }
}

/* --- the dry run --- */

static Outcome verify(Fixture *f, const char *ids, bool checks, Told *ret_told) {
        RequestOptions options = { .checks = checks };

        assert_int_equal(fixture_request_full(f, REQUEST_VERIFY, ids, &options, ret_told, NULL), 0);
        fixture_run_until_told(f, ret_told);
        return ret_told->outcome;
}

static void test_a_dry_run_tells_and_changes_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(2);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        assert_int_equal(verify(f, "", true, &told), OUTCOME_DONE);
        f->fake.gpus[1].check_failure = "nccl: 12 GB/s, expected 300";
        assert_int_equal(verify(f, "", true, &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message, "GPU 1 failed a check: nccl: 12 GB/s, expected 300");
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN);
        assert_int_equal(verify(f, "", false, &told), OUTCOME_DONE);
}

static void test_a_dry_run_leaves_gpus_alone_that_somebody_has(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_checked(2);
        Told told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_reset(f, "1", NULL, &told), OUTCOME_DONE);
        f->fake.started[VENDOR_CHECKS] = 0;
        assert_int_equal(verify(f, "", true, &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message, "GPU 0 is in-use: leased to slurm/1.0");
        assert_int_equal(f->fake.started[VENDOR_CHECKS], 1);
        assert_int_equal(f->fake.asked[VENDOR_CHECKS], 1);
        assert_int_equal(verify(f, "0", true, &told), OUTCOME_NOT_CLEAN);
        assert_int_equal(f->fake.started[VENDOR_CHECKS], 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_checks_run_after_the_reset_and_before_the_last_look),
                cmocka_unit_test(test_without_checks_none_is_asked_for),
                cmocka_unit_test(test_a_failed_check_quarantines_with_its_reason),
                cmocka_unit_test(test_a_driver_service_that_dies_in_a_check_leaves_the_gpu_unverified),
                cmocka_unit_test(test_what_a_check_leaves_behind_is_seen),
                cmocka_unit_test(test_an_agent_that_dies_in_a_check_knows_no_clean_gpu),
                cmocka_unit_test(test_a_dry_run_tells_and_changes_nothing),
                cmocka_unit_test(test_a_dry_run_leaves_gpus_alone_that_somebody_has),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
