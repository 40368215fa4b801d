/* SPDX-License-Identifier: MIT */
/* What the driver asks for, by recovery action or Xid, and what cures it. */
#include "tests/unit/fixture.h"

#include <stdio.h>

#include "agent/core/recovery.h"

/* --- actions --- */

static void test_each_action_has_its_cure(void **state) {
        assert_int_equal(recovery_cure(RECOVERY_UNKNOWN), CURE_NONE);
        assert_int_equal(recovery_cure(RECOVERY_NONE), CURE_NONE);
        assert_int_equal(recovery_cure(RECOVERY_GPU_RESET), CURE_RESET);
        assert_int_equal(recovery_cure(RECOVERY_NODE_REBOOT), CURE_REBOOT);
        assert_int_equal(recovery_cure(RECOVERY_DRAIN_P2P), CURE_WAIT);
        assert_int_equal(recovery_cure(RECOVERY_DRAIN_AND_RESET), CURE_RESET);
        assert_int_equal(recovery_cure(RECOVERY_RECOVER_IMEX_DOMAIN), CURE_IMEX);
        assert_int_equal(recovery_cure(RECOVERY_BUS_RESET), CURE_REBOOT);
        assert_int_equal(recovery_cure(RECOVERY_SYSTEM_REBOOT), CURE_REBOOT);
        assert_int_equal(recovery_cure(8), CURE_NONE);
        assert_int_equal(recovery_cure(-5), CURE_NONE);
}

static void test_what_a_reset_cures_is_reset(void **state) {
        static const int32_t actions[] = { RECOVERY_GPU_RESET, RECOVERY_DRAIN_AND_RESET, 9 };

        for (size_t i = 0; i < ELEMENTSOF(actions); i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                Told told;

                f->fake.gpus[0].sample.recovery_action = actions[i];
                assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
                assert_int_equal(f->fake.gpus[0].resets, 1);
        }
}

static void test_what_needs_a_reboot_is_not_reset(void **state) {
        static const int32_t actions[] = { RECOVERY_NODE_REBOOT, RECOVERY_BUS_RESET,
                RECOVERY_SYSTEM_REBOOT };

        for (size_t i = 0; i < ELEMENTSOF(actions); i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                Told told;

                f->fake.gpus[0].sample.recovery_action = actions[i];
                assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NEEDS_REBOOT);
                assert_contains(told.message, "; reboot the tray");
                assert_int_equal(f->fake.started[VENDOR_RESET], 0);
                assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
                assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NEEDS_REBOOT);
                assert_int_equal(f->fake.started[VENDOR_RESET], 0);
        }
}

static void test_what_needs_imex_is_not_reset_and_well_once_that_is_back(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.recovery_action = RECOVERY_RECOVER_IMEX_DOMAIN;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message,
                        "GPU 0 needs the recovery action recover-imex-domain, which a GPU reset cannot "
                        "replace; "
                        "restart nvidia-imex on the domain's trays");
        assert_int_equal(f->fake.started[VENDOR_RESET], 0);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        f->fake.gpus[0].sample.recovery_action = RECOVERY_NONE;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_what_waits_for_its_peers_is_asked_again_before_a_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.recovery_action = RECOVERY_DRAIN_P2P;
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(f->fake.started[VENDOR_RESET], 0);
        assert_int_equal(told.times, 0);
        f->fake.gpus[0].sample.recovery_action = RECOVERY_GPU_RESET; /* what it comes to */
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

static void test_what_goes_on_waiting_for_its_peers_is_busy(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        usec_t start = f->now.monotonic_usec;
        Told told;

        f->fake.gpus[0].sample.recovery_action = RECOVERY_DRAIN_P2P;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_BUSY);
        assert_string_equal(told.message,
                        "GPU 0 needs the recovery action drain-p2p: the applications on its peers have to "
                        "end first");
        assert_int_equal(f->fake.started[VENDOR_RESET], 0);
        assert_true(f->now.monotonic_usec - start <= 10 * USEC_PER_SEC);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_contains(fixture_gpu(f, 0)->reason, "drain-p2p");
}

static void test_one_fault_of_all_gpus_is_said_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(4);
        Told told;

        for (size_t i = 0; i < 4; i++)
                f->fake.gpus[i].sample.recovery_action = RECOVERY_NODE_REBOOT;
        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_NEEDS_REBOOT);
        assert_string_equal(told.message,
                        "GPUs 0,1,2,3: each needs the recovery action node-reboot, which a GPU reset cannot "
                        "replace; reboot the tray");
        assert_int_equal(fixture_reset(f, "2", NULL, &told), OUTCOME_NEEDS_REBOOT);
        assert_contains(told.message, "GPU 2 needs the recovery action node-reboot");
}

static void refresh(Fixture *f) {
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
}

