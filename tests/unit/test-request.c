/* SPDX-License-Identifier: MIT */
/* What callers ask for and are told: ids, joins, repeats, deadlines, and callers that go away. */
#include "tests/unit/fixture.h"

#include <errno.h>

/* --- which GPUs --- */

static void refused(Fixture *f, RequestKind kind, const char *ids, int error, const char *message) {
        unsigned started = f->fake.started[VENDOR_PROBE];
        Told told;

        assert_int_equal(fixture_request(f, kind, ids, "slurm/1.0", &told), error);
        assert_string_equal(manager_error(f->manager), message);
        assert_int_equal(told.times, 0);
        assert_int_equal(f->requests_finished, 0);
        assert_int_equal(f->fake.started[VENDOR_PROBE], started);
        for (size_t i = 0; i < f->fake.n; i++) {
                assert_null(fixture_gpu(f, i)->handover);
                assert_string_equal(fixture_gpu(f, i)->last_tenant, "");
        }
}

static void test_one_unknown_id_fails_the_request_and_nothing_is_done(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        refused(f, REQUEST_RESET, "0 7", -ENOENT, "There is no GPU 7 on this tray");
        refused(f, REQUEST_RELEASE, "1 GPU-00000000-0000-0000-0000-000000000000", -ENOENT,
                        "There is no GPU GPU-00000000-0000-0000-0000-000000000000 on this tray");
        refused(f, REQUEST_VERIFY, "00000000:99:00.0", -ENOENT,
                        "There is no GPU 00000000:99:00.0 on this tray");
}

static void test_a_malformed_id_is_invalid(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        refused(f, REQUEST_RESET, "0 x", -EINVAL, "'x' is no GPU id: give an index, a UUID or a PCI bus id");
        refused(f, REQUEST_PROCESSES, "-1", -EINVAL,
                        "'-1' is no GPU id: give an index, a UUID or a PCI bus id");
        refused(f, REQUEST_RESET, "\xff\x1b", -EINVAL,
                        "'\\xff\\x1b' is no GPU id: give an index, a UUID or a PCI bus id");
}

static void test_a_gpu_may_be_named_by_index_uuid_and_bus_id(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        assert_int_equal(fixture_reset(f, "0 GPU-5EF0A1B2-0000-4000-8000-000000000001 0000:02:00.0", NULL,
                                         &told),
                        OUTCOME_DONE);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(f->fake.gpus[i].resets, i < 3);
}

static void test_a_stopping_manager_ends_what_is_under_way_and_takes_on_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        RequestOptions options = {};
        char *ids[] = { (char *) "0", NULL };

        assert_int_equal(manager_request(f->manager, REQUEST_RESET, ids, &options, NULL, NULL, f->now, NULL),
                        0);
        assert_false(manager_is_idle(f->manager));
        manager_stop(f->manager);

        assert_int_equal(
                        manager_request(f->manager, REQUEST_VERIFY, ids, &options, NULL, NULL, f->now, NULL),
                        -ESHUTDOWN);
        fixture_run_for(f, 10 * USEC_PER_SEC);
        assert_true(manager_is_idle(f->manager));
        assert_int_equal(gpu_state(fixture_gpu(f, 0)), GPU_STATE_CLEAN);
}

static void test_a_finished_request_tells_how_long_it_took(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        usec_t before = f->now.monotonic_usec;
        Told told;

        f->fake.gpus[0].settle_after = 2;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_true(f->last_duration_usec > 0);
        assert_int_equal(f->last_duration_usec, f->now.monotonic_usec - before);
}

static void test_a_gpu_named_twice_is_reset_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "1 GPU-5ef0a1b2-0000-4000-8000-000000000001 1", NULL, &told),
                        OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[1].resets, 1);
        assert_int_equal(f->fake.asked[VENDOR_RESET], 1);
}

static void test_a_gpu_named_twice_is_told_of_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->fake.gpus[1].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "1 1", NULL, &told), OUTCOME_RESET_FAILED);
        assert_string_equal(told.message, "GPU 1 could not be reset: GPU reset");
}

