/* SPDX-License-Identifier: MIT */
/* The look that a reset brings along: when it is the last one, and when another has to follow. */
#include "tests/unit/fixture.h"

/* A tray of one GPU that comes back from its resets with a look. */
static Fixture* tray_new(void) {
        Fixture *f = fixture_new_probed(1);

        f->fake.gpus[0].looks = true;
        f->fake.started[VENDOR_PROBE] = 0;
        return f;
}

static void test_a_good_look_ends_the_handover(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 1);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_gpu(f, 0)->sample.clique_id, 7);
}

static void test_a_fabric_that_is_not_at_rest_is_looked_at_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].settle_after = 2;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_true(f->fake.started[VENDOR_PROBE] > 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_wrong_clique_is_waited_for_and_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].sample.partition = 5;
        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_true(f->fake.started[VENDOR_PROBE] > 2);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_process_in_the_look_is_searched_for(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].sample.n_processes = 1;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_true(f->fake.started[VENDOR_HOLDERS] > 0);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_look_that_cannot_count_the_processes_has_them_searched_for(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].sample.n_processes = UNKNOWN_U32;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_HOLDERS], 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_after_checks_there_is_a_look_of_its_own(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].sample.checks = true;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_CHECKS], 1);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 2);
}

static void test_a_look_does_not_help_a_reset_that_failed(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].verdict = RESET_FAILED;
        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_RESET_FAILED);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_a_look_does_not_help_a_reset_that_was_refused(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        f->fake.gpus[0].verdict = RESET_IN_USE;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_a_look_at_another_gpu_is_none(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        GpuSample look = f->fake.gpus[1].sample;
        GpuReset reset = { .verdict = RESET_DONE };
        VendorReply reply = { .operation = VENDOR_RESET,
                .driver_state = DRIVER_OK,
                .driver_error = "",
                .driver_version = "",
                .failure = "",
                .samples = &look,
                .n_samples = 1,
                .resets = &reset,
                .n_resets = 1 };
        Told told;

        fake_uuid(0, reset.uuid);
        look.clique_id = 7;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        assert_int_equal(f->fake.operation, VENDOR_RESET);
        f->fake.out = false;
        manager_vendor_done(f->manager, &reply, f->now);

        assert_int_equal(told.times, 0);
        assert_true(f->fake.out);
        assert_int_equal(f->fake.operation, VENDOR_PROBE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_RESETTING);
        assert_int_equal(fixture_gpu(f, 1)->sample.clique_id, 1);
}

/* It may have come before the end of the reset or after it. */
static void test_an_xid_during_the_reset_calls_for_another_look(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = tray_new();
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        assert_int_equal(f->fake.operation, VENDOR_RESET);
        manager_set_xid(f->manager, fixture_gpu(f, 0)->sample.bus_id, 119, f->now);
        fixture_answer(f);
        assert_int_equal(told.times, 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.started[VENDOR_PROBE], 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_good_look_ends_the_handover),
                cmocka_unit_test(test_a_fabric_that_is_not_at_rest_is_looked_at_again),
                cmocka_unit_test(test_a_wrong_clique_is_waited_for_and_not_clean),
                cmocka_unit_test(test_a_process_in_the_look_is_searched_for),
                cmocka_unit_test(test_a_look_that_cannot_count_the_processes_has_them_searched_for),
                cmocka_unit_test(test_after_checks_there_is_a_look_of_its_own),
                cmocka_unit_test(test_a_look_does_not_help_a_reset_that_failed),
                cmocka_unit_test(test_a_look_does_not_help_a_reset_that_was_refused),
                cmocka_unit_test(test_a_look_at_another_gpu_is_none),
                cmocka_unit_test(test_an_xid_during_the_reset_calls_for_another_look),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
