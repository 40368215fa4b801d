/* SPDX-License-Identifier: MIT */
/* Partitions: what SetPartition and fabric.query say, which of them counts, and that a reset is judged by
 * it. */
#include "tests/unit/fixture.h"

#include "agent/base/text.h"

/* SetPartition for GPUs named as "0 2". 0 · negative. */
static int set_clique(Fixture *f, const char *ids, uint32_t id, const char *name, uint32_t clique) {
        CLEANUP(strv_free_ptr) char **list = NULL;
        CLEANUP(free_ptr) char *copy = strdup(ids);
        GpuPartition partition = { .id = id, .clique = clique };
        char *rest = copy;

        assert_non_null(copy);
        for (char *item; *ids && (item = strsep(&rest, " "));)
                assert_int_equal(strv_append(&list, item), 0);
        (void) snprintf(partition.name, sizeof partition.name, "%s", name);
        return manager_set_partition(f->manager, list, NULL, &partition, f->now);
}

static int set(Fixture *f, const char *ids, uint32_t id, const char *name) {
        return set_clique(f, ids, id, name, UNKNOWN_U32);
}

static uint32_t partition_of(const Fixture *f, size_t i) {
        return fixture_gpu(f, i)->sample.partition;
}

/* The fabric moves the GPU, and a look finds that. UNKNOWN_U32: nobody tells any more. */
static void fabric_moves(Fixture *f, size_t i, uint32_t partition) {
        Told told;

        f->fake.gpus[i].sample.partition = partition;
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
}

static void test_the_partition_is_expected_after_the_next_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(set(f, "0", 7, "tray2"), 0);
        assert_int_equal(partition_of(f, 0), 7);
        assert_string_equal(fixture_gpu(f, 0)->sample.partition_name, "tray2");
        assert_int_equal(partition_of(f, 1), UNKNOWN_U32);
        assert_true(gpu_reset_pending(fixture_gpu(f, 0)));
        assert_int_equal(manager_resets_pending(f->manager), 1);

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_string_equal(told.message,
                        "GPU 0 is not clean after its reset: is in clique 1, clique 7 is expected");
        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_false(gpu_reset_pending(fixture_gpu(f, 0)));
}

static void test_each_partition_has_its_clique(void **state) {
        static const struct {
                uint32_t id, option, clique;
        } cases[] = {
                { 0, UNKNOWN_U32, 0 },
                { 1, UNKNOWN_U32, 1 },
                { 32765, UNKNOWN_U32, 32765 },
                { 32766, UNKNOWN_U32, UNKNOWN_U32 }, /* any */
                { 7, 40, 40 },
                { 32766, 3, 3 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
                uint32_t expected = UNKNOWN_U32;

                assert_int_equal(set_clique(f, "0", cases[i].id, "", cases[i].option), 0);
                assert_int_equal(gpu_expected_clique(fixture_gpu(f, 0), &expected),
                                cases[i].clique != UNKNOWN_U32);
                assert_int_equal(expected, cases[i].clique);
        }
}

static void test_what_there_cannot_be_is_refused_and_changes_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        char long_name[65];

        memset(long_name, 'x', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        assert_int_equal(set(f, "", 7, "a"), -EINVAL);
        assert_int_equal(set(f, "0 nonsense", 7, "a"), -EINVAL);
        assert_int_equal(set(f, "0 5", 7, "a"), -ENOENT);
        assert_string_equal(manager_error(f->manager), "There is no GPU 5 on this tray");
        assert_int_equal(set(f, "0", 32767, "a"), -EINVAL);
        assert_int_equal(set(f, "0", 0, "a"), -EINVAL);
        assert_int_equal(set_clique(f, "0", 0, "", 3), -EINVAL);
        assert_int_equal(set(f, "0", 7, "a b"), -EINVAL);
        assert_int_equal(set(f, "0", 7, "a\n"), -EINVAL);
        assert_int_equal(set(f, "0", 7, "-"), -EINVAL);
        assert_int_equal(set(f, "0", 7, "\xc3\xa4"), -EINVAL);
        assert_false(partition_name_is_valid(long_name));
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(partition_of(f, i), UNKNOWN_U32);
}

static void test_of_two_who_move_a_gpu_the_second_is_refused(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        GpuPartition first = { .id = 7, .name = "mine", .clique = UNKNOWN_U32 },
                     second = { .id = 9, .name = "theirs", .clique = UNKNOWN_U32 };
        char zero[] = "0", one[] = "1", *both[] = { zero, one, NULL }, *last[] = { one, NULL };
        uint32_t nowhere[] = { UNKNOWN_U32, UNKNOWN_U32 }, mine[] = { 7, 9 };

        assert_int_equal(manager_set_partition(f->manager, last, nowhere, &first, f->now), 0);
        assert_int_equal(manager_set_partition(f->manager, both, nowhere, &second, f->now), -EBUSY);
        assert_string_equal(manager_error(f->manager), "GPU 1 is in partition 7 mine meanwhile");
        assert_int_equal(partition_of(f, 0), UNKNOWN_U32);
        assert_int_equal(partition_of(f, 1), 7);
        /* Said once more, or what the fabric told of it in between. */
        assert_int_equal(manager_set_partition(f->manager, both, nowhere, &first, f->now), 0);
        assert_int_equal(manager_set_partition(f->manager, both, mine, &first, f->now), 0);
        mine[0] = 5;
        assert_int_equal(manager_set_partition(f->manager, both, mine, &second, f->now), -EBUSY);
        assert_int_equal(partition_of(f, 0), 7);
}

static void test_what_is_not_on_file_is_not_set(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        assert_int_equal(set(f, "0", 7, "a"), 0);
        fixture_break_state(f);
        assert_true(set(f, "0 1 0", 8, "b") < 0);
        assert_int_equal(partition_of(f, 0), 7);
        assert_string_equal(fixture_gpu(f, 0)->sample.partition_name, "a");
        assert_int_equal(partition_of(f, 1), UNKNOWN_U32);
        fixture_mend_state(f);
}

static void test_a_clean_gpu_that_is_to_move_is_clean_no_more(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        assert_int_equal(set(f, "0", 7, "a"), 0);
        assert_int_equal(set(f, "1", 1, "b"), 0); /* where it is already */
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason, "is in clique 1, clique 7 is expected");
        assert_int_equal(fixture_state(f, 1), GPU_STATE_CLEAN);

        /* The gate resets it, and the tenant has it in its new partition. */
        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 2);
}