static void test_an_empty_list_is_all_gpus(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(fixture_state(f, i), GPU_STATE_CLEAN);
}

static void test_a_release_of_nothing_resets_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "", "slurm/1.0", &told), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_RESET], 0);
        assert_false(f->fake.out);
}

static void test_all_of_no_gpus_is_a_failure_that_says_why(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(0);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_NO_DRIVER);
        assert_contains(told.message, "has not been asked yet");

        f->fake.driver_state[VENDOR_PROBE] = DRIVER_MISSING;
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_NO_DRIVER);
        assert_string_equal(told.message, "the driver says no");

        f->fake.driver_state[VENDOR_PROBE] = DRIVER_UNRESPONSIVE;
        fixture_run_for(f, 30 * USEC_PER_SEC);
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DRIVER_UNRESPONSIVE);

        f->fake.driver_state[VENDOR_PROBE] = DRIVER_OK;
        fixture_run_for(f, 30 * USEC_PER_SEC);
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_NO_DRIVER);
        assert_string_equal(told.message, "The driver lists no GPU on this tray");
}

/* --- results --- */

static void test_the_gravest_of_the_results_names_the_request(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        fake_hold(&f->fake, 0, "python", 1860, true);
        f->fake.gpus[1].verdict = RESET_FAILED;
        f->fake.gpus[2].sample.recovery_action = RECOVERY_NODE_REBOOT;
        assert_int_equal(fixture_reset(f, "", "slurm/1.0", &told), OUTCOME_NEEDS_REBOOT);
        assert_string_equal(told.message,
                        "GPU 0 is held by python (pid 1860, user joe, unit session-3.scope); "
                        "GPU 1 could not be reset: GPU reset; "
                        "GPU 2 needs the recovery action node-reboot, which a GPU reset cannot replace; "
                        "reboot the tray");
        assert_int_equal(fixture_state(f, 3), GPU_STATE_CLEAN);
}

static void test_a_line_names_so_many_gpus_and_counts_the_rest(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(20);
        Told told;

        for (size_t i = 0; i < 20; i++)
                f->fake.gpus[i].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_RESET_FAILED);
        assert_contains(told.message, "GPU 15 could not be reset: GPU reset; and 4 more");
}

/* --- joining --- */

static void test_the_same_tenant_joins_a_running_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        fixture_answer(f); /* the reset is out */
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &second), 0);
        fixture_run_until_told(f, &first);
        assert_int_equal(second.times, 1);
        assert_int_equal(second.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_another_tenant_gets_a_reset_of_its_own_behind_a_running_one(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told first, second, third;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &second), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &third), 0); /* joins the second */
        fixture_run_until_told(f, &first);
        assert_int_equal(first.outcome, OUTCOME_DONE);
        assert_int_equal(second.times, 0);
        fixture_run_until_told(f, &second);
        assert_int_equal(second.outcome, OUTCOME_DONE);
        assert_int_equal(third.times, 1);
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_int_equal(fixture_count(f, "finished 0 slurm/2.0 done"), 1);
}

static void test_the_time_of_a_reset_does_not_count_what_it_waited_for(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &second), 0);
        fixture_advance(f, 50 * USEC_PER_SEC);
        fixture_run_until_told(f, &first);
        assert_int_equal(fixture_gpu(f, 0)->last_reset.duration_usec, 50 * USEC_PER_SEC);
        fixture_advance(f, USEC_PER_SEC);
        fixture_run_until_told(f, &second);
        assert_int_equal(fixture_gpu(f, 0)->last_reset.duration_usec, USEC_PER_SEC);
}

static void test_a_gpu_that_another_tenant_had_meanwhile_is_not_clean_in_between(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &second), 0);
        fixture_run_until_told(f, &first);
        assert_int_equal(first.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "waits for another reset");
        fixture_crash(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
}

