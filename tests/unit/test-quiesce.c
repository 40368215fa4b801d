/* SPDX-License-Identifier: MIT */
/* Monitoring that holds GPUs is stopped for a reset that it refuses, and started again whatever became of
 * that. */
#include "tests/unit/fixture.h"

#include "agent/base/text.h"

static Fixture* fixture_new_monitored(size_t n) {
        Fixture *f = fixture_new_probed(n);

        assert_int_equal(strv_append(&f->config->quiesce.units, "dcgm.service"), 0);
        for (size_t i = 0; i < n; i++)
                fake_hold_monitor(&f->fake, i, "nv-hostengine", (pid_t) (100 + i));
        return f;
}

static void test_monitoring_is_stopped_once_for_all_gpus_and_started_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(3);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_QUIESCE], 1);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
        assert_false(f->fake.quiesced);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(fixture_state(f, i), GPU_STATE_CLEAN);
}

static void test_a_reset_that_the_driver_grants_stops_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
        Told told;

        fake_let_go(&f->fake, 0);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_QUIESCE], 0);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 0);
}

static void test_a_site_that_lists_nothing_has_nothing_stopped(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        fake_hold_monitor(&f->fake, 0, "nv-hostengine", 100);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_int_equal(f->fake.started[VENDOR_QUIESCE], 0);
}

static void test_a_command_is_enough(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        free(f->config->quiesce.command);
        f->config->quiesce.command = strdup("/usr/bin/quiet-pods");
        fake_hold_monitor(&f->fake, 0, "exporter", 100);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_QUIESCE], 1);
}

static void test_a_unit_that_will_not_stop_is_named(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
        Told told;

        f->fake.quiesce_failure = "dcgm.service did not stop within 60 s";
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_string_equal(told.message,
                        "GPU 0 is held by nv-hostengine (pid 100, user joe, unit session-3.scope); "
                        "dcgm.service did not stop within 60 s");
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 1); /* others may have stopped */
}

static void test_monitoring_runs_again_after_a_failure(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
        Told told;

        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_QUIESCE], 1);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
        assert_false(f->fake.quiesced);
}

static void test_monitoring_is_not_started_between_two_handovers(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(2);
        Told first, second;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &first), 0);
        for (unsigned i = 0; i < 4; i++) /* probe, reset, holders, quiesce */
                fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "1", NULL, &second), 0);
        fixture_run_until_told(f, &first);
        if (second.times == 0)
                assert_int_equal(f->fake.started[VENDOR_RESUME], 0);
        while (second.times == 0)
                fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(second.outcome, OUTCOME_DONE);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
}

static void test_what_would_not_start_is_tried_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
        Told told;

        f->fake.resume_failure = "dcgm.service did not start";
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_run_for(f, f->config->driver.poll_interval_usec / 2);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
        assert_true(manager_is_idle(f->manager)); /* a stop does not wait for it */
        f->fake.resume_failure = NULL;
        fixture_run_for(f, f->config->driver.poll_interval_usec);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 2);
        fixture_run_for(f, 10 * f->config->driver.poll_interval_usec);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 2);
}

static void test_a_stop_waits_until_monitoring_runs_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_true(f->fake.out);
        assert_int_equal(f->fake.operation, VENDOR_RESUME);
        manager_stop(f->manager);
        assert_false(manager_is_idle(f->manager));
        fixture_answer(f);
        assert_true(manager_is_idle(f->manager));
}

static void test_an_agent_that_dies_has_monitoring_started_by_the_next(void **state) {
        for (unsigned steps = 3; steps < 7;
                        steps++) { /* from the quiesce going out to the resume going out */
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
                Told told;

                assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
                for (unsigned i = 0; i < steps && f->fake.out; i++)
                        fixture_answer(f);
                f->fake.started[VENDOR_RESUME] = 0;
                f->fake.quiesced = true;
                fixture_crash(f);
                fixture_tick(f);
                assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
                fixture_run_for(f, USEC_PER_SEC);
                assert_false(f->fake.quiesced);
                fixture_run_for(f, 60 * USEC_PER_SEC);
                assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
        }
}

/* Release of a GPU with everything in the way: a leftover, monitoring, and checks behind the reset. */
static void test_an_agent_that_dies_in_a_whole_handover_knows_no_clean_gpu(void **state) {
        unsigned steps = 0;
        bool done = false;

        for (; !done; steps++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                Told told;

                assert_int_equal(strv_append(&f->config->quiesce.units, "dcgm.service"), 0);
                f->fake.gpus[0].sample.checks = true;
                assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
                fake_hold_leftover(&f->fake, 0, "python", 1860);
                fake_hold_monitor(&f->fake, 0, "nv-hostengine", 100);
                assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &told), 0);
                for (unsigned i = 0; i < steps && told.times == 0; i++)
                        fixture_answer(f);
                done = told.times > 0;
                assert_int_equal(fixture_state(f, 0) == GPU_STATE_CLEAN, done);

                fixture_crash(f);
                assert_int_equal(fixture_state(f, 0), done ? GPU_STATE_CLEAN : GPU_STATE_DIRTY);
                assert_string_equal(fixture_gpu(f, 0)->tenant, "");
                f->fake.quiesced |= done; /* the resume was out when it died */
                fixture_tick(f);
                fixture_run_for(f, 60 * USEC_PER_SEC);
                assert_false(f->fake.quiesced);
                assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told),
                                steps <= 3 ? OUTCOME_BUSY : OUTCOME_DONE);
        }
        /* probe, reset, holders, leftovers, quiesce, reset, look, checks, look; and once it is done */
        assert_int_equal(steps, 10);
}

static void test_what_cannot_be_noted_is_not_stopped(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_monitored(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f); /* refused; the search is out */
        fixture_break_state(f);
        fixture_answer(f);
        assert_int_equal(f->fake.started[VENDOR_QUIESCE], 0);
        assert_int_equal(told.times, 1);
        assert_true(outcome_is_failure(told.outcome));
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        fixture_mend_state(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_monitoring_is_stopped_once_for_all_gpus_and_started_again),
                cmocka_unit_test(test_a_reset_that_the_driver_grants_stops_nothing),
                cmocka_unit_test(test_a_site_that_lists_nothing_has_nothing_stopped),
                cmocka_unit_test(test_a_command_is_enough),
                cmocka_unit_test(test_a_unit_that_will_not_stop_is_named),
                cmocka_unit_test(test_monitoring_runs_again_after_a_failure),
                cmocka_unit_test(test_monitoring_is_not_started_between_two_handovers),
                cmocka_unit_test(test_what_would_not_start_is_tried_again),
                cmocka_unit_test(test_a_stop_waits_until_monitoring_runs_again),
                cmocka_unit_test(test_an_agent_that_dies_has_monitoring_started_by_the_next),
                cmocka_unit_test(test_an_agent_that_dies_in_a_whole_handover_knows_no_clean_gpu),
                cmocka_unit_test(test_what_cannot_be_noted_is_not_stopped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
