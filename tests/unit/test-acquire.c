/* SPDX-License-Identifier: MIT */
/* Bookings: only what was reset and verified since its last tenant is given away, to one tenant, all of it
 * or nothing. */
#include "tests/unit/fixture.h"

#include <errno.h>

static void assert_booked(const Fixture *f, size_t i, const char *tenant) {
        assert_string_equal(fixture_gpu(f, i)->tenant, tenant);
        assert_string_equal(fixture_file_tenant(f, i), tenant);
        assert_int_equal(fixture_state(f, i), GPU_STATE_IN_USE);
        assert_int_not_equal(fixture_file_state(f, i), GPU_STATE_CLEAN);
}

static void assert_free(const Fixture *f, size_t i) {
        assert_string_equal(fixture_gpu(f, i)->tenant, "");
        assert_string_equal(fixture_file_tenant(f, i), "");
}

/* --- a clean GPU --- */

static void test_a_clean_gpu_is_booked_after_a_look_and_without_a_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        unsigned probes;
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        probes = f->fake.started[VENDOR_PROBE];
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/1.0", &told), 0);
        assert_int_equal(told.times, 0);
        fixture_answer(f);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_PROBE], probes + 1);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_booked(f, 0, "slurm/1.0");
        assert_string_equal(fixture_gpu(f, 0)->reason, "leased to slurm/1.0");
        assert_free(f, 1);
}

static void test_a_booking_needs_gpus_and_a_tenant(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "", "slurm/1.0", &told), -EINVAL);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", NULL, &told), -EINVAL);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 7", "slurm/1.0", &told), -ENOENT);
        assert_free(f, 0);
        assert_false(f->fake.out);
}

static void test_a_clean_record_is_not_enough(void **state) {
        for (unsigned i = 0; i < 4; i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                FakeGpu *gpu = &f->fake.gpus[0];
                Told told;

                assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
                switch (i) {
                case 0: gpu->sample.recovery_action = RECOVERY_GPU_RESET; break;
                case 1:
                        gpu->sample.clique_id = 9;
                        gpu->sample.partition = 1;
                        break;
                case 2: gpu->sample.reset_required = true; break;
                case 3: fake_hold(&f->fake, 0, "python", 1860, true); break;
                }
                assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/1.0", &told), 0);
                fixture_answer(f);
                assert_int_equal(told.times, 0);
                assert_free(f, 0);
                assert_non_null(fixture_gpu(f, 0)->handover);
                gpu->sample.reset_required = false;
                fake_let_go(&f->fake, 0);
                fixture_run_until_told(f, &told);
                assert_int_equal(told.outcome, OUTCOME_DONE);
                assert_int_equal(gpu->resets, 2);
                assert_booked(f, 0, "slurm/1.0");
        }
}

static void test_a_gpu_whose_processes_nvml_cannot_tell_is_searched(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.gpus[0].sample.n_processes = UNKNOWN_U32;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_booked(f, 0, "slurm/1.0");
}

static void test_the_same_tenant_may_ask_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/1.0", &told), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_booked(f, 0, "slurm/1.0");
        fixture_crash(f);
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

/* --- one that is not --- */

static void test_an_unknown_gpu_is_reset_for_the_booking(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(2);
        Told told;

        fixture_tick(f);
        fixture_answer(f);
        assert_int_equal(fixture_acquire(f, "0 1", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1); /* both in one go */
        assert_booked(f, 0, "slurm/1.0");
        assert_booked(f, 1, "slurm/1.0");
}

static void test_a_booking_joins_a_running_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told release, told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &release), 0);
        fixture_answer(f); /* the reset is out */
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/2.0", &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(release.times, 1);
        assert_int_equal(release.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_booked(f, 0, "slurm/2.0");
}

static void test_a_booking_waits_for_a_reset_that_waits(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told first, second, told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &second), 0);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/3.0", &told), 0);
        fixture_run_until_told(f, &first);
        assert_int_equal(told.times, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(second.times, 1);
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_booked(f, 0, "slurm/3.0");
}

