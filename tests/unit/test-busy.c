/* SPDX-License-Identifier: MIT */
/* Processes that hold a GPU: before the reset, in the grace, after it, and as a poll sees them. */
#include "tests/unit/fixture.h"

static void test_a_holder_is_told_at_once_and_not_at_the_end_of_the_grace(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        fake_hold(&f->fake, 0, "python", 1860, false);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        fixture_answer(f);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
        assert_int_equal(told.times, 0);
        assert_int_equal(fixture_count(f,
                                         "gpu 0 resetting: held by python (pid 1860, user joe, unit "
                                         "session-3.scope)"),
                        1);
}

static void test_a_visitor_that_goes_away_does_not_fail_the_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        fake_hold(&f->fake, 0, "dcgm-exporter", 70, true);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
        fixture_run_for(f, 3 * USEC_PER_SEC);
        assert_int_equal(told.times, 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_RESETTING);
        fake_let_go(&f->fake, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_count(f, "started*"), 1);
        assert_string_equal(fixture_gpu(f, 0)->reason, "");
}

static void test_the_end_of_the_grace_is_busy_and_nothing_was_changed(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        usec_t start = f->now.monotonic_usec;
        Told told;

        fake_hold(&f->fake, 0, "python", 1860, true);
        fake_hold(&f->fake, 0, "nvtop", 7, true);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_BUSY);
        assert_string_equal(told.message,
                        "GPU 0 is held by nvtop (pid 7, user joe, unit session-3.scope), "
                        "python (pid 1860, user joe, unit session-3.scope)");
        assert_int_equal(f->now.monotonic_usec - start, 15 * USEC_PER_SEC);
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(fixture_gpu(f, 0)->reason_counts, "held by 2 processes");
}

static void test_without_a_grace_the_first_refusal_is_busy(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.busy_grace_usec = 0;
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
}

static void test_a_refusal_without_a_process_says_so(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].verdict = RESET_IN_USE;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_contains(told.message, "GPU 0 is in use by a client of the driver that is no process");
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_busy_names_every_holder(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        for (pid_t pid = 1; pid <= FAKE_HOLDERS_MAX; pid++)
                fake_hold(&f->fake, 0, "rank", pid, true);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        for (pid_t pid = 1; pid <= FAKE_HOLDERS_MAX; pid++) {
                char name[32];

                (void) snprintf(name, sizeof name, "rank (pid %d, user joe", (int) pid);
                assert_contains(told.message, name);
        }
        assert_string_equal(fixture_gpu(f, 0)->reason_counts, "held by 8 processes");
        assert_int_equal(fixture_gpu(f, 0)->n_holders, 8);
}

static void test_free_gpus_of_a_request_are_reset_although_another_is_busy(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        fake_hold(&f->fake, 2, "python", 1860, true);
        assert_int_equal(fixture_reset(f, "", "slurm/1.0", &told), OUTCOME_BUSY);
        assert_string_equal(
                        told.message, "GPU 2 is held by python (pid 1860, user joe, unit session-3.scope)");
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(fixture_state(f, i), i == 2 ? GPU_STATE_IN_USE : GPU_STATE_CLEAN);
        assert_int_equal(fixture_count(f, "finished 2 slurm/1.0 busy"), 1);
        assert_int_equal(fixture_count(f, "finished 3 slurm/1.0 done"), 1);
}

static void test_holders_are_searched_for_before_the_others_are_looked_at(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        Told told;

        fake_hold(&f->fake, 1, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        assert_true(f->fake.out);
        assert_int_equal(f->fake.operation, VENDOR_HOLDERS);
        assert_int_equal(f->fake.asked[VENDOR_HOLDERS], 1);
}

static void test_the_one_that_settles_is_looked_at_whatever_the_others_do(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        Told told;

        fake_hold(&f->fake, 2, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "2", "slurm/2.0", NULL), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 2), GPU_STATE_RESETTING);
}

