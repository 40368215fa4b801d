/* SPDX-License-Identifier: MIT */
/* Leases by themselves, on file, and how a release ends them. */
#include "tests/unit/fixture.h"

#include <errno.h>
#include <stdio.h>

/* A GPU that is clean, booked for the tenant. */
static void book(Fixture *f, const char *ids, const char *tenant) {
        Told told;

        assert_int_equal(fixture_acquire(f, ids, tenant, &told), OUTCOME_DONE);
}

/* --- the lease --- */

static void test_a_lease_that_is_not_shared_has_one_tenant(void **state) {
        CLEANUP(lease_done) Lease lease = {};
        char text[64];
        bool last;

        assert_int_equal(lease_add(&lease, "slurm/1.0", false, 1), 1);
        assert_int_equal(lease_add(&lease, "slurm/1.0", false, 2), 0);
        assert_int_equal(lease_add(&lease, "slurm/2.0", false, 3), -EBUSY);
        assert_int_equal(lease_add(&lease, "slurm/2.0", true, 3), -EBUSY);
        assert_int_equal(lease.n, 1);
        assert_int_equal(lease.tenants[0].since_realtime_usec, 1);
        lease_format(&lease, text, sizeof text);
        assert_string_equal(text, "slurm/1.0");

        assert_int_equal(lease_remove(&lease, "slurm/2.0", &last), 0);
        assert_int_equal(lease_remove(&lease, "slurm/1.0", &last), 1);
        assert_true(last);
        assert_int_equal(lease.n, 0);
        lease_format(&lease, text, sizeof text);
        assert_string_equal(text, "");
}

static void test_a_shared_lease_counts_its_tenants(void **state) {
        CLEANUP(lease_done) Lease lease = {};
        char text[64];
        bool last;

        for (unsigned i = 0; i < LEASE_TENANTS_MAX; i++) {
                (void) snprintf(text, sizeof text, "slurm/%u.0", i);
                assert_int_equal(lease_add(&lease, text, true, i), 1);
        }
        assert_int_equal(lease_add(&lease, "slurm/999.0", true, 1), -ENOSPC);
        assert_int_equal(lease_add(&lease, "slurm/999.0", false, 1), -EBUSY);
        lease_format(&lease, text, sizeof text);
        assert_string_equal(text, "slurm/0.0, slurm/1.0, slurm/2.0, slurm/3.0 and 252 more");
        for (unsigned i = 0; i < LEASE_TENANTS_MAX; i++) {
                (void) snprintf(text, sizeof text, "slurm/%u.0", i);
                assert_int_equal(lease_remove(&lease, text, &last), 1);
                assert_int_equal(last, i == LEASE_TENANTS_MAX - 1);
        }
}

static void test_a_lease_text_that_fits_nobody_counts_them(void **state) {
        CLEANUP(lease_done) Lease lease = {};
        char text[8];

        assert_int_equal(lease_add(&lease, "slurm/1.0", true, 1), 1);
        assert_int_equal(lease_add(&lease, "slurm/2.0", true, 1), 1);
        lease_format(&lease, text, sizeof text);
        assert_string_equal(text, "2 more");
}

/* --- on file --- */

static void test_leases_outlive_the_agent(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        book(f, "0", "slurm/26.0");
        assert_string_equal(fixture_file_tenant(f, 0), "slurm/26.0");
        fixture_crash(f);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/26.0");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_string_equal(fixture_gpu(f, 0)->reason, "leased to slurm/26.0");
        assert_string_equal(fixture_gpu(f, 0)->reason_counts, "leased to a tenant");
        assert_int_equal(fixture_acquire(f, "0", "slurm/27.0", &told), OUTCOME_LEASED);
        assert_int_equal(fixture_release(f, "0", "slurm/26.0", &told), OUTCOME_DONE);
        assert_string_equal(fixture_file_tenant(f, 0), "");
}

static int parse(const char *lease, const char *record, char *ret_tenant) {
        CLEANUP(inventory_done) Inventory inventory = {};
        char text[1024];
        StateTray tray;
        int r;

        (void) snprintf(text, sizeof text,
                        "gpuagent-state 1\ngpu GPU-5ef0a1b2-0000-4000-8000-000000000000\nstate %s\n%send\n",
                        record, lease);
        r = state_parse(text, &inventory, &tray);
        if (r > 0)
                (void) snprintf(ret_tenant, GPU_TENANT_SIZE, "%s", inventory.by_index[0]->tenant);
        else
                assert_int_equal(inventory.n, 0);
        return r;
}