static void test_a_foreign_process_refuses_the_booking_by_name(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        fake_hold(&f->fake, 1, "python", 1860, false);
        assert_int_equal(fixture_acquire(f, "0 1", "slurm/1.0", &told), OUTCOME_BUSY);
        assert_string_equal(
                        told.message, "GPU 1 is held by python (pid 1860, user joe, unit session-3.scope)");
        assert_free(f, 0);
        assert_free(f, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN); /* its reset was not in vain */
        assert_int_not_equal(fixture_state(f, 1), GPU_STATE_CLEAN);
}

static void test_a_quarantined_gpu_is_refused_at_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->fake.gpus[0].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 1", "slurm/1.0", &told), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message, "GPU 0 is quarantined: could not be reset: GPU reset");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_free(f, 0);
        assert_free(f, 1);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
}

static void test_a_lost_gpu_is_refused(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->fake.gpus[0].listed = false;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NEEDS_REBOOT);
        assert_free(f, 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_LOST);
}

static void test_without_a_driver_nothing_is_booked(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_MISSING;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NO_DRIVER);
        assert_free(f, 0);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_UNRESPONSIVE;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DRIVER_UNRESPONSIVE);
        assert_free(f, 0);
}

static void test_a_gpu_that_never_comes_clean_is_refused_after_two_tries(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.expected_nvlinks = 17;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NOT_CLEAN);
        assert_contains(told.message, "has 18 of the expected 17 NVLinks");
        assert_free(f, 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

/* --- all or nothing, and in time --- */

static void test_at_its_deadline_nothing_is_booked(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        RequestOptions options = { .tenant = "slurm/1.0", .timeout_usec = 5 * USEC_PER_SEC };
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fake_hold(&f->fake, 1, "python", 1860, false);
        assert_int_equal(fixture_request_full(f, REQUEST_ACQUIRE, "0 1", &options, &told, NULL), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_TIMED_OUT);
        assert_contains(told.message, "GPU 1 was not booked within 5.0 s: ");
        assert_contains(told.message, "python (pid 1860");
        fake_let_go(&f->fake, 1);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_free(f, 0);
        assert_free(f, 1);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN); /* the handover went on */
}

static void test_the_deadline_of_a_booking_is_configured(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        usec_t start = f->now.monotonic_usec;
        Told told;

        f->config->handover.acquire_timeout_usec = 7 * USEC_PER_SEC;
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/1.0", &told), 0);
        assert_int_equal(manager_next_elapse(f->manager), start + 7 * USEC_PER_SEC);
        fixture_advance(f, 7 * USEC_PER_SEC);
        fixture_tick(f);
        assert_int_equal(told.outcome, OUTCOME_TIMED_OUT);
        fixture_answer(f);
        assert_free(f, 0);
}

static void test_what_waited_for_another_gpu_is_looked_at_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 1", "slurm/1.0", &told), 0);
        fixture_answer(f);
        assert_int_equal(f->fake.operation, VENDOR_PROBE); /* GPU 1's handover */
        fixture_answer(f);
        fixture_advance(f, 30 * USEC_PER_SEC);
        fake_hold(&f->fake, 0, "python", 1860, true);
        fixture_answer(f);
        fixture_answer(f);
        assert_int_equal(told.times, 0);
        fixture_answer(f); /* the look again */
        assert_int_equal(told.times, 0);
        assert_free(f, 0);
        fake_let_go(&f->fake, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_booked(f, 0, "slurm/1.0");
        assert_booked(f, 1, "slurm/1.0");
}

static void test_of_two_who_want_a_gpu_one_gets_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 1", "slurm/1.0", &first), 0);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "1 2", "slurm/2.0", &second), 0);
        fixture_run_until_told(f, &first);
        fixture_run_until_told(f, &second);
        assert_int_equal(first.outcome, OUTCOME_DONE);
        assert_int_equal(second.outcome, OUTCOME_LEASED);
        assert_string_equal(second.message, "GPU 1 is leased to slurm/1.0");
        assert_booked(f, 0, "slurm/1.0");
        assert_booked(f, 1, "slurm/1.0");
        assert_free(f, 2);
}

