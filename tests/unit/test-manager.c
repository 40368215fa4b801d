/* SPDX-License-Identifier: MIT */
/* The tray as a whole: polls, batches, questions, the time of the next thing to do, and the driver's own
 * state. */
#include "tests/unit/fixture.h"

#include <errno.h>

/* --- polls --- */

static void test_the_first_tick_asks_for_the_tray(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(4);
        size_t n;

        assert_true(manager_next_elapse(f->manager) <= f->now.monotonic_usec);
        assert_int_equal(manager_driver_state(f->manager), DRIVER_UNKNOWN);
        fixture_tick(f);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 1);
        assert_int_equal(f->fake.asked[VENDOR_PROBE], 0);
        fixture_answer(f);
        (void) manager_gpus(f->manager, &n);
        assert_int_equal(n, 4);
        assert_int_equal(manager_driver_state(f->manager), DRIVER_OK);
        assert_string_equal(manager_driver_version(f->manager), "580.95.05");
        assert_int_equal(fixture_count(f, "added *"), 4);
        assert_int_equal(fixture_count(f, "driver ok"), 1);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(fixture_state(f, i), GPU_STATE_UNKNOWN);
}

static void test_no_timer_wakes_a_driver_without_persistence_mode(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        fixture_run_for(f, 3600 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 1);
}

static void test_a_driver_that_is_kept_awake_is_polled_at_its_interval(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        f->fake.gpus[1].sample.persistence = true;
        fixture_run_for(f, 3600 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 1); /* unknown until somebody looks */

        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, NULL), 0);
        fixture_answer(f);
        fixture_run_for(f, 3600 * USEC_PER_SEC);
        assert_uint_in_range(f->fake.started[VENDOR_PROBE], 2 + 238, 2 + 241);
}

static void test_a_gpu_that_is_gone_keeps_no_driver_awake(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(2);
        unsigned started;

        f->fake.gpus[1].sample.persistence = true;
        fixture_run_for(f, USEC_PER_SEC);
        f->fake.gpus[1].listed = false;
        fixture_run_for(f, 20 * USEC_PER_SEC);
        started = f->fake.started[VENDOR_PROBE];
        fixture_run_for(f, 3600 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_PROBE], started);
}

static void test_a_driver_that_does_not_answer_is_asked_again(void **state) {
        for (DriverState driver = DRIVER_MISSING; driver <= DRIVER_UNRESPONSIVE; driver++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(1);

                f->fake.driver_state[VENDOR_PROBE] = driver;
                fixture_run_for(f, 100 * USEC_PER_SEC);
                assert_uint_in_range(f->fake.started[VENDOR_PROBE], 6, 8);
                assert_int_equal(manager_driver_state(f->manager), driver);
                f->fake.driver_state[VENDOR_PROBE] = DRIVER_OK;
                fixture_run_for(f, 20 * USEC_PER_SEC);
                assert_int_equal(manager_driver_state(f->manager), DRIVER_OK);
                assert_string_equal(manager_driver_error(f->manager), "");
        }
}

/* The walk of /proc needs no driver. */
static void test_a_search_for_holders_does_not_make_a_driver_well(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.driver_state[VENDOR_PROBE] = DRIVER_MISSING;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NO_DRIVER);
        assert_int_equal(fixture_request(f, REQUEST_PROCESSES, "0", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(manager_driver_state(f->manager), DRIVER_MISSING);
        assert_string_equal(manager_driver_error(f->manager), "the driver says no");
}

static void test_a_driver_service_that_cannot_be_asked_is_asked_at_the_interval_only(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(1);

        f->fake.start_error[VENDOR_PROBE] = -ECONNREFUSED;
        fixture_run_for(f, 100 * USEC_PER_SEC);
        assert_uint_in_range(f->fake.started[VENDOR_PROBE], 6, 8);
        assert_int_equal(manager_driver_state(f->manager), DRIVER_FAILED);
        assert_contains(manager_driver_error(f->manager), "Connection refused");
}

static void test_a_driver_that_fails_leaves_the_gpus_as_they_are_known(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.driver_state[VENDOR_PROBE] = DRIVER_UNRESPONSIVE;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DRIVER_UNRESPONSIVE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_UNKNOWN);
        assert_int_equal(manager_driver_state(f->manager), DRIVER_UNRESPONSIVE);
}

/* --- the tray changes --- */

static void test_a_gpu_that_is_gone_is_lost_and_never_clean_again_by_itself(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.gpus[0].listed = false;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, NULL), 0);
        fixture_answer(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_LOST);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_UNKNOWN);

        f->fake.gpus[0].listed = true;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, NULL), 0);
        fixture_answer(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "was lost since its last reset");
}