static void test_a_damaged_lease_makes_the_whole_file_nothing(void **state) {
        static const char *const damaged[] = {
                "lease sole unseen 1\n",
                "lease sole unseen 1 \n",
                "lease sole unseen x slurm/1.0\n",
                "lease sole dead 1 slurm/1.0\n",
                "lease own unseen 1 slurm/1.0\n",
                "lease sole unseen 1 slurm/1.0 more\n",
                "lease sole unseen 1 Slurm\n",
                "lease\n",
                "lease sole\n",
                "lease sole unseen 1 slurm/1.0\nlease sole unseen 1 slurm/1.0\n",
                "lease sole unseen 1 slurm/1.0\nlease sole unseen 1 slurm/2.0\n",
                "lease shared unseen 1 slurm/1.0\nlease sole unseen 1 slurm/2.0\n",
                "lease sole unseen 1 slurm/1.0\nlease shared unseen 1 slurm/2.0\n",
        };
        char tenant[GPU_TENANT_SIZE];

        for (size_t i = 0; i < ELEMENTSOF(damaged); i++)
                assert_int_equal(parse(damaged[i], "dirty", tenant), -EBADMSG);
        assert_int_equal(parse("lease sole unseen 1 slurm/1.0\n", "clean", tenant), -EBADMSG);
        assert_int_equal(parse("lease sole unseen 1 slurm/1.0\n", "dirty", tenant), 1);
        assert_string_equal(tenant, "slurm/1.0");
        assert_int_equal(parse("lease shared alive 1 slurm/1.0\nlease shared unseen 1 pod/a\n", "dirty",
                                         tenant),
                        1);
        assert_string_equal(tenant, "slurm/1.0, pod/a");
}

/* --- release --- */

static void test_a_release_by_a_stranger_changes_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        unsigned resets;
        Told told;

        book(f, "0", "slurm/1.0");
        resets = f->fake.gpus[0].resets;
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0 1", "slurm/2.0", &told), -EPERM);
        assert_string_equal(manager_error(f->manager), "GPU 0 is leased to slurm/1.0, not to slurm/2.0");
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", NULL, &told), -EPERM);
        assert_int_equal(told.times, 0);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_string_equal(fixture_file_tenant(f, 0), "slurm/1.0");
        assert_int_equal(f->fake.gpus[0].resets, resets);
        assert_int_equal(f->fake.gpus[1].resets, 0);
        assert_false(f->fake.out);
}

static void test_a_release_ends_the_lease_on_file_before_the_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        book(f, "0", "slurm/1.0");
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &told), 0);
        assert_string_equal(fixture_file_tenant(f, 0), "");
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "slurm/1.0 had it");
        assert_string_equal(fixture_gpu(f, 0)->last_tenant, "slurm/1.0");
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
}

static void test_an_empty_release_is_about_the_tenants_own_gpus(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told, again;

        book(f, "1 3", "slurm/1.0");
        book(f, "0", "slurm/2.0");
        for (size_t i = 0; i < 4; i++)
                f->fake.gpus[i].resets = 0;
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "", "slurm/1.0", &told), 0);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "", "slurm/1.0", &again), 0); /* joins */
        assert_int_equal(again.times, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(again.times, 1);
        assert_int_equal(again.outcome, OUTCOME_DONE);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(f->fake.gpus[i].resets, i % 2);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/2.0");
        assert_int_equal(fixture_release(f, "", "slurm/1.0", &told), OUTCOME_DONE); /* nothing left */
        assert_int_equal(f->fake.gpus[1].resets, 1);
}

static void test_a_repeated_release_gets_the_first_answer(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        book(f, "0", "slurm/1.0");
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_forced_release_ends_the_lease_of_another(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "admin/root", .force = true };
        Told told;

        book(f, "0", "slurm/1.0");
        fake_hold_leftover(&f->fake, 0, "python", 1860);
        assert_int_equal(fixture_request_full(f, REQUEST_RELEASE, "0", &options, &told, NULL), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_BUSY); /* nobody's process is ended for that */
        assert_int_equal(f->fake.started[VENDOR_LEFTOVERS], 0);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        fake_let_go(&f->fake, 0);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_release_that_cannot_be_written_leaves_the_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        book(f, "0 1", "slurm/1.0");
        fixture_break_state(f);
        assert_true(fixture_request(f, REQUEST_RELEASE, "0 1", "slurm/1.0", &told) < 0);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_string_equal(fixture_gpu(f, 1)->tenant, "slurm/1.0");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_false(f->fake.out);
        fixture_mend_state(f);
        assert_int_equal(fixture_release(f, "", "slurm/1.0", &told), OUTCOME_DONE);
}

static void test_a_reset_of_what_another_has_is_refused_and_the_rest_is_done(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        book(f, "0", "slurm/1.0");
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_reset(f, "0 1", NULL, &told), OUTCOME_LEASED);
        assert_string_equal(told.message, "GPU 0 is leased to slurm/1.0");
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN);
        assert_int_equal(fixture_reset(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_string_equal(fixture_gpu(f, 0)->last_tenant, "");
}

static void test_a_reset_for_the_leaseholder_leaves_it_the_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        book(f, "0", "slurm/1.0");
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_string_equal(fixture_gpu(f, 0)->reason, "leased to slurm/1.0");
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
}

static void test_a_release_does_not_join_the_reset_that_the_tenant_had_under_its_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told reset, release, again;

        book(f, "0", "slurm/1.0");
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", "slurm/1.0", &reset), 0);
        fixture_answer(f); /* it is out */
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &release), 0);
        /* that is the one that this joins */
        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &again), 0);
        fixture_run_until_told(f, &reset);
        assert_int_equal(release.times, 0);
        assert_int_equal(again.times, 0);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        fixture_run_until_told(f, &release);
        assert_int_equal(again.times, 1);
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_release_while_resets_are_off_ends_the_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.reset = false;
        book(f, "0", "slurm/1.0");
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_true(told.skipped);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(f->fake.gpus[0].resets, 0);
}

