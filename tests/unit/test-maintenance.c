/* SPDX-License-Identifier: MIT */
/* Maintenance, in which nothing is asked of the driver; and GPUs that will not come back. */
#include "tests/unit/fixture.h"

#include <errno.h>

#include "agent/base/text.h"

static void test_in_maintenance_everything_is_refused_with_the_reason(void **state) {
        static const RequestKind kinds[] = { REQUEST_REFRESH, REQUEST_RESET, REQUEST_ACQUIRE,
                REQUEST_RELEASE, REQUEST_VERIFY, REQUEST_PROCESSES };
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        assert_null(manager_maintenance(f->manager));
        assert_int_equal(manager_set_maintenance(f->manager, true, "driver upgrade", f->now), 0);
        assert_string_equal(manager_maintenance(f->manager), "driver upgrade");
        assert_int_equal(fixture_count(f, "maintenance driver upgrade"), 1);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                Told told;

                assert_int_equal(fixture_request(f, kinds[i], "0", "slurm/1.0", &told), 0);
                assert_int_equal(told.times, 1);
                assert_int_equal(told.outcome, OUTCOME_MAINTENANCE);
                assert_string_equal(told.message, "The tray is in maintenance: driver upgrade");
                assert_false(f->fake.out);
        }
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_UNKNOWN);
}

static void test_in_maintenance_nothing_is_asked_of_the_driver(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.persistence = true; /* there would be polls */
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told),
                        OUTCOME_DONE); /* and looks for the tenant */
        assert_int_equal(manager_set_maintenance(f->manager, true, "", f->now), 0);
        memset(f->fake.started, 0, sizeof f->fake.started);
        assert_int_equal(manager_next_elapse(f->manager), USEC_INFINITY);
        fixture_run_for(f, 3600 * USEC_PER_SEC);
        manager_set_xid(f->manager, "0000:00:00.0", 79, f->now);
        fixture_run_for(f, 3600 * USEC_PER_SEC);
        for (size_t i = 0; i < _VENDOR_OPERATION_MAX; i++)
                assert_int_equal(f->fake.started[i], 0);

        assert_int_equal(manager_set_maintenance(f->manager, false, "", f->now), 0);
        assert_null(manager_maintenance(f->manager));
        assert_true(f->fake.out); /* it looks at once */
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 1);
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 1);
}

static void test_running_work_ends_first(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told reset, booking;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &reset), 0);
        assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "1", "slurm/2.0", &booking), 0);
        fixture_answer(f);
        assert_int_equal(manager_set_maintenance(f->manager, true, "now", f->now), 0);
        fixture_run_until_told(f, &reset);
        fixture_run_until_told(f, &booking);
        assert_int_equal(reset.outcome, OUTCOME_DONE);
        assert_int_equal(booking.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_true(manager_is_idle(f->manager));
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(manager_next_elapse(f->manager), USEC_INFINITY);
}

static void test_maintenance_outlives_the_agent(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        unsigned probes = f->fake.started[VENDOR_PROBE];
        Told told;

        assert_int_equal(manager_set_maintenance(f->manager, true, "rmmod nvidia", f->now), 0);
        fixture_crash(f);
        assert_string_equal(manager_maintenance(f->manager), "rmmod nvidia");
        fixture_tick(f);
        fixture_run_for(f, 600 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_PROBE], probes);
        assert_int_equal(manager_set_maintenance(f->manager, false, "", f->now), 0);
        fixture_crash(f);
        assert_null(manager_maintenance(f->manager));
        fixture_tick(f);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
}

static void test_a_reason_is_not_needed_and_may_be_changed(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(manager_set_maintenance(f->manager, true, "", f->now), 0);
        fixture_crash(f);
        assert_string_equal(manager_maintenance(f->manager), "");
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        assert_string_equal(told.message, "The tray is in maintenance");
        assert_int_equal(manager_set_maintenance(f->manager, true, "fan", f->now), 0);
        assert_string_equal(manager_maintenance(f->manager), "fan");
}

static void test_no_reason_can_damage_the_file(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(manager_set_maintenance(f->manager, true, "a\nend\n\xff", f->now), 0);
        fixture_crash(f);
        assert_string_equal(manager_maintenance(f->manager), "a\\x0aend\\x0a\\xff");
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
}

static void test_maintenance_that_cannot_be_written_is_not_entered(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        fixture_break_state(f);
        assert_true(manager_set_maintenance(f->manager, true, "x", f->now) < 0);
        assert_null(manager_maintenance(f->manager));
        assert_contains(manager_error(f->manager), "cannot be written");
        fixture_mend_state(f);
}

static void test_a_use_that_is_told_in_maintenance_is_not_forgotten(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(manager_set_maintenance(f->manager, true, "x", f->now), 0);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_MAINTENANCE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
}

static void test_a_use_that_is_told_while_the_reset_is_out_spoils_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told reset, told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &reset), 0);
        fixture_answer(f);
        assert_int_equal(manager_set_maintenance(f->manager, true, "x", f->now), 0);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_MAINTENANCE);
        fixture_run_until_told(f, &reset);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "slurm/1.0 had it");
}