static void test_what_is_expected_of_it_may_change_before_the_reset(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
        assert_int_equal(set(f, "0", 0, ""), 0);
        assert_string_equal(fixture_gpu(f, 0)->reason, "is in clique 1, clique 0 is expected");
        assert_int_equal(set(f, "0", 7, "a"), 0);
        assert_string_equal(fixture_gpu(f, 0)->reason, "is in clique 1, clique 7 is expected");
        fixture_crash(f);
        assert_int_equal(set(f, "0", 1, "b"), 0);
        fabric_moves(f, 0, UNKNOWN_U32);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_string_equal(fixture_gpu(f, 0)->reason,
                        "is in clique 1, and was to leave it since its last reset");
        assert_int_equal(set(f, "0", 9, "c"), 0);
        assert_string_equal(fixture_gpu(f, 0)->reason, "is in clique 1, clique 9 is expected");
}

static void test_a_tenant_keeps_its_gpu_until_it_has_ended(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_acquire(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(set(f, "0", 7, "a"), 0);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_string_equal(fixture_gpu(f, 0)->tenant, "slurm/1.0");
        f->fake.gpus[0].clique_after = 7;
        assert_int_equal(fixture_release(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
}

static void test_it_outlives_the_agent(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(3);
        uint32_t expected;

        assert_int_equal(set_clique(f, "0", 7, "tray2", 40), 0);
        assert_int_equal(set(f, "1", 0, ""), 0);
        fixture_crash(f);
        assert_int_equal(partition_of(f, 0), 7);
        assert_string_equal(fixture_gpu(f, 0)->sample.partition_name, "tray2");
        assert_int_equal(gpu_expected_clique(fixture_gpu(f, 0), &expected), 1);
        assert_int_equal(expected, 40);
        assert_int_equal(partition_of(f, 1), 0);
        assert_int_equal(partition_of(f, 2), UNKNOWN_U32);
        fabric_moves(f, 0, UNKNOWN_U32);
        assert_int_equal(partition_of(f, 0), 7);
}

static void test_it_counts_until_the_fabric_moves(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        fabric_moves(f, 0, 32766);
        assert_int_equal(set(f, "0", 7, "a"), 0);
        fabric_moves(f, 0, 32766); /* where it was: a look that is older, or a fabric that is late */
        assert_int_equal(partition_of(f, 0), 7);
        fabric_moves(f, 0, 7);
        assert_int_equal(partition_of(f, 0), 7);
        fabric_moves(f, 0, 32766); /* somebody has moved it back */
        assert_int_equal(partition_of(f, 0), 32766);

        assert_int_equal(set(f, "0", 7, "a"), 0);
        fabric_moves(f, 0, 9);
        assert_int_equal(partition_of(f, 0), 9);
}

static void test_what_the_fabric_said_last_outlives_the_agent(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        fabric_moves(f, 0, 32766);
        assert_int_equal(set(f, "0", 7, "a"), 0);
        fixture_crash(f);
        fabric_moves(f, 0, 32766);
        assert_int_equal(partition_of(f, 0), 7);
        fabric_moves(f, 0, 7);
        fixture_crash(f);
        fabric_moves(f, 0, 32766);
        assert_int_equal(partition_of(f, 0), 32766);
        fixture_crash(f);
        fabric_moves(f, 0, 32766);
        assert_int_equal(partition_of(f, 0), 32766);
}

static void test_a_query_that_does_not_answer_has_moved_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);

        fabric_moves(f, 0, 7);
        fabric_moves(f, 0, UNKNOWN_U32);
        assert_int_equal(partition_of(f, 0), 7);
        assert_int_equal(set(f, "0", 8, "a"), 0);
        fabric_moves(f, 0, UNKNOWN_U32);
        assert_int_equal(partition_of(f, 0), 8);
}

static void test_a_query_that_is_asked_no_more_has_said_nothing(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);

        fabric_moves(f, 0, 7);
        fabric_moves(f, 1, 7);
        assert_int_equal(set(f, "1", 7, "a"), 0);
        manager_set_config(f->manager, f->config); /* which has no query */
        assert_int_equal(partition_of(f, 0), UNKNOWN_U32);
        assert_int_equal(partition_of(f, 1), 7);
}