static void test_a_gpu_keeps_its_record_when_its_index_changes(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;
        Gpu *gpu;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.gpus[0].sample.index = 1;
        f->fake.gpus[1].sample.index = 0;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, NULL), 0);
        fixture_answer(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_UNKNOWN);
        assert_int_equal(manager_find(f->manager, "1", &gpu), 0);
        assert_ptr_equal(gpu, fixture_gpu(f, 0));
}

static void test_a_gpu_named_in_no_way_we_know_is_passed_over(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(2);
        size_t n;

        (void) strcpy(f->fake.gpus[1].sample.uuid, "MIG-5ef0a1b2");
        fixture_tick(f);
        fixture_answer(f);
        (void) manager_gpus(f->manager, &n);
        assert_int_equal(n, 1);
}

static void test_a_gpu_that_is_gone_does_not_take_the_others_along(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        f->fake.gpus[3].listed = false;
        assert_int_equal(fixture_reset(f, "", "slurm/1.0", &told), OUTCOME_NEEDS_REBOOT);
        assert_string_equal(told.message, "GPU 3 is gone from the driver's list; reboot the tray");
        assert_int_equal(fixture_state(f, 3), GPU_STATE_LOST);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(fixture_state(f, i), GPU_STATE_CLEAN);
}

/* --- batches --- */

static void test_resets_that_come_together_go_out_in_one(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &first), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "1 2", "slurm/2.0", &second), 0);
        fixture_run_until_told(f, &first);
        fixture_run_until_told(f, &second);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
        assert_int_equal(f->fake.asked[VENDOR_RESET], 3);
        assert_int_equal(f->fake.gpus[3].resets, 0);
}

static void test_a_look_before_a_reset_goes_first_whatever_the_index(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "1", "slurm/1.0", &first), 0);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &second), 0);
        fixture_run_until_told(f, &first);
        fixture_run_until_told(f, &second);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
        assert_int_equal(f->fake.asked[VENDOR_RESET], 2);
}

static void test_a_thousand_gpus_take_as_many_operations_as_one(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1024);
        Told told;

        assert_int_equal(fixture_reset(f, "", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 1 + 2);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
        assert_int_equal(f->fake.asked[VENDOR_RESET], 1024);
        for (size_t i = 0; i < 1024; i++)
                assert_int_equal(fixture_state(f, i), GPU_STATE_CLEAN);
}

static void test_a_busy_gpu_does_not_keep_the_next_ones_waiting(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told busy, told;

        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &busy), 0);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(fixture_reset(f, "1", "slurm/2.0", &told), OUTCOME_DONE);
        assert_int_equal(busy.times, 0);
        fixture_run_until_told(f, &busy);
        assert_int_equal(busy.outcome, OUTCOME_BUSY);
}

/* --- questions --- */

static void test_refreshes_that_come_while_one_runs_share_the_next(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told[4];

        for (size_t i = 0; i < 4; i++)
                assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told[i]), 0);
        fixture_answer(f);
        assert_int_equal(told[0].times, 1);
        assert_int_equal(told[1].times, 0);
        fixture_answer(f);
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(told[i].times, 1);
                assert_int_equal(told[i].outcome, OUTCOME_DONE);
        }
        assert_false(f->fake.out);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 3);
}

static void test_verify_says_clean_only_after_a_look(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_request(f, REQUEST_VERIFY, "0", NULL, &told), 0);
        assert_int_equal(told.times, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
}