static void test_a_lease_outlives_maintenance(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(manager_set_maintenance(f->manager, true, "x", f->now), 0);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_MAINTENANCE);
        assert_string_equal(fixture_file_tenant(f, 0), "slurm/1.0");
        assert_int_equal(manager_set_maintenance(f->manager, false, "", f->now), 0);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_monitoring_that_was_stopped_stays_so_during_maintenance(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(strv_append(&f->config->quiesce.units, "dcgm.service"), 0);
        fake_hold_monitor(&f->fake, 0, "nv-hostengine", 100);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        assert_int_equal(manager_set_maintenance(f->manager, true, "x", f->now), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 0);
        assert_true(manager_is_idle(f->manager));
        assert_int_equal(manager_set_maintenance(f->manager, false, "", f->now), 0);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_RESUME], 1);
}

/* --- forgetting --- */

static void lose(Fixture *f, size_t i) {
        Told told;

        f->fake.gpus[i].listed = false;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(fixture_state(f, i), GPU_STATE_LOST);
}

static void test_a_gpu_that_is_gone_can_be_forgotten(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        char uuid[GPU_UUID_SIZE];
        size_t n;

        fake_uuid(1, uuid);
        lose(f, 1);
        assert_int_equal(manager_forget(f->manager, uuid, f->now), 0);
        assert_int_equal(fixture_count(f, "removed 1"), 1);
        assert_null(manager_gpu_by_uuid(f->manager, uuid));
        (void) manager_gpus(f->manager, &n);
        assert_int_equal(n, 2);
        assert_int_equal(fixture_gpu(f, 0)->sample.index, 0);
        assert_int_equal(fixture_gpu(f, 2)->sample.index, 2);
        fixture_crash(f);
        assert_null(manager_gpu_by_uuid(f->manager, uuid));
        assert_int_equal(manager_forget(f->manager, uuid, f->now), -ENOENT);
}

static void test_a_gpu_that_is_there_is_not_forgotten(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        assert_int_equal(manager_forget(f->manager, "0", f->now), -EBUSY);
        assert_string_equal(manager_error(f->manager), "GPU 0 is there, and cannot be forgotten");
        f->fake.gpus[0].sample.lost = true; /* it does not answer, but it is on the list */
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(manager_forget(f->manager, "0", f->now), -EBUSY);
        assert_int_equal(manager_forget(f->manager, "x", f->now), -EINVAL);
}

static void test_a_gpu_that_was_not_looked_for_is_not_forgotten(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_crash(f);
        assert_int_equal(manager_forget(f->manager, "0", f->now), -EBUSY);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_gpu_that_is_asked_for_is_not_forgotten(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        lose(f, 0);
        assert_int_equal(fixture_request(f, REQUEST_VERIFY, "0", NULL, &told), 0);
        assert_int_equal(manager_forget(f->manager, "0", f->now), -EBUSY);
        fixture_run_until_told(f, &told);
        assert_int_equal(manager_forget(f->manager, "0", f->now), 0);
}

static void test_what_cannot_be_written_is_not_forgotten(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        lose(f, 0);
        fixture_break_state(f);
        assert_true(manager_forget(f->manager, "0", f->now) < 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_LOST);
        assert_int_equal(fixture_count(f, "removed 0"), 0);
        fixture_mend_state(f);
        assert_int_equal(manager_forget(f->manager, "0", f->now), 0);
}

static void test_a_lease_goes_with_its_gpu(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_acquire(f, "0 1", "slurm/1.0", &told), OUTCOME_DONE);
        lose(f, 0);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_int_equal(manager_forget(f->manager, "0", f->now), 0);
        assert_int_equal(fixture_release(f, "", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_maintenance_everything_is_refused_with_the_reason),
                cmocka_unit_test(test_in_maintenance_nothing_is_asked_of_the_driver),
                cmocka_unit_test(test_running_work_ends_first),
                cmocka_unit_test(test_maintenance_outlives_the_agent),
                cmocka_unit_test(test_a_reason_is_not_needed_and_may_be_changed),
                cmocka_unit_test(test_no_reason_can_damage_the_file),
                cmocka_unit_test(test_maintenance_that_cannot_be_written_is_not_entered),
                cmocka_unit_test(test_a_use_that_is_told_in_maintenance_is_not_forgotten),
                cmocka_unit_test(test_a_use_that_is_told_while_the_reset_is_out_spoils_it),
                cmocka_unit_test(test_a_lease_outlives_maintenance),
                cmocka_unit_test(test_monitoring_that_was_stopped_stays_so_during_maintenance),
                cmocka_unit_test(test_a_gpu_that_is_gone_can_be_forgotten),
                cmocka_unit_test(test_a_gpu_that_is_there_is_not_forgotten),
                cmocka_unit_test(test_a_gpu_that_was_not_looked_for_is_not_forgotten),
                cmocka_unit_test(test_a_gpu_that_is_asked_for_is_not_forgotten),
                cmocka_unit_test(test_what_cannot_be_written_is_not_forgotten),
                cmocka_unit_test(test_a_lease_goes_with_its_gpu),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
