/* SPDX-License-Identifier: MIT */
/* One GPU: which state is published, its health, and what a probe or a search changes about it. */
#include "tests/unit/fixture.h"

#define NOON ((usec_t) 1700000000 * USEC_PER_SEC)

static Gpu* gpu_make(GpuState record) {
        char uuid[GPU_UUID_SIZE];
        GpuSample sample;
        Gpu *gpu;

        fake_uuid(0, uuid);
        assert_int_equal(gpu_new(uuid, &gpu), 0);
        sample = gpu->sample;
        sample.index = sample.minor = 0;
        sample.n_processes = 0;
        sample.recovery_action = RECOVERY_NONE;
        sample.fabric_state = FABRIC_COMPLETED;
        sample.fabric_health = FABRIC_HEALTH_HEALTHY;
        sample.clique_id = 1;
        (void) gpu_set_sample(gpu, &sample, NOON);
        gpu->record = record;
        gpu->changes = 0;
        return gpu;
}

DEFINE_CLEANUP(Gpu, gpu_free_ptr, gpu_free)

static void test_a_new_gpu_is_unknown(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = NULL;

        assert_int_equal(gpu_new("GPU-5ef0a1b2-0000-4000-8000-000000000000", &gpu), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_UNKNOWN);
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_UNKNOWN);
        assert_false(gpu_reset_pending(gpu));
        assert_int_equal(gpu->sample.index, UNKNOWN_U32);
}

static void test_every_state_and_health_has_its_name(void **state) {
        for (int i = 0; i < _GPU_STATE_MAX; i++)
                assert_int_equal(gpu_state_from_string(gpu_state_to_string((GpuState) i)), i);
        for (int i = 0; i < _GPU_HEALTH_MAX; i++)
                assert_non_null(gpu_health_to_string((GpuHealth) i));
        assert_int_equal(gpu_state_from_string("held"), _GPU_STATE_INVALID);
        assert_null(gpu_state_to_string(_GPU_STATE_MAX));
        assert_null(gpu_state_to_string(_GPU_STATE_INVALID));
        assert_null(gpu_health_to_string(_GPU_HEALTH_INVALID));
}

static void test_every_outcome_has_its_name(void **state) {
        for (int i = 0; i < _OUTCOME_MAX; i++)
                assert_int_equal(outcome_from_string(outcome_to_string((Outcome) i)), i);
        assert_int_equal(outcome_from_string("fine"), _OUTCOME_INVALID);
        assert_null(outcome_to_string(_OUTCOME_MAX));
        assert_null(outcome_to_string(_OUTCOME_INVALID));
}

static void test_a_quarantine_hides_holders_and_a_loss_hides_a_quarantine(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_QUARANTINED);
        GpuSample sample = gpu->sample;

        sample.n_processes = 1;
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_QUARANTINED);
        assert_int_equal(gpu_set_missing(gpu, NOON), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_LOST);
        assert_int_equal(gpu->record, GPU_STATE_QUARANTINED);
}

static void test_a_holder_takes_the_clean_mark_away_for_good(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        const GpuHolder holder = { .pid = 7, .user = "joe", .command = "nvtop" };

        assert_int_equal(gpu_set_holders(gpu, &holder, 1, NOON + 1), 1);
        assert_int_equal(gpu_state(gpu), GPU_STATE_IN_USE);
        assert_int_equal(gpu->record, GPU_STATE_DIRTY);
        assert_string_equal(gpu->reason, "held by nvtop (pid 7, user joe)");
        assert_string_equal(gpu->reason_counts, "held by 1 process");
        assert_int_equal(gpu->state_since_realtime_usec, NOON + 1);
        assert_true(gpu->changes & GPU_CHANGE_STATE);

        assert_int_equal(gpu_set_holders(gpu, NULL, 0, NOON + 2), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_DIRTY);
        assert_string_equal(gpu->reason, "was held by a process since its last reset");
        assert_string_equal(gpu->reason_counts, gpu->reason);
}

static void test_an_empty_list_of_processes_ends_what_a_search_found(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        const GpuHolder holder = { .pid = 7, .user = "joe", .command = "nvtop" };
        GpuSample sample = gpu->sample;

        assert_int_equal(gpu_set_holders(gpu, &holder, 1, NOON), 1);
        sample.n_processes = UNKNOWN_U32; /* which says nothing */
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_IN_USE);
        sample.n_processes = 0;
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 0);
        assert_int_equal(gpu->n_holders, 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_DIRTY);
}