static void test_a_booking_that_cannot_be_written_is_none(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 1", "slurm/1.0", &told), 0);
        fixture_break_state(f);
        fixture_answer(f);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
        assert_contains(told.message, "the state cannot be written");
        fixture_mend_state(f);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        assert_string_equal(fixture_gpu(f, 1)->tenant, "");
        fixture_crash(f);
        fixture_tick(f);
        fixture_answer(f);
        assert_free(f, 0);
}

/* --- those who go away --- */

static void test_a_caller_that_left_gets_no_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "slurm/1.0" };
        Request *request = NULL;
        Told told;

        assert_int_equal(fixture_request_full(f, REQUEST_ACQUIRE, "0", &options, &told, &request), 0);
        assert_non_null(request);
        fixture_answer(f);
        request_abandon(request);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(told.times, 0);
        assert_free(f, 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(f->requests_finished, 1);
}

static void test_a_release_ends_the_booking_that_waits(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told, release;

        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 1", "slurm/1.0", &told), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0 1", "slurm/1.0", &release), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_TIMED_OUT);
        assert_contains(told.message, "GPU 0 was released by slurm/1.0 before it was booked");
        fixture_run_until_told(f, &release);
        assert_int_equal(release.outcome, OUTCOME_DONE);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_free(f, 0);
        assert_free(f, 1);
}

static void test_a_booking_that_nobody_waits_for_is_made(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "slurm/1.0" };

        assert_int_equal(fixture_request_full(f, REQUEST_ACQUIRE, "0", &options, NULL, NULL), 0);
        fixture_run_for(f, 10 * USEC_PER_SEC);
        assert_booked(f, 0, "slurm/1.0");
}

/* --- the site's switches --- */

static void test_with_resets_off_the_booking_asks_for_no_clean_gpu(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->config->handover.reset = false;
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/1.0", &told), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_true(told.skipped);
        assert_booked(f, 0, "slurm/1.0");
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_int_equal(f->fake.gpus[0].resets, 0);
}

static void test_where_the_site_observes_a_refusal_is_told_and_the_gpu_booked(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->config->mode = AGENT_MODE_OBSERVE;
        fake_hold(&f->fake, 0, "python", 1860, false);
        assert_int_equal(fixture_acquire(f, "0 1", "slurm/1.0", &told), OUTCOME_DONE);
        assert_true(told.observed);
        assert_contains(told.message, "GPU 0 is held by python (pid 1860");
        assert_booked(f, 0, "slurm/1.0");
        assert_booked(f, 1, "slurm/1.0");
        assert_int_equal(fixture_acquire(f, "1", "slurm/2.0", &told), OUTCOME_DONE);
        assert_true(told.observed);
        assert_string_equal(told.message, "GPU 1 is leased to slurm/1.0");
        assert_booked(f, 1, "slurm/1.0");
        assert_int_equal(fixture_release(f, "1", "slurm/2.0", &told), OUTCOME_DONE);
        assert_true(told.observed);
        assert_booked(f, 1, "slurm/1.0");
}