/* --- sharing --- */

static void test_a_shared_gpu_is_reset_with_its_last_tenant(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.shared = SHARED_COUNT;
        assert_int_equal(fixture_share(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_share(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        assert_string_equal(fixture_file_tenant(f, 0), "slurm/1.0, slurm/2.0");
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_RESET], 1); /* the one before the first booking */
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/2.0");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        fake_let_go(&f->fake, 0);
        assert_int_equal(fixture_release(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_shared_gpu_is_not_reset_for_one_of_its_tenants(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.shared = SHARED_COUNT;
        assert_int_equal(fixture_share(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_share(f, "0", "slurm/2.0", &told), OUTCOME_DONE);
        f->fake.gpus[0].resets = 0;
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_LEASED);
        assert_string_equal(told.message, "GPU 0 is leased to slurm/1.0, slurm/2.0");
        assert_int_equal(f->fake.gpus[0].resets, 0);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0, slurm/2.0");
}

static void test_a_shared_gpu_is_not_given_to_one_who_wants_it_alone(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->config->handover.shared = SHARED_COUNT;
        assert_int_equal(fixture_share(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        book(f, "0", "slurm/2.0");
        assert_int_equal(fixture_share(f, "0", "slurm/1.0", &told), OUTCOME_LEASED);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/2.0");
}

static void test_sharing_is_refused_where_the_site_does_not_count(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        RequestOptions options = { .tenant = "slurm/1.0", .shared = true };
        Told told;

        assert_int_equal(fixture_request_full(f, REQUEST_ACQUIRE, "0", &options, &told, NULL), -ENOTSUP);
        assert_contains(manager_error(f->manager), "handover.shared: count");
        assert_string_equal(fixture_gpu(f, 0)->tenant, "");
        assert_false(f->fake.out);
}

/* A clock that is set, or a battery that is empty: years back, to the beginning, far ahead. */
static void test_the_time_of_day_decides_nothing(void **state) {
        static const usec_t jumps[] = { 1700000000 * USEC_PER_SEC, 1500000000 * USEC_PER_SEC, 0,
                4000000000 * USEC_PER_SEC };
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++)
                for (size_t j = 0; j < sizeof jumps / sizeof jumps[0]; j++) {
                        unsigned before;

                        f->now.realtime_usec = jumps[i];
                        book(f, "0", "slurm/1.0");
                        before = f->fake.gpus[0].resets;
                        f->now.realtime_usec = jumps[j];
                        fixture_crash(f);
                        fixture_run_for(f, USEC_PER_SEC);
                        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
                        assert_int_equal(fixture_acquire(f, "0", "slurm/2.0", &told), OUTCOME_LEASED);

                        assert_int_equal(fixture_request(f, REQUEST_RELEASE, "0", "slurm/1.0", &told), 0);
                        f->now.realtime_usec = jumps[i];
                        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
                        fixture_run_until_told(f, &told);
                        assert_int_equal(told.outcome, OUTCOME_DONE);
                        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
                        assert_int_equal(f->fake.gpus[0].resets, before + 1);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_lease_that_is_not_shared_has_one_tenant),
                cmocka_unit_test(test_a_shared_lease_counts_its_tenants),
                cmocka_unit_test(test_a_lease_text_that_fits_nobody_counts_them),
                cmocka_unit_test(test_leases_outlive_the_agent),
                cmocka_unit_test(test_a_damaged_lease_makes_the_whole_file_nothing),
                cmocka_unit_test(test_a_release_by_a_stranger_changes_nothing),
                cmocka_unit_test(test_a_release_ends_the_lease_on_file_before_the_reset),
                cmocka_unit_test(test_an_empty_release_is_about_the_tenants_own_gpus),
                cmocka_unit_test(test_a_repeated_release_gets_the_first_answer),
                cmocka_unit_test(test_a_forced_release_ends_the_lease_of_another),
                cmocka_unit_test(test_a_release_that_cannot_be_written_leaves_the_lease),
                cmocka_unit_test(test_a_reset_of_what_another_has_is_refused_and_the_rest_is_done),
                cmocka_unit_test(test_a_reset_for_the_leaseholder_leaves_it_the_lease),
                cmocka_unit_test(test_a_release_does_not_join_the_reset_that_the_tenant_had_under_its_lease),
                cmocka_unit_test(test_a_release_while_resets_are_off_ends_the_lease),
                cmocka_unit_test(test_a_shared_gpu_is_reset_with_its_last_tenant),
                cmocka_unit_test(test_a_shared_gpu_is_not_reset_for_one_of_its_tenants),
                cmocka_unit_test(test_a_shared_gpu_is_not_given_to_one_who_wants_it_alone),
                cmocka_unit_test(test_sharing_is_refused_where_the_site_does_not_count),
                cmocka_unit_test(test_the_time_of_day_decides_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