static void test_changes_add_up_until_they_are_told(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample;

        sample.minor = 5;
        sample.clique_id = 2;
        sample.reset_required = true;
        sample.n_links = 18;
        sample.n_processes = 1;
        (void) gpu_set_sample(gpu, &sample, NOON);
        assert_int_equal(gpu->changes,
                        GPU_CHANGE_IDENTITY | GPU_CHANGE_FABRIC | GPU_CHANGE_HEALTH | GPU_CHANGE_LINKS |
                                        GPU_CHANGE_STATE);
        gpu->changes = GPU_CHANGE_XID;
        sample.links[0].active = true;
        (void) gpu_set_sample(gpu, &sample, NOON);
        (void) gpu_set_missing(gpu, NOON);
        assert_int_equal(gpu->changes,
                        GPU_CHANGE_XID | GPU_CHANGE_FABRIC | GPU_CHANGE_LINKS | GPU_CHANGE_HEALTH |
                                        GPU_CHANGE_STATE);
}

static void test_a_gpu_that_is_gone_says_so_whatever_its_last_error(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);
        GpuSample sample = gpu->sample;

        (void) strcpy(sample.error, "Unknown Error");
        (void) gpu_set_sample(gpu, &sample, NOON);
        (void) gpu_set_missing(gpu, NOON);
        assert_string_equal(gpu->reason, "gone from the driver's list");
}

static void test_an_unknown_number_of_processes_is_no_use_and_no_proof(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample;

        sample.n_processes = UNKNOWN_U32;
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_CLEAN);
}

static void test_a_lost_gpu_is_not_clean_when_it_comes_back(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample, lost = gpu->sample;

        lost.lost = true;
        (void) strcpy(lost.error, "GPU is lost");
        assert_int_equal(gpu_set_sample(gpu, &lost, NOON), 1);
        assert_int_equal(gpu_state(gpu), GPU_STATE_LOST);
        assert_string_equal(gpu->reason, "the driver cannot reach it any more");
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 0);
        assert_int_equal(gpu_state(gpu), GPU_STATE_DIRTY);
}

static void test_a_gpu_that_is_missing_again_changes_nothing(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);

        assert_int_equal(gpu_set_missing(gpu, NOON), 1);
        gpu->changes = 0;
        assert_int_equal(gpu_set_missing(gpu, NOON), 0);
        assert_int_equal(gpu->changes, 0);
}

static void test_a_gpu_that_is_gone_has_no_clique_and_asks_for_no_reset(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample;

        (void) strcpy(sample.cluster_uuid, "7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91");
        sample.recovery_action = RECOVERY_GPU_RESET;
        sample.n_links = sample.n_links_active = 18;
        sample.partition = PARTITION_DEFAULT;
        (void) gpu_set_sample(gpu, &sample, NOON);
        assert_true(gpu_sample_has_clique(&gpu->sample));
        assert_true(gpu_reset_pending(gpu));
        gpu->changes = 0;

        (void) gpu_set_missing(gpu, NOON);
        assert_false(gpu_sample_has_clique(&gpu->sample));
        assert_false(gpu_reset_pending(gpu));
        assert_int_equal(gpu->sample.n_links, 0);
        assert_int_equal(gpu->sample.memory_used, UNKNOWN_U64);
        assert_int_equal(gpu->sample.partition, PARTITION_DEFAULT);
        assert_int_equal(gpu->sample.index, 0);
        assert_true(gpu->changes & GPU_CHANGE_FABRIC && gpu->changes & GPU_CHANGE_LINKS);
}