static void test_everybody_joins_a_reset_that_has_not_begun(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told first, second, third;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &second), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &third), 0);
        fixture_run_until_told(f, &first);
        assert_int_equal(second.outcome, OUTCOME_DONE);
        assert_int_equal(second.times, 1);
        assert_int_equal(third.times, 1);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_string_equal(fixture_gpu(f, 0)->last_tenant, "slurm/2.0");
}

/* --- repeating --- */

static void test_a_repeat_within_ten_minutes_gets_the_first_answer(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fixture_run_for(f, 590 * USEC_PER_SEC);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_repeat_after_a_restart_gets_the_first_answer_too(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fixture_crash(f);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_a_repeat_is_a_new_reset_after_ten_minutes_use_failure_or_by_another(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(
                        fixture_reset(f, "0", NULL, &told), OUTCOME_DONE); /* an admin's is never a repeat */
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_int_equal(
                        fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE); /* the last was not ours */
        assert_int_equal(f->fake.gpus[0].resets, 3);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.1", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 4);

        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        fake_let_go(&f->fake, 0);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.1", &told), OUTCOME_DONE); /* used since */
        assert_int_equal(f->fake.gpus[0].resets, 5);

        fixture_run_for(f, 600 * USEC_PER_SEC);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.1", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 6);

        f->fake.gpus[0].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "0", "slurm/2.0", &told), OUTCOME_RESET_FAILED);
        f->fake.gpus[0].verdict = RESET_DONE;
        assert_int_equal(fixture_reset(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 7);
}

/* --- deadlines and callers --- */

static void test_a_caller_is_told_at_its_deadline_and_the_work_goes_on(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "slurm/1.0", .timeout_usec = 2 * USEC_PER_SEC };
        usec_t start = f->now.monotonic_usec;
        Told told;

        assert_int_equal(fixture_request_full(f, REQUEST_RESET, "0", &options, &told, NULL), 0);
        fixture_answer(f);
        assert_int_equal(manager_next_elapse(f->manager), start + 2 * USEC_PER_SEC);
        fixture_advance(f, 2 * USEC_PER_SEC);
        fixture_tick(f);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_TIMED_OUT);
        assert_string_equal(told.message,
                        "GPU 0 was not done within 2.0 s and goes on: resetting; "
                        "the driver is busy with a reset for 2.0 s");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_RESETTING);
        assert_int_equal(manager_next_elapse(f->manager), USEC_INFINITY);

        fixture_answer(f);
        fixture_answer(f);
        assert_int_equal(told.times, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_count(f, "finished 0 slurm/1.0 done"), 1);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_a_timed_out_question_is_over(void **state) {
        static const RequestKind kinds[] = { REQUEST_REFRESH, REQUEST_VERIFY, REQUEST_PROCESSES };

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                RequestOptions options = { .timeout_usec = USEC_PER_SEC };
                Told told;

                assert_int_equal(fixture_request_full(f, kinds[i], "", &options, &told, NULL), 0);
                fixture_advance(f, USEC_PER_SEC);
                fixture_tick(f);
                assert_int_equal(told.outcome, OUTCOME_TIMED_OUT);
                assert_true(told.message[0] != '\0');
                fixture_answer(f); /* late, and for nobody */
                assert_int_equal(told.times, 1);
                assert_false(f->fake.out);
        }
}