static void test_where_the_site_observes_nobody_gets_what_a_reset_is_still_under_way_on(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        RequestOptions options = { .tenant = "slurm/1.0", .timeout_usec = 5 * USEC_PER_SEC };
        Told told;

        f->config->mode = AGENT_MODE_OBSERVE;
        assert_int_equal(fixture_reset(f, "1", NULL, &told), OUTCOME_DONE);
        fake_hold(&f->fake, 0, "python", 1860, false);
        assert_int_equal(fixture_request_full(f, REQUEST_ACQUIRE, "0 1", &options, &told, NULL), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_true(told.observed);
        assert_free(f, 0);
        assert_booked(f, 1, "slurm/1.0");
        assert_int_equal(fixture_release(f, "", "slurm/1.0", &told), OUTCOME_DONE);
}

static void test_where_the_site_observes_a_good_booking_is_an_ordinary_one(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->mode = AGENT_MODE_OBSERVE;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_false(told.observed);
        assert_string_equal(told.message, "");
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_a_gpu_in_mig_mode_is_refused_or_left_alone(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.mig = true;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NOT_SUPPORTED);
        assert_contains(told.message, "MIG mode");
        assert_free(f, 0);
        f->config->handover.mig = MIG_SKIP;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_booked(f, 0, "slurm/1.0");
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_SKIPPED);
        assert_int_equal(fixture_count(f, "finished 0 slurm/1.0 skipped"), 1);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_int_equal(fixture_gpu(f, 0)->reset_count, 0);
}

/* --- crashes --- */

static void test_an_agent_that_dies_in_a_booking_gave_nothing_away_unwritten(void **state) {
        for (unsigned steps = 0; steps < 6; steps++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                bool booked;
                Told told;

                assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
                assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", NULL), 0);
                assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0", "slurm/2.0", &told), 0);
                for (unsigned i = 0; i < steps && f->fake.out; i++)
                        fixture_answer(f);
                booked = told.times > 0;
                fixture_crash(f);
                if (booked)
                        assert_booked(f, 0, "slurm/2.0");
                else
                        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
                fixture_tick(f);
                assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
                assert_booked(f, 0, "slurm/2.0");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_clean_gpu_is_booked_after_a_look_and_without_a_reset),
                cmocka_unit_test(test_a_booking_needs_gpus_and_a_tenant),
                cmocka_unit_test(test_a_clean_record_is_not_enough),
                cmocka_unit_test(test_a_gpu_whose_processes_nvml_cannot_tell_is_searched),
                cmocka_unit_test(test_the_same_tenant_may_ask_again),
                cmocka_unit_test(test_an_unknown_gpu_is_reset_for_the_booking),
                cmocka_unit_test(test_a_booking_joins_a_running_reset),
                cmocka_unit_test(test_a_booking_waits_for_a_reset_that_waits),
                cmocka_unit_test(test_a_foreign_process_refuses_the_booking_by_name),
                cmocka_unit_test(test_a_quarantined_gpu_is_refused_at_once),
                cmocka_unit_test(test_a_lost_gpu_is_refused),
                cmocka_unit_test(test_without_a_driver_nothing_is_booked),
                cmocka_unit_test(test_a_gpu_that_never_comes_clean_is_refused_after_two_tries),
                cmocka_unit_test(test_at_its_deadline_nothing_is_booked),
                cmocka_unit_test(test_the_deadline_of_a_booking_is_configured),
                cmocka_unit_test(test_what_waited_for_another_gpu_is_looked_at_again),
                cmocka_unit_test(test_of_two_who_want_a_gpu_one_gets_it),
                cmocka_unit_test(test_a_booking_that_cannot_be_written_is_none),
                cmocka_unit_test(test_a_caller_that_left_gets_no_lease),
                cmocka_unit_test(test_a_release_ends_the_booking_that_waits),
                cmocka_unit_test(test_a_booking_that_nobody_waits_for_is_made),
                cmocka_unit_test(test_with_resets_off_the_booking_asks_for_no_clean_gpu),
                cmocka_unit_test(test_where_the_site_observes_a_refusal_is_told_and_the_gpu_booked),
                cmocka_unit_test(
                                test_where_the_site_observes_nobody_gets_what_a_reset_is_still_under_way_on),
                cmocka_unit_test(test_where_the_site_observes_a_good_booking_is_an_ordinary_one),
                cmocka_unit_test(test_a_gpu_in_mig_mode_is_refused_or_left_alone),
                cmocka_unit_test(test_an_agent_that_dies_in_a_booking_gave_nothing_away_unwritten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