/* Name and serial number are published as constant. */
static void test_a_gpu_stays_who_it_is_when_it_no_longer_says_so(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample, lost;

        (void) strcpy(sample.name, "NVIDIA GB200");
        (void) strcpy(sample.serial, "1656516554734");
        (void) gpu_set_sample(gpu, &sample, NOON);

        gpu_sample_init(&lost);
        memcpy(lost.uuid, sample.uuid, sizeof lost.uuid);
        lost.lost = true;
        (void) strcpy(lost.error, "GPU is lost");
        (void) gpu_set_sample(gpu, &lost, NOON);
        assert_string_equal(gpu->sample.name, "NVIDIA GB200");
        assert_string_equal(gpu->sample.serial, "1656516554734");

        (void) gpu_set_missing(gpu, NOON);
        assert_string_equal(gpu->sample.name, "NVIDIA GB200");
        assert_string_equal(gpu->sample.serial, "1656516554734");
}

static void test_the_same_sample_again_changes_nothing(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);
        GpuSample sample = gpu->sample;

        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 0);
        assert_int_equal(gpu->changes, 0);
}

static void test_load_and_temperature_are_no_changes(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);
        GpuSample sample = gpu->sample;

        sample.utilization = 50;
        sample.power_mw = 700000;
        sample.temperature = 60;
        sample.memory_used = 1;
        (void) gpu_set_sample(gpu, &sample, NOON);
        assert_int_equal(gpu->changes, 0);
        assert_int_equal(gpu->sample.utilization, 50);
}

static void test_clique_and_cluster_change_together(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);
        GpuSample sample = gpu->sample;

        sample.clique_id = 2;
        (void) gpu_set_sample(gpu, &sample, NOON);
        assert_true(gpu->changes & GPU_CHANGE_FABRIC);
        assert_false(gpu->changes & GPU_CHANGE_STATE);
}

static void test_the_expected_clique_follows_the_partition(void **state) {
        static const struct {
                uint32_t partition, partition_clique;
                int known;
                uint32_t clique;
        } cases[] = {
                { UNKNOWN_U32, UNKNOWN_U32, 0, 0 },
                { PARTITION_NONE, UNKNOWN_U32, 1, 0 },
                { 1, UNKNOWN_U32, 1, 1 },
                { PARTITION_USER_MAX, UNKNOWN_U32, 1, PARTITION_USER_MAX },
                { PARTITION_DEFAULT, UNKNOWN_U32, 0, 0 },
                { PARTITION_DEFAULT, 1, 1, 1 },
                { 7, 9, 1, 9 },
        };
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint32_t clique = 0;

                gpu->sample.partition = cases[i].partition;
                gpu->sample.partition_clique = cases[i].partition_clique;
                assert_int_equal(gpu_expected_clique(gpu, &clique), cases[i].known);
                assert_int_equal(clique, cases[i].clique);
        }
}

static void test_a_reset_is_pending_by_the_driver_or_by_the_clique(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);

        assert_false(gpu_reset_pending(gpu));
        gpu->sample.recovery_action = RECOVERY_GPU_RESET;
        assert_true(gpu_reset_pending(gpu));
        gpu->sample.recovery_action = RECOVERY_DRAIN_AND_RESET;
        assert_true(gpu_reset_pending(gpu));
        gpu->sample.recovery_action = RECOVERY_NODE_REBOOT;
        assert_false(gpu_reset_pending(gpu));
        gpu->sample.recovery_action = RECOVERY_NONE;
        gpu->sample.reset_required = true;
        assert_true(gpu_reset_pending(gpu));
        gpu->sample.reset_required = false;
        gpu->sample.partition = 2;
        assert_true(gpu_reset_pending(gpu));
        gpu->sample.fabric_state = FABRIC_IN_PROGRESS; /* may come right by itself */
        assert_false(gpu_reset_pending(gpu));
}

static void test_an_unknown_recovery_action_takes_the_clean_mark_away(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample;

        sample.recovery_action = 9;
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 1);
        assert_int_equal(gpu_state(gpu), GPU_STATE_DIRTY);
        assert_string_equal(gpu->reason, "needs the recovery action 9");
}

static void test_health_tells_what_a_reset_cures_from_what_it_does_not(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);
        GpuSample *sample = &gpu->sample;

        assert_int_equal(gpu_health(gpu), GPU_HEALTH_HEALTHY);
        sample->recovery_action = RECOVERY_GPU_RESET;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_HEALTHY);
        sample->recovery_action = RECOVERY_DRAIN_AND_RESET;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_DEGRADED);
        sample->recovery_action = 9;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_UNHEALTHY);
        sample->recovery_action = RECOVERY_UNKNOWN;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_HEALTHY);
        sample->n_links = 18;
        sample->n_links_active = 17;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_DEGRADED);
        sample->fabric_health = FABRIC_HEALTH_UNHEALTHY;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_UNHEALTHY);
        sample->fabric_health = FABRIC_HEALTH_HEALTHY;
        sample->n_links_active = 18;
        sample->lost = true;
        assert_int_equal(gpu_health(gpu), GPU_HEALTH_UNHEALTHY);
}

