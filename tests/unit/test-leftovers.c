/* SPDX-License-Identifier: MIT */
/* Processes that outlive their tenant are ended where they are proven to be its own, and nobody else's
 * are. */
#include "tests/unit/fixture.h"

static void acquire(Fixture *f, const char *ids, const char *tenant) {
        Told told;

        assert_int_equal(fixture_acquire(f, ids, tenant, &told), OUTCOME_DONE);
        for (size_t i = 0; i < f->fake.n; i++)
                f->fake.gpus[i].resets = 0;
}

static void test_leftovers_of_the_ended_tenant_are_ended_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        acquire(f, "0 1", "slurm/1.0");
        fake_hold_leftover(&f->fake, 1, "python", 1860);
        assert_int_equal(fixture_release(f, "0 1", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 1);
        assert_int_equal(f->fake.asked[VENDOR_LEFTOVERS], 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN);
}

static void look_whose(Fixture *f, const VendorRequest *request) {
        if (request->operation == VENDOR_LEFTOVERS) {
                assert_string_equal(request->tenants[0], "slurm/1.0");
                assert_int_equal(request->timeout_usec,
                                f->config->handover.kill_grace_usec +
                                                2 * f->config->driver.probe_timeout_usec);
        }
}

static void test_the_driver_service_is_told_whose_they_are(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        acquire(f, "0", "slurm/1.0");
        fake_hold_leftover(&f->fake, 0, "python", 1860);
        f->fake.on_start = look_whose;
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 1);
}

static void test_a_foreign_process_beside_a_leftover_makes_it_busy(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        acquire(f, "0", "slurm/1.0");
        fake_hold_leftover(&f->fake, 0, "python", 1860);
        fake_hold(&f->fake, 0, "nvtop", 7, true);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_BUSY);
        assert_string_equal(told.message, "GPU 0 is held by nvtop (pid 7, user joe, unit session-3.scope)");
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 1);
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_site_that_refuses_leftovers_ends_none(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.leftovers = LEFTOVERS_REFUSE;
        acquire(f, "0", "slurm/1.0");
        fake_hold_leftover(&f->fake, 0, "python", 1860);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_BUSY);
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 0);
        assert_int_equal(f->fake.gpus[0].n_holders, 1);
}

static void test_a_reset_or_a_booking_ends_nobodys_processes(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        fake_hold_leftover(&f->fake, 0, "python", 1860);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_BUSY);
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_BUSY);
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 0);
        assert_int_equal(f->fake.gpus[0].n_holders, 1);
}

static void test_a_release_without_a_lease_ends_leftovers_too(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        fake_hold_leftover(&f->fake, 0, "python", 1860);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 1);
}

static void test_a_reclaim_ends_leftovers_too(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        acquire(f, "0", "slurm/1.0");
        f->fake.alive = "slurm/1.0";
        fixture_run_for(f, f->config->driver.poll_interval_usec);
        f->fake.alive = NULL;
        f->fake.gone = "slurm/1.0";
        fake_hold_leftover(&f->fake, 0, "python", 1860);
        fixture_run_for(f, f->config->driver.poll_interval_usec);
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 1);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_driver_service_that_dies_over_leftovers_leaves_no_clean_gpu(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        acquire(f, "0", "slurm/1.0");
        fake_hold_leftover(&f->fake, 0, "python", 1860);
        f->fake.driver_state[VENDOR_LEFTOVERS] = DRIVER_UNRESPONSIVE;
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DRIVER_UNRESPONSIVE);
        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(f->fake.gpus[0].resets, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_leftovers_of_the_ended_tenant_are_ended_once),
                cmocka_unit_test(test_the_driver_service_is_told_whose_they_are),
                cmocka_unit_test(test_a_foreign_process_beside_a_leftover_makes_it_busy),
                cmocka_unit_test(test_a_site_that_refuses_leftovers_ends_none),
                cmocka_unit_test(test_a_reset_or_a_booking_ends_nobodys_processes),
                cmocka_unit_test(test_a_release_without_a_lease_ends_leftovers_too),
                cmocka_unit_test(test_a_reclaim_ends_leftovers_too),
                cmocka_unit_test(test_a_driver_service_that_dies_over_leftovers_leaves_no_clean_gpu),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