static void test_what_one_leaves_open_the_other_fills_in(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        GpuSample *sample = &f->fake.gpus[0].sample;
        uint32_t expected;

        assert_int_equal(set(f, "0", 7, ""), 0);
        sample->partition_clique = 40;
        (void) strcpy(sample->partition_name, "tray2");
        fabric_moves(f, 0, 7);
        assert_string_equal(fixture_gpu(f, 0)->sample.partition_name, "tray2");
        assert_int_equal(gpu_expected_clique(fixture_gpu(f, 0), &expected), 1);
        assert_int_equal(expected, 40);
}

/* The partition changes while the reset is out; what that reset took is the old one. */
static void move_during_reset(Fixture *f, const VendorRequest *request) {
        FakeGpu *gpu = &f->fake.gpus[0];

        if (request->operation != VENDOR_RESET)
                return;
        gpu->clique_after = gpu->sample.partition;
        gpu->sample.partition = gpu->sample.partition == 8 ? 9 : 8;
}

/* The same, once. */
static void move_during_first_reset(Fixture *f, const VendorRequest *request) {
        if (f->fake.gpus[0].resets == 0)
                move_during_reset(f, request);
        else
                f->fake.gpus[0].clique_after = f->fake.gpus[0].sample.partition;
}

static void test_a_partition_that_comes_during_the_reset_costs_another(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.partition = 7;
        f->fake.on_start = move_during_first_reset;
        assert_int_equal(fixture_reset(f, "0", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(f->fake.gpus[0].resets, 2);
        assert_int_equal(fixture_gpu(f, 0)->sample.clique_id, 8);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        assert_int_equal(fixture_gpu(f, 0)->reset_count, 1);
        assert_int_equal(fixture_count(f, "started 0 slurm/1.0"), 1);
        assert_int_equal(fixture_count(f, "finished 0 slurm/1.0 done"), 1);
}

static void test_it_is_not_repeated_for_ever(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.partition = 7;
        f->fake.on_start = move_during_reset;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_int_equal(f->fake.gpus[0].resets, 9);
        assert_contains(told.message, "GPU 0 is not clean after its reset: is in clique ");
}

static void test_a_reset_that_only_failed_is_not_repeated(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        f->fake.gpus[0].sample.partition = 7;
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_NOT_CLEAN);
        assert_int_equal(f->fake.gpus[0].resets, 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_partition_is_expected_after_the_next_reset),
                cmocka_unit_test(test_each_partition_has_its_clique),
                cmocka_unit_test(test_what_there_cannot_be_is_refused_and_changes_nothing),
                cmocka_unit_test(test_of_two_who_move_a_gpu_the_second_is_refused),
                cmocka_unit_test(test_what_is_not_on_file_is_not_set),
                cmocka_unit_test(test_a_clean_gpu_that_is_to_move_is_clean_no_more),
                cmocka_unit_test(test_what_is_expected_of_it_may_change_before_the_reset),
                cmocka_unit_test(test_a_tenant_keeps_its_gpu_until_it_has_ended),
                cmocka_unit_test(test_it_outlives_the_agent),
                cmocka_unit_test(test_it_counts_until_the_fabric_moves),
                cmocka_unit_test(test_what_the_fabric_said_last_outlives_the_agent),
                cmocka_unit_test(test_a_query_that_does_not_answer_has_moved_nothing),
                cmocka_unit_test(test_a_query_that_is_asked_no_more_has_said_nothing),
                cmocka_unit_test(test_what_one_leaves_open_the_other_fills_in),
                cmocka_unit_test(test_a_partition_that_comes_during_the_reset_costs_another),
                cmocka_unit_test(test_it_is_not_repeated_for_ever),
                cmocka_unit_test(test_a_reset_that_only_failed_is_not_repeated),
        };

        return cmocka_run_group_tests_name("partition", tests, NULL, NULL);
}