static void test_a_holder_at_the_last_look_has_the_gpu_reset_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        fake_hold(&f->fake, 0, "sneak", 99, true);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(told.times, 0);
        fake_let_go(&f->fake, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_holder_that_stays_after_the_reset_is_busy(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        fake_hold(&f->fake, 0, "sneak", 99, true);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_BUSY);
        assert_contains(told.message, "held by sneak (pid 99");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_driver_that_cannot_list_processes_has_them_searched_before_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.n_processes = UNKNOWN_U32;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_holder_that_only_the_search_finds_after_the_reset_is_busy(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.n_processes = UNKNOWN_U32;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        fake_hold(&f->fake, 0, "sneak", 99, false);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_BUSY);
        assert_contains(told.message, "held by sneak (pid 99");
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_refusal_after_a_doubt_is_not_taken_for_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.n_processes = UNKNOWN_U32;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        fake_hold(&f->fake, 0, "sneak", 99, false);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(told.times, 0);

        /* the process is gone, and the next reset is refused for a client that no search finds */
        fake_let_go(&f->fake, 0);
        f->fake.gpus[0].verdict = RESET_IN_USE;
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_BUSY);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

/* --- seen by a poll --- */

static void test_a_process_seen_by_a_poll_makes_a_clean_gpu_dirty_for_good(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.persistence = true;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fake_hold(&f->fake, 0, "python", 1860, true);
        fixture_run_for(f, 20 * USEC_PER_SEC);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        fake_let_go(&f->fake, 0);
        fixture_run_for(f, 20 * USEC_PER_SEC);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "was held by a process since its last reset");
        fixture_crash(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
}

static void test_a_restart_does_not_leave_the_name_of_a_holder_that_is_gone(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_BUSY);
        fake_let_go(&f->fake, 0);
        fixture_crash(f);
        fixture_tick(f);
        fixture_answer(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "was held by a process since its last reset");
}

static void test_a_refused_reset_does_not_hide_a_quarantine(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        f->fake.gpus[0].verdict = RESET_DONE;
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
        assert_contains(fixture_gpu(f, 0)->reason,
                        "a reset failed before, and the next was refused: is held by python");
}

static void test_no_holder_lifts_a_quarantine_by_going_away(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.persistence = true;
        f->fake.gpus[0].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        fake_hold(&f->fake, 0, "python", 1860, true);
        fixture_run_for(f, 20 * USEC_PER_SEC);
        fake_let_go(&f->fake, 0);
        fixture_run_for(f, 20 * USEC_PER_SEC);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_string_equal(fixture_gpu(f, 0)->reason, "could not be reset: GPU reset");
}

/* A bare open of the node is not in NVML's list: the last look alone would not see it. */
static void test_what_a_search_saw_after_the_reset_calls_for_another(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told, processes;

        f->fake.gpus[0].settle_after = 3;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f); /* the reset; the first look after it is out */
        fake_hold(&f->fake, 0, "python", 1860, false);
        assert_int_equal(fixture_request(f, REQUEST_PROCESSES, "0", NULL, &processes), 0);
        fixture_run_until_told(f, &processes);
        fake_let_go(&f->fake, 0);
        assert_int_equal(told.times, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_holder_is_told_at_once_and_not_at_the_end_of_the_grace),
                cmocka_unit_test(test_a_visitor_that_goes_away_does_not_fail_the_reset),
                cmocka_unit_test(test_the_end_of_the_grace_is_busy_and_nothing_was_changed),
                cmocka_unit_test(test_without_a_grace_the_first_refusal_is_busy),
                cmocka_unit_test(test_a_refusal_without_a_process_says_so),
                cmocka_unit_test(test_busy_names_every_holder),
                cmocka_unit_test(test_free_gpus_of_a_request_are_reset_although_another_is_busy),
                cmocka_unit_test(test_holders_are_searched_for_before_the_others_are_looked_at),
                cmocka_unit_test(test_the_one_that_settles_is_looked_at_whatever_the_others_do),
                cmocka_unit_test(test_a_holder_at_the_last_look_has_the_gpu_reset_again),
                cmocka_unit_test(test_a_holder_that_stays_after_the_reset_is_busy),
                cmocka_unit_test(test_a_driver_that_cannot_list_processes_has_them_searched_before_clean),
                cmocka_unit_test(test_a_holder_that_only_the_search_finds_after_the_reset_is_busy),
                cmocka_unit_test(test_a_refusal_after_a_doubt_is_not_taken_for_clean),
                cmocka_unit_test(test_a_process_seen_by_a_poll_makes_a_clean_gpu_dirty_for_good),
                cmocka_unit_test(test_a_restart_does_not_leave_the_name_of_a_holder_that_is_gone),
                cmocka_unit_test(test_a_refused_reset_does_not_hide_a_quarantine),
                cmocka_unit_test(test_no_holder_lifts_a_quarantine_by_going_away),
                cmocka_unit_test(test_what_a_search_saw_after_the_reset_calls_for_another),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
