/* SPDX-License-Identifier: MIT */
/* What a clean GPU looks like, and each thing that speaks against it. */
#include "tests/unit/fixture.h"

#include "agent/core/verify.h"

/* A clean GPU that is in order, to be spoilt in one way. */
static Gpu* clean(Fixture *f) {
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        return fixture_gpu(f, 0);
}

static void unclean(Fixture *f, const char *expected) {
        char why[GPU_REASON_SIZE] = "";

        assert_int_equal(verify_gpu(fixture_gpu(f, 0), f->config, why, sizeof why), 1);
        assert_string_equal(why, expected);
}

static void test_a_clean_gpu_in_order_is_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        char why[GPU_REASON_SIZE];

        assert_int_equal(verify_gpu(clean(f), f->config, why, sizeof why), 0);
        assert_int_equal(verify_sample(fixture_gpu(f, 0), f->config, why, sizeof why), 0);
}

static void test_only_the_record_makes_a_gpu_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        unclean(f, "is unknown: not reset in this boot");
        clean(f)->record = GPU_STATE_DIRTY;
        unclean(f, "is dirty");
        fixture_gpu(f, 0)->record = GPU_STATE_QUARANTINED;
        unclean(f, "is quarantined");
}

static void test_a_holder_speaks_against_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        clean(f)->sample.n_processes = 1;
        unclean(f, "is in-use");
}

static void test_a_recovery_action_speaks_against_it(void **state) {
        static const char *const names[] = { [RECOVERY_GPU_RESET] = "gpu-reset",
                [RECOVERY_NODE_REBOOT] = "node-reboot, which a GPU reset cannot replace; reboot the tray",
                [RECOVERY_DRAIN_P2P] = "drain-p2p: the applications on its peers have to end first",
                [RECOVERY_DRAIN_AND_RESET] = "drain-and-reset",
                [RECOVERY_RECOVER_IMEX_DOMAIN] = "recover-imex-domain, which a GPU reset cannot replace; "
                                                 "restart nvidia-imex on the domain's trays",
                [RECOVERY_BUS_RESET] = "bus-reset, which a GPU reset cannot replace; reboot the tray",
                [RECOVERY_SYSTEM_REBOOT] =
                                "system-reboot, which a GPU reset cannot replace; reboot the tray",
                [8] = "8" };
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Gpu *gpu = clean(f);

        for (size_t i = RECOVERY_GPU_RESET; i < ELEMENTSOF(names); i++) {
                char expected[160];

                gpu->sample.recovery_action = (int32_t) i;
                (void) snprintf(expected, sizeof expected, "needs the recovery action %s", names[i]);
                unclean(f, expected);
        }
        gpu->sample.recovery_action = -5;
        unclean(f, "needs the recovery action -5");
}

static void test_a_driver_that_knows_no_recovery_action_does_not(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        char why[GPU_REASON_SIZE];

        clean(f)->sample.recovery_action = RECOVERY_UNKNOWN;
        assert_int_equal(verify_gpu(fixture_gpu(f, 0), f->config, why, sizeof why), 0);
}

static void test_an_error_speaks_against_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        (void) strcpy(clean(f)->sample.error, "Unknown Error");
        unclean(f, "does not answer: Unknown Error");
}

static void test_what_took_the_clean_mark_is_told_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        GpuSample sample = clean(f)->sample;

        sample.recovery_action = RECOVERY_GPU_RESET;
        assert_int_equal(gpu_set_sample(fixture_gpu(f, 0), &sample, 1), 1);
        unclean(f, "is dirty: needs the recovery action gpu-reset");
}

static void test_a_lost_gpu_is_told_once(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        clean(f)->sample.lost = true;
        unclean(f, "is lost");
}

static void test_a_clique_that_is_not_the_expected_one_speaks_against_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Gpu *gpu = clean(f);

        gpu->sample.partition = 3;
        unclean(f, "is in clique 1, clique 3 is expected");
        gpu->sample.partition_clique = 4;
        unclean(f, "is in clique 1, clique 4 is expected");
        gpu->sample.fabric_state = FABRIC_NOT_STARTED;
        unclean(f, "its fabric is not-started, clique 4 is expected");
        gpu->sample.fabric_state = 77;
        unclean(f, "its fabric is unknown, clique 4 is expected");
}

