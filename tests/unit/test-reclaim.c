/* SPDX-License-Identifier: MIT */
/* A lease whose tenant was seen alive and is gone ends with a handover; without such a proof it stays. */
#include "tests/unit/fixture.h"

#include "agent/base/text.h"

static void poll_now(Fixture *f) {
        fixture_run_for(f, f->config->driver.poll_interval_usec);
}

static Fixture* booked(size_t n, const char *ids, const char *tenant) {
        Fixture *f = fixture_new_probed(n);
        Told told;

        assert_int_equal(fixture_acquire(f, ids, tenant, &told), OUTCOME_DONE);
        for (size_t i = 0; i < n; i++)
                f->fake.gpus[i].resets = 0;
        return f;
}

/* A look finds signs of life. */
static void see_alive(Fixture *f, const char *tenant) {
        f->fake.alive = tenant;
        poll_now(f);
}

/* There are none from here on. */
static void leave(Fixture *f, const char *tenant) {
        f->fake.alive = NULL;
        f->fake.gone = tenant;
}

static void test_nobody_is_looked_for_without_leases(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 0);
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 4);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fixture_run_for(f, 60 * USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 4);
}

static void test_each_tenant_is_asked_about_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(4, "0 2", "slurm/1.0");
        Told told;

        assert_int_equal(fixture_acquire(f, "1", "pod/a", &told), OUTCOME_DONE);
        poll_now(f);
        assert_int_equal(strv_length(f->fake.tenants), 2);
        assert_string_equal(f->fake.tenants[0], "pod/a");
        assert_string_equal(f->fake.tenants[1], "slurm/1.0");
}

static void test_a_tenant_that_was_never_seen_keeps_its_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        Told told;

        f->fake.gone = "slurm/1.0";
        fixture_run_for(f, 600 * USEC_PER_SEC);
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_string_equal(told.message, "GPU 0 is leased to slurm/1.0");
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_int_equal(f->fake.gpus[0].resets, 0);
}

static void test_a_later_run_of_the_job_ends_the_lease_of_one_without_a_sign(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        Told told;

        f->fake.gone = "slurm/1.0";
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.1", &told), OUTCOME_DONE);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.1");
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_a_later_run_does_not_end_the_lease_of_one_that_may_live(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.1");
        Told told;

        /* what cannot be told is no proof, and a sign is one of either */
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.2", &told), OUTCOME_LEASED);
        f->fake.alive = "slurm/1.1";
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.2", &told), OUTCOME_LEASED);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.1");
        assert_int_equal(f->fake.gpus[0].resets, 0);
}

static void test_another_job_or_an_earlier_run_ends_no_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.1");
        Told told;

        f->fake.gone = "slurm/1.1";
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_LEASED);
        assert_int_equal(fixture_acquire(f, "0", "slurm/11.2", &told), OUTCOME_LEASED);
        assert_int_equal(fixture_acquire(f, "0", "pod/1.2", &told), OUTCOME_LEASED);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.1");
}

static void test_a_living_tenant_keeps_its_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        Told told;

        f->fake.alive = "slurm/1.0";
        fixture_run_for(f, 600 * USEC_PER_SEC);
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        f->fake.alive = NULL; /* whether it lives cannot be told any more */
        fixture_run_for(f, 600 * USEC_PER_SEC);
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_int_equal(f->fake.gpus[0].resets, 0);
}

static void test_a_tenant_that_is_gone_loses_its_lease_to_a_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(2, "0 1", "slurm/1.0");

        see_alive(f, "slurm/1.0");
        leave(f, "slurm/1.0");
        poll_now(f);
        for (size_t i = 0; i < 2; i++) {
                assert_string_equal(fixture_gpu(f, i)->tenant, "");
                assert_string_equal(fixture_file_tenant(f, i), "");
                assert_int_equal(f->fake.gpus[i].resets, 1);
                assert_int_equal(fixture_state(f, i), GPU_STATE_CLEAN);
                assert_string_equal(fixture_gpu(f, i)->last_tenant, "slurm/1.0");
        }
        assert_int_equal(fixture_count(f, "reclaimed 0 slurm/1.0"), 1);
        assert_int_equal(fixture_count(f, "finished 0 slurm/1.0 done"), 1);
        assert_int_equal(f->fake.started[VENDOR_RESET], 2); /* the booking's, and one for both */
}