static void test_verify_names_every_reason(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        Told told;

        assert_int_equal(fixture_reset(f, "0 1", NULL, &told), OUTCOME_DONE);
        f->config->handover.expected_nvlinks = 18;
        f->fake.gpus[0].sample.partition = 7;
        f->fake.gpus[0].sample.n_links_active = 2;
        fake_hold(&f->fake, 1, "nvtop", 7, false); /* by its open node only: for the search to find */
        assert_int_equal(fixture_request(f, REQUEST_VERIFY, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message,
                        "GPU 0 is dirty: is in clique 1, clique 7 is expected; has 2 of the expected 18 "
                        "NVLinks; "
                        "GPU 1 is in-use: held by nvtop (pid 7, user joe, unit session-3.scope); "
                        "GPU 2 is unknown: not reset in this boot");
        assert_int_equal(fixture_file_state(f, 1), GPU_STATE_DIRTY);
}

static void test_verify_without_a_driver_is_not_clean(void **state) {
        static const VendorOperation operations[] = { VENDOR_PROBE, VENDOR_HOLDERS };

        for (size_t i = 0; i < ELEMENTSOF(operations); i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                Told told;

                assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
                f->fake.driver_state[operations[i]] = DRIVER_FAILED;
                assert_int_equal(fixture_request(f, REQUEST_VERIFY, "0", NULL, &told), 0);
                fixture_run_until_told(f, &told);
                assert_int_equal(told.outcome, OUTCOME_NO_DRIVER);
        }
}

static void test_what_is_known_is_told_without_asking_the_driver(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        CLEANUP(free_ptr) char *message = NULL;
        char *first[] = { (char[]){ "0" }, NULL }, *unknown[] = { (char[]){ "9" }, NULL };
        unsigned started = f->fake.started[VENDOR_PROBE];
        Told told;

        assert_int_equal(manager_verify_known(f->manager, unknown, &message), -ENOENT);
        assert_null(message);
        assert_int_equal(manager_verify_known(f->manager, first, &message), 1);
        assert_string_equal(message,
                        "GPU 0 is unknown: not reset in this boot; gpuagentctl status tells what cures it");
        assert_int_equal(f->fake.started[VENDOR_PROBE], started);

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(manager_verify_known(f->manager, first, &message), 0);
        assert_int_equal(f->requests_finished, 1);
}

static void test_nothing_is_known_to_be_clean_before_the_driver_was_asked(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        CLEANUP(free_ptr) char *message = NULL;
        char *first[] = { (char[]){ "0" }, NULL };
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_crash(f);
        assert_int_equal(manager_verify_known(f->manager, first, &message), 1);
        assert_contains(message, "has not been asked yet");
}

static void test_processes_are_searched_for_and_named(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        Told told;

        fake_hold(&f->fake, 0, "nvtop", 9, false);
        fake_hold(&f->fake, 0, "python", 7, true);
        fake_hold(&f->fake, 2, "bash", 8, false);
        assert_int_equal(fixture_request(f, REQUEST_PROCESSES, "0 1", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
        assert_int_equal(f->fake.asked[VENDOR_HOLDERS], 2);
        assert_int_equal(fixture_gpu(f, 0)->n_holders, 2);
        assert_int_equal(fixture_gpu(f, 0)->holders[0].pid, 7);
        assert_int_equal(fixture_gpu(f, 1)->n_holders, 0);
        assert_int_equal(fixture_gpu(f, 2)->n_holders, 0); /* not asked for */
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
}

static void test_nobody_searches_for_the_holders_of_a_gpu_that_is_gone(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->fake.gpus[1].listed = false;
        assert_int_equal(fixture_request(f, REQUEST_VERIFY, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
        assert_contains(told.message, "GPU 1 is lost: gone from the driver's list");
        assert_int_equal(f->fake.asked[VENDOR_HOLDERS], 1);
        assert_int_equal(fixture_request(f, REQUEST_PROCESSES, "1", NULL, &told), 0);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.outcome, OUTCOME_DONE);
}

/* --- the rest --- */

static void test_a_reply_to_another_question_is_no_answer(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        VendorReply reply = { .operation = VENDOR_PROBE,
                .driver_state = DRIVER_OK,
                .driver_error = "",
                .driver_version = "",
                .complete = true };
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        assert_int_equal(f->fake.operation, VENDOR_RESET);
        reply.samples = &f->fake.gpus[0].sample;
        reply.n_samples = 1;
        f->fake.out = false;
        manager_vendor_done(f->manager, &reply, f->now);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(told.outcome, OUTCOME_RESET_FAILED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_new_configuration_counts_for_what_is_under_way(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        CLEANUP(config_free_ptr) Config *former = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        Config *config;
        Told told;

        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(config_parse("x", "handover: {busy-grace: 2s}", 26, &config, &message), 0);
        former = f->config;
        f->config = config;
        manager_set_config(f->manager, config);
        fixture_run_for(f, 3 * USEC_PER_SEC);
        assert_int_equal(told.outcome, OUTCOME_BUSY);
}

static void test_an_xid_goes_to_the_gpu_with_its_bus_id(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        manager_set_xid(f->manager, "0000:01:00.0", 79, f->now);
        manager_set_xid(f->manager, "0000:99:00.0", 13, f->now);
        manager_set_xid(f->manager, "nonsense", 13, f->now);
        assert_int_equal(fixture_gpu(f, 0)->last_xid, 0);
        assert_int_equal(fixture_gpu(f, 1)->last_xid, 79);
}

static void test_pending_resets_are_counted(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        Told told;

        assert_int_equal(manager_resets_pending(f->manager), 0);
        f->fake.gpus[0].sample.partition = f->fake.gpus[0].clique_after = 7;
        f->fake.gpus[1].sample.recovery_action = RECOVERY_GPU_RESET;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, NULL), 0);
        fixture_answer(f);
        assert_int_equal(manager_resets_pending(f->manager), 2);
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        assert_int_equal(manager_resets_pending(f->manager), 0);
}

static void test_no_more_observers_are_taken_than_there_is_room_for(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(1);
        ManagerObserver observer = {};
        int r = 0;

        for (size_t i = 0; i < 16 && r >= 0; i++)
                r = manager_add_observer(f->manager, &observer);
        assert_int_equal(r, -ENOSPC);
        fixture_tick(f); /* and none of their callbacks is called */
        fixture_answer(f);
}

static void test_a_manager_that_stops_takes_nothing_new_and_ends_what_it_has(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told, refused;

        assert_true(manager_is_idle(f->manager));
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &told), 0);
        manager_stop(f->manager);
        assert_false(manager_is_idle(f->manager));
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/2.0", &refused), -ESHUTDOWN);
        assert_string_equal(manager_error(f->manager), "gpuagentd is stopping");
        assert_string_equal(fixture_gpu(f, 0)->last_tenant, "slurm/1.0");
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_true(manager_is_idle(f->manager));
        assert_int_equal(refused.times, 0);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_manager_is_freed_with_its_work_under_way(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told first, second, third;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "", "slurm/1.0", &first), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "", "slurm/2.0", &second), 0);
        assert_int_equal(fixture_request(f, REQUEST_VERIFY, "", NULL, &third), 0);
        f->manager = manager_free(f->manager);
        assert_int_equal(first.times + second.times + third.times, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_tick_asks_for_the_tray),
                cmocka_unit_test(test_no_timer_wakes_a_driver_without_persistence_mode),
                cmocka_unit_test(test_a_driver_that_is_kept_awake_is_polled_at_its_interval),
                cmocka_unit_test(test_a_gpu_that_is_gone_keeps_no_driver_awake),
                cmocka_unit_test(test_a_driver_that_does_not_answer_is_asked_again),
                cmocka_unit_test(test_a_search_for_holders_does_not_make_a_driver_well),
                cmocka_unit_test(test_a_driver_service_that_cannot_be_asked_is_asked_at_the_interval_only),
                cmocka_unit_test(test_a_driver_that_fails_leaves_the_gpus_as_they_are_known),
                cmocka_unit_test(test_a_gpu_that_is_gone_is_lost_and_never_clean_again_by_itself),
                cmocka_unit_test(test_a_gpu_keeps_its_record_when_its_index_changes),
                cmocka_unit_test(test_a_gpu_named_in_no_way_we_know_is_passed_over),
                cmocka_unit_test(test_a_gpu_that_is_gone_does_not_take_the_others_along),
                cmocka_unit_test(test_resets_that_come_together_go_out_in_one),
                cmocka_unit_test(test_a_look_before_a_reset_goes_first_whatever_the_index),
                cmocka_unit_test(test_a_thousand_gpus_take_as_many_operations_as_one),
                cmocka_unit_test(test_a_busy_gpu_does_not_keep_the_next_ones_waiting),
                cmocka_unit_test(test_refreshes_that_come_while_one_runs_share_the_next),
                cmocka_unit_test(test_verify_says_clean_only_after_a_look),
                cmocka_unit_test(test_verify_names_every_reason),
                cmocka_unit_test(test_verify_without_a_driver_is_not_clean),
                cmocka_unit_test(test_what_is_known_is_told_without_asking_the_driver),
                cmocka_unit_test(test_nothing_is_known_to_be_clean_before_the_driver_was_asked),
                cmocka_unit_test(test_processes_are_searched_for_and_named),
                cmocka_unit_test(test_nobody_searches_for_the_holders_of_a_gpu_that_is_gone),
                cmocka_unit_test(test_a_reply_to_another_question_is_no_answer),
                cmocka_unit_test(test_a_new_configuration_counts_for_what_is_under_way),
                cmocka_unit_test(test_an_xid_goes_to_the_gpu_with_its_bus_id),
                cmocka_unit_test(test_pending_resets_are_counted),
                cmocka_unit_test(test_no_more_observers_are_taken_than_there_is_room_for),
                cmocka_unit_test(test_a_manager_that_stops_takes_nothing_new_and_ends_what_it_has),
                cmocka_unit_test(test_a_manager_is_freed_with_its_work_under_way),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