static void test_a_fabric_that_failed_gives_no_clique(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Gpu *gpu = clean(f);

        /* a degraded GPU: completed, with an error and no clique */
        gpu->sample.fabric_status = 3;
        (void) strcpy(gpu->sample.fabric_status_text, "Not Supported");
        gpu->sample.clique_id = 0;
        gpu->sample.partition = 3;
        unclean(f, "its fabric ended with 'Not Supported', clique 3 is expected");
        gpu->sample.partition = PARTITION_NONE; /* which has no clique to be in */
        assert_int_equal(verify_gpu(gpu, f->config, (char[GPU_REASON_SIZE]){}, GPU_REASON_SIZE), 0);
        gpu->sample.partition = PARTITION_DEFAULT; /* any settled clique would do; this is none */
        unclean(f, "its fabric ended with 'Not Supported', a clique is expected");
}

static void test_where_no_clique_is_expected_the_fabric_is_not_asked(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Gpu *gpu = clean(f);
        char why[GPU_REASON_SIZE];

        gpu->sample.partition = PARTITION_DEFAULT;
        assert_int_equal(verify_gpu(gpu, f->config, why, sizeof why), 0);
        gpu->sample.fabric_state = FABRIC_IN_PROGRESS;
        assert_int_equal(verify_gpu(gpu, f->config, why, sizeof why), 0);
        gpu->sample.partition = UNKNOWN_U32; /* nothing tells what the site wants */
        gpu->sample.fabric_state = FABRIC_COMPLETED;
        gpu->sample.fabric_status = 3;
        assert_int_equal(verify_gpu(gpu, f->config, why, sizeof why), 0);
}

static void test_too_few_and_too_many_nvlinks_speak_against_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Gpu *gpu = clean(f);
        char why[GPU_REASON_SIZE];

        gpu->sample.n_links_active = 2;
        assert_int_equal(verify_gpu(gpu, f->config, why, sizeof why), 0); /* any number will do */
        f->config->handover.expected_nvlinks = 18;
        unclean(f, "has 2 of the expected 18 NVLinks");
        gpu->sample.n_links_active = 18;
        assert_int_equal(verify_gpu(gpu, f->config, why, sizeof why), 0);
}

static void test_reasons_are_cut_to_any_size(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Gpu *gpu = clean(f);

        gpu->record = GPU_STATE_DIRTY;
        gpu_set_reason(gpu, "slurm/1.0 had it");
        gpu->sample.partition = 3;
        f->config->handover.expected_nvlinks = 1;
        for (size_t size = 1; size < 100; size++) {
                CLEANUP(free_ptr) char *why = malloc(size);

                assert_non_null(why);
                assert_int_equal(verify_gpu(gpu, f->config, why, size), 1);
                assert_true(strlen(why) < size);
        }
        unclean(f,
                        "is dirty: slurm/1.0 had it; is in clique 1, clique 3 is expected; has 18 of the "
                        "expected 1 NVLinks");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_clean_gpu_in_order_is_clean),
                cmocka_unit_test(test_only_the_record_makes_a_gpu_clean),
                cmocka_unit_test(test_a_holder_speaks_against_it),
                cmocka_unit_test(test_a_recovery_action_speaks_against_it),
                cmocka_unit_test(test_a_driver_that_knows_no_recovery_action_does_not),
                cmocka_unit_test(test_an_error_speaks_against_it),
                cmocka_unit_test(test_what_took_the_clean_mark_is_told_once),
                cmocka_unit_test(test_a_lost_gpu_is_told_once),
                cmocka_unit_test(test_a_clique_that_is_not_the_expected_one_speaks_against_it),
                cmocka_unit_test(test_a_fabric_that_failed_gives_no_clique),
                cmocka_unit_test(test_where_no_clique_is_expected_the_fabric_is_not_asked),
                cmocka_unit_test(test_too_few_and_too_many_nvlinks_speak_against_it),
                cmocka_unit_test(test_reasons_are_cut_to_any_size),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