static void test_that_a_tenant_lived_is_known_to_the_next_agent(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");

        see_alive(f, "slurm/1.0");
        leave(f, "slurm/1.0");
        fixture_crash(f);
        fixture_tick(f); /* it looks at once */
        assert_int_equal(f->fake.operation, VENDOR_TENANTS);
        fixture_run_for(f, USEC_PER_SEC);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_another_tenants_booking_meets_the_lease_of_one_that_is_gone(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        Told told;

        see_alive(f, "slurm/1.0");
        leave(f, "slurm/1.0");
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/2.0");
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_a_driver_service_that_cannot_look_proves_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        Told told;

        see_alive(f, "slurm/1.0");
        leave(f, "slurm/1.0");
        f->fake.driver_state[VENDOR_TENANTS] = DRIVER_FAILED;
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_int_equal(manager_driver_state(f->manager), DRIVER_OK); /* it says nothing about NVML */
        f->fake.driver_state[VENDOR_TENANTS] = DRIVER_OK;
        f->fake.start_error[VENDOR_TENANTS] = -111;
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
}

static void test_an_agent_that_dies_in_a_reclaim_leaves_no_clean_gpu(void **state) {
        for (unsigned steps = 1; steps < 5; steps++) {
                CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");

                see_alive(f, "slurm/1.0");
                leave(f, "slurm/1.0");
                fixture_advance(f, f->config->driver.poll_interval_usec);
                fixture_tick(f);
                assert_int_equal(f->fake.operation, VENDOR_TENANTS);
                for (unsigned i = 1; i < steps && f->fake.out; i++)
                        fixture_answer(f);
                if (f->fake.gpus[0].resets == 0)
                        assert_int_not_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
                fixture_crash(f);
                if (f->fake.gpus[0].resets == 0)
                        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        }
}

static void test_one_of_the_tenants_that_share_leaves_without_a_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.shared = SHARED_COUNT;
        assert_int_equal(fixture_share(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_share(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        f->fake.gpus[0].resets = 0;
        see_alive(f, "slurm/1.0");
        f->fake.alive = "slurm/2.0";
        f->fake.gone = "slurm/1.0";
        poll_now(f);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/2.0");
        assert_int_equal(f->fake.gpus[0].resets, 0);
        leave(f, "slurm/2.0");
        poll_now(f);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_what_was_seen_of_a_tenant_is_told(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        Told told;

        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "unknown");
        f->fake.gone = "slurm/1.0";
        poll_now(f);
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "no-sign");
        f->fake.gone = NULL;
        see_alive(f, "slurm/1.0");
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "alive");
        leave(f, "slurm/1.0");
        poll_now(f);
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "");

        /* of those that share it, the least to be seen */
        f->config->handover.shared = SHARED_COUNT;
        assert_int_equal(fixture_share(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        f->fake.alive = "slurm/2.0";
        assert_int_equal(fixture_share(f, "0", "slurm/3.0", &told), OUTCOME_DONE);
        poll_now(f);
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "unknown");
        f->fake.gone = "slurm/3.0";
        poll_now(f);
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "no-sign");
}

static void test_a_pod_or_container_is_looked_for_when_it_books(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        f->fake.alive = "pod/a";
        assert_int_equal(fixture_acquire(f, "0", "pod/a", &told), OUTCOME_DONE);
        fixture_run_for(f, USEC_PER_SEC);
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 0)), "alive");
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 1);
        f->fake.alive = "container/a";
        assert_int_equal(fixture_acquire(f, "1", "container/a", &told), OUTCOME_DONE);
        fixture_run_for(f, USEC_PER_SEC);
        assert_string_equal(gpu_tenant_presence(fixture_gpu(f, 1)), "alive");
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 2);
}

static void test_the_end_of_something_on_the_node_brings_a_look_at_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        manager_look_for_tenants(f->manager, f->now);
        assert_int_equal(f->fake.started[VENDOR_TENANTS], 0); /* there is nobody to look for */
        f->fake.alive = "pod/a";
        assert_int_equal(fixture_acquire(f, "0", "pod/a", &told), OUTCOME_DONE);
        fixture_run_for(f, USEC_PER_SEC);
        f->fake.gpus[0].resets = 0;
        leave(f, "pod/a");
        manager_look_for_tenants(f->manager, f->now);
        fixture_run_for(f, USEC_PER_SEC);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_pods_that_come_and_go_all_the_time_hold_up_no_probe(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = booked(1, "0", "slurm/1.0");
        RequestOptions options = {};
        Told told;

        manager_look_for_tenants(f->manager, f->now);
        assert_int_equal(f->fake.operation, VENDOR_TENANTS);
        assert_int_equal(fixture_request_full(f, REQUEST_REFRESH, "", &options, &told, NULL), 0);
        for (unsigned i = 0; i < 3 && told.times == 0; i++) {
                manager_look_for_tenants(f->manager, f->now);
                fixture_answer(f);
        }
        assert_int_equal(told.times, 1);
        fixture_run_for(f, USEC_PER_SEC);
        assert_true(f->fake.started[VENDOR_TENANTS] >= 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nobody_is_looked_for_without_leases),
                cmocka_unit_test(test_each_tenant_is_asked_about_once),
                cmocka_unit_test(test_a_tenant_that_was_never_seen_keeps_its_lease),
                cmocka_unit_test(test_a_later_run_of_the_job_ends_the_lease_of_one_without_a_sign),
                cmocka_unit_test(test_a_later_run_does_not_end_the_lease_of_one_that_may_live),
                cmocka_unit_test(test_another_job_or_an_earlier_run_ends_no_lease),
                cmocka_unit_test(test_a_living_tenant_keeps_its_lease),
                cmocka_unit_test(test_a_tenant_that_is_gone_loses_its_lease_to_a_reset),
                cmocka_unit_test(test_that_a_tenant_lived_is_known_to_the_next_agent),
                cmocka_unit_test(test_another_tenants_booking_meets_the_lease_of_one_that_is_gone),
                cmocka_unit_test(test_a_driver_service_that_cannot_look_proves_nothing),
                cmocka_unit_test(test_an_agent_that_dies_in_a_reclaim_leaves_no_clean_gpu),
                cmocka_unit_test(test_one_of_the_tenants_that_share_leaves_without_a_reset),
                cmocka_unit_test(test_what_was_seen_of_a_tenant_is_told),
                cmocka_unit_test(test_a_pod_or_container_is_looked_for_when_it_books),
                cmocka_unit_test(test_the_end_of_something_on_the_node_brings_a_look_at_once),
                cmocka_unit_test(test_pods_that_come_and_go_all_the_time_hold_up_no_probe),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