static void test_a_caller_that_goes_away_changes_nothing_but_is_not_told(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "slurm/1.0" };
        Request *request = NULL;
        Told told;

        assert_int_equal(fixture_request_full(f, REQUEST_RESET, "0", &options, &told, &request), 0);
        assert_non_null(request);
        request_abandon(request);
        fixture_run_for(f, 10 * USEC_PER_SEC);
        assert_int_equal(told.times, 0);
        assert_int_equal(f->requests_finished, 1);
        assert_int_equal(f->last_outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_request_that_nobody_waits_for_is_told_to_the_observers(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", NULL), 0);
        fixture_run_for(f, 10 * USEC_PER_SEC);
        assert_int_equal(f->requests_finished, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_request_that_is_finished_at_once_is_not_handed_out(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "slurm/1.0" };
        Request *request = (Request *) f;
        Told told;

        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_request_full(f, REQUEST_RESET, "0", &options, &told, &request), 0);
        assert_null(request);
        assert_int_equal(told.times, 1);
}

typedef struct Chain {
        Fixture *fixture;
        Told told;
} Chain;

static void on_told_ask_again(const Request *request, void *userdata) {
        Chain *chain = userdata;

        assert_int_equal(fixture_request(chain->fixture, REQUEST_RELEASE, "", "slurm/9.0", &chain->told), 0);
}

static void test_a_caller_may_ask_again_while_it_is_told(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Chain chain = { .fixture = f };
        RequestOptions options = {};
        char *ids[] = { (char[]){ "0" }, NULL };
        Told second, third;

        /* all three end with the same reply: the first one's caller asks before the others are told */
        assert_int_equal(manager_request(f->manager, REQUEST_RESET, ids, &options, on_told_ask_again, &chain,
                                         f->now, NULL),
                        0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &second), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &third), 0);
        fixture_run_until_told(f, &third);
        assert_int_equal(chain.told.times, 1);
        assert_int_equal(second.times, 1);
        assert_int_equal(f->requests_finished, 4);
}

/* --- release --- */

static void test_a_release_while_resets_are_switched_off_resets_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.reset = false;
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &told), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_true(told.skipped);
        assert_false(f->fake.out);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_UNKNOWN);

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE); /* asked for in so many words */
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_a_skipped_release_takes_the_clean_mark_away(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->config->handover.reset = false;
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &told), 0);
        assert_true(told.skipped);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_unknown_id_fails_the_request_and_nothing_is_done),
                cmocka_unit_test(test_a_malformed_id_is_invalid),
                cmocka_unit_test(test_a_gpu_may_be_named_by_index_uuid_and_bus_id),
                cmocka_unit_test(test_a_stopping_manager_ends_what_is_under_way_and_takes_on_nothing),
                cmocka_unit_test(test_a_finished_request_tells_how_long_it_took),
                cmocka_unit_test(test_a_gpu_named_twice_is_reset_once),
                cmocka_unit_test(test_a_gpu_named_twice_is_told_of_once),
                cmocka_unit_test(test_an_empty_list_is_all_gpus),
                cmocka_unit_test(test_a_release_of_nothing_resets_nothing),
                cmocka_unit_test(test_all_of_no_gpus_is_a_failure_that_says_why),
                cmocka_unit_test(test_the_gravest_of_the_results_names_the_request),
                cmocka_unit_test(test_a_line_names_so_many_gpus_and_counts_the_rest),
                cmocka_unit_test(test_the_same_tenant_joins_a_running_reset),
                cmocka_unit_test(test_another_tenant_gets_a_reset_of_its_own_behind_a_running_one),
                cmocka_unit_test(test_the_time_of_a_reset_does_not_count_what_it_waited_for),
                cmocka_unit_test(test_a_gpu_that_another_tenant_had_meanwhile_is_not_clean_in_between),
                cmocka_unit_test(test_everybody_joins_a_reset_that_has_not_begun),
                cmocka_unit_test(test_a_repeat_within_ten_minutes_gets_the_first_answer),
                cmocka_unit_test(test_a_repeat_after_a_restart_gets_the_first_answer_too),
                cmocka_unit_test(test_a_repeat_is_a_new_reset_after_ten_minutes_use_failure_or_by_another),
                cmocka_unit_test(test_a_caller_is_told_at_its_deadline_and_the_work_goes_on),
                cmocka_unit_test(test_a_timed_out_question_is_over),
                cmocka_unit_test(test_a_caller_that_goes_away_changes_nothing_but_is_not_told),
                cmocka_unit_test(test_a_request_that_nobody_waits_for_is_told_to_the_observers),
                cmocka_unit_test(test_a_request_that_is_finished_at_once_is_not_handed_out),
                cmocka_unit_test(test_a_caller_may_ask_again_while_it_is_told),
                cmocka_unit_test(test_a_release_while_resets_are_switched_off_resets_nothing),
                cmocka_unit_test(test_a_skipped_release_takes_the_clean_mark_away),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