static void test_an_action_that_comes_up_takes_the_clean_mark_away(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        f->fake.gpus[0].sample.recovery_action = RECOVERY_DRAIN_AND_RESET;
        f->fake.gpus[1].sample.recovery_action = RECOVERY_NODE_REBOOT;
        refresh(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "needs the recovery action drain-and-reset");
        assert_int_equal(fixture_state(f, 1), GPU_STATE_QUARANTINED);
        assert_int_equal(fixture_file_state(f, 1), GPU_STATE_QUARANTINED);
        assert_int_equal(manager_quarantined(f->manager), 1);
}

/* --- Xids --- */

static void xid(Fixture *f, size_t i, uint32_t number) {
        char bus_id[GPU_BUS_ID_SIZE];

        (void) snprintf(bus_id, sizeof bus_id, "0000:%02zx:00.0", i);
        manager_set_xid(f->manager, bus_id, number, f->now);
}

static void test_an_xid_that_needs_a_reset_takes_the_clean_mark_away_at_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        unsigned probes;
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        probes = f->fake.started[VENDOR_PROBE];
        xid(f, 0, 62);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "the driver logged Xid 62, which needs a reset");
        assert_int_equal(fixture_gpu(f, 0)->last_xid, 62);
        assert_int_equal(fixture_count(f, "gpu 0 dirty: the driver logged Xid 62, which needs a reset"), 1);
        assert_true(f->fake.out); /* it looks */
        assert_int_equal(f->fake.started[VENDOR_PROBE], probes + 1);
        fixture_answer(f);
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 2);
}

static void test_an_xid_that_needs_a_reboot_quarantines(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        xid(f, 0, 79);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_QUARANTINED);
        assert_string_equal(fixture_gpu(f, 0)->reason, "the driver logged Xid 79; reboot the tray");
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message, "GPU 0 is quarantined: the driver logged Xid 79; reboot the tray");
}

static void test_an_xid_of_an_application_changes_nothing(void **state) {
        static const uint32_t xids[] = { 8, 11, 13, 25, 31, 32, 39, 43, 44, 63, 69, 92, 94, 121, 137, 1000 };
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        for (size_t i = 0; i < ELEMENTSOF(xids); i++) {
                xid(f, 0, xids[i]);
                assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
                assert_int_equal(fixture_gpu(f, 0)->last_xid, xids[i]);
                assert_false(f->fake.out);
        }
}

static void test_an_xid_whose_meaning_is_in_its_text_makes_for_a_look(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        f->fake.gpus[0].sample.recovery_action = RECOVERY_NODE_REBOOT;
        xid(f, 0, 154);
        fixture_answer(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
}

static void test_an_xid_after_the_reset_spoils_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        xid(f, 0, 95); /* what the reset is to cure */
        fixture_answer(f);
        xid(f, 0, 119); /* and what came after it */
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message,
                        "GPU 0 is not clean after its reset: the driver logged Xid 119, which needs a "
                        "reset");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_an_xid_before_the_reset_is_cured_by_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        xid(f, 0, 95);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_an_xid_of_a_leased_gpu_leaves_the_lease(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        xid(f, 0, 62);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_string_equal(fixture_gpu(f, 0)->reason, "leased to slurm/1.0");
        xid(f, 0, 79);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_QUARANTINED);
        assert_string_equal(fixture_file_tenant(f, 0), "slurm/1.0");
        fixture_run_for(f, USEC_PER_SEC);
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_action_has_its_cure),
                cmocka_unit_test(test_what_a_reset_cures_is_reset),
                cmocka_unit_test(test_what_needs_a_reboot_is_not_reset),
                cmocka_unit_test(test_what_needs_imex_is_not_reset_and_well_once_that_is_back),
                cmocka_unit_test(test_what_waits_for_its_peers_is_asked_again_before_a_reset),
                cmocka_unit_test(test_what_goes_on_waiting_for_its_peers_is_busy),
                cmocka_unit_test(test_one_fault_of_all_gpus_is_said_once),
                cmocka_unit_test(test_an_action_that_comes_up_takes_the_clean_mark_away),
                cmocka_unit_test(test_an_xid_that_needs_a_reset_takes_the_clean_mark_away_at_once),
                cmocka_unit_test(test_an_xid_that_needs_a_reboot_quarantines),
                cmocka_unit_test(test_an_xid_of_an_application_changes_nothing),
                cmocka_unit_test(test_an_xid_whose_meaning_is_in_its_text_makes_for_a_look),
                cmocka_unit_test(test_an_xid_after_the_reset_spoils_it),
                cmocka_unit_test(test_an_xid_before_the_reset_is_cured_by_it),
                cmocka_unit_test(test_an_xid_of_a_leased_gpu_leaves_the_lease),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