static void test_a_reason_is_cut_to_its_size(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);

        gpu_set_reason(gpu, "%0600d", 7);
        assert_int_equal(strlen(gpu->reason), GPU_REASON_SIZE - 1);
        gpu->changes = 0;
        gpu_set_reason(gpu, "%0600d", 7);
        assert_int_equal(gpu->changes, 0);
}

static void test_the_longest_names_of_holders_fit_into_any_size(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_DIRTY);
        GpuHolder holders[6];

        memset(holders, 'x', sizeof holders);
        for (size_t i = 0; i < ELEMENTSOF(holders); i++) {
                holders[i].user[sizeof holders[i].user - 1] = '\0';
                holders[i].command[sizeof holders[i].command - 1] = '\0';
                holders[i].where[sizeof holders[i].where - 1] = '\0';
        }
        (void) gpu_set_holders(gpu, holders, ELEMENTSOF(holders), NOON);
        for (size_t size = 1; size <= GPU_REASON_SIZE; size++) {
                CLEANUP(free_ptr) char *text = malloc(size), *counts = malloc(size);

                assert_true(text && counts);
                gpu_format_holders(gpu, text, size, counts, size);
                assert_true(strlen(text) < size && strlen(counts) < size);
        }
        assert_string_equal(gpu->reason_counts, "held by 6 processes");
        assert_contains(gpu->reason, ") and 4 more");
}

static void test_holders_that_only_nvml_counts_are_counted(void **state) {
        CLEANUP(gpu_free_ptr) Gpu *gpu = gpu_make(GPU_STATE_CLEAN);
        GpuSample sample = gpu->sample;

        sample.n_processes = 3;
        assert_int_equal(gpu_set_sample(gpu, &sample, NOON), 1);
        assert_string_equal(gpu->reason, "held by 3 processes");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_new_gpu_is_unknown),
                cmocka_unit_test(test_every_state_and_health_has_its_name),
                cmocka_unit_test(test_every_outcome_has_its_name),
                cmocka_unit_test(test_a_quarantine_hides_holders_and_a_loss_hides_a_quarantine),
                cmocka_unit_test(test_a_holder_takes_the_clean_mark_away_for_good),
                cmocka_unit_test(test_an_empty_list_of_processes_ends_what_a_search_found),
                cmocka_unit_test(test_changes_add_up_until_they_are_told),
                cmocka_unit_test(test_a_gpu_that_is_gone_says_so_whatever_its_last_error),
                cmocka_unit_test(test_an_unknown_number_of_processes_is_no_use_and_no_proof),
                cmocka_unit_test(test_a_lost_gpu_is_not_clean_when_it_comes_back),
                cmocka_unit_test(test_a_gpu_that_is_missing_again_changes_nothing),
                cmocka_unit_test(test_a_gpu_that_is_gone_has_no_clique_and_asks_for_no_reset),
                cmocka_unit_test(test_a_gpu_stays_who_it_is_when_it_no_longer_says_so),
                cmocka_unit_test(test_the_same_sample_again_changes_nothing),
                cmocka_unit_test(test_load_and_temperature_are_no_changes),
                cmocka_unit_test(test_clique_and_cluster_change_together),
                cmocka_unit_test(test_the_expected_clique_follows_the_partition),
                cmocka_unit_test(test_a_reset_is_pending_by_the_driver_or_by_the_clique),
                cmocka_unit_test(test_an_unknown_recovery_action_takes_the_clean_mark_away),
                cmocka_unit_test(test_health_tells_what_a_reset_cures_from_what_it_does_not),
                cmocka_unit_test(test_a_reason_is_cut_to_its_size),
                cmocka_unit_test(test_the_longest_names_of_holders_fit_into_any_size),
                cmocka_unit_test(test_holders_that_only_nvml_counts_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
