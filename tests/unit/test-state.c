/* SPDX-License-Identifier: MIT */
/* The state file: what is kept, and that no damage to it makes a GPU clean. */
#include "tests/unit/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/io.h"

#define UUID_0 "GPU-5ef0a1b2-0000-4000-8000-000000000000"
#define UUID_1 "GPU-5ef0a1b2-0000-4000-8000-000000000001"

/* The file as it is written for a tray with a clean, a quarantined and an unknown GPU. To be freed. */
static char* written(Fixture **ret) {
        Fixture *f = fixture_new_probed(3);
        char *text;
        Told told;

        f->fake.gpus[1].verdict = RESET_FAILED;
        assert_int_equal(fixture_reset(f, "0 1", "slurm/1.0", &told), OUTCOME_RESET_FAILED);
        assert_int_equal(file_read(AT_FDCWD, f->state_path, STATE_SIZE_MAX, &text, NULL), 0);
        if (ret)
                *ret = f;
        else
                (void) fixture_free(f);
        return text;
}

static int parse(const char *text, Inventory *inventory) {
        CLEANUP(free_ptr) char *copy = strdup(text);

        assert_non_null(copy);
        *inventory = (Inventory){};
        return state_parse(copy, inventory, &(StateTray){});
}

static void refused(const char *text) {
        Inventory inventory;

        assert_int_equal(parse(text, &inventory), -EBADMSG);
        assert_int_equal(inventory.n, 0);
        assert_null(inventory.by_uuid);
}

static void test_what_was_written_is_read_again(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = NULL;
        CLEANUP(free_ptr) char *text = written(&f);
        const Gpu *was[3], *gpu;
        Inventory inventory;

        assert_int_equal(parse(text, &inventory), 1);
        assert_int_equal(inventory.n, 3);
        for (size_t i = 0; i < 3; i++) {
                was[i] = fixture_gpu(f, i);
                gpu = inventory.by_index[i];
                assert_string_equal(gpu->sample.uuid, was[i]->sample.uuid);
                assert_string_equal(gpu->sample.bus_id, was[i]->sample.bus_id);
                assert_string_equal(gpu->sample.name, was[i]->sample.name);
                assert_int_equal(gpu->sample.minor, was[i]->sample.minor);
                assert_int_equal(gpu->record, was[i]->record);
                assert_string_equal(gpu->reason, was[i]->reason);
                assert_string_equal(gpu->last_tenant, was[i]->last_tenant);
                assert_int_equal(gpu->reset_count, was[i]->reset_count);
                assert_int_equal(gpu->last_reset.realtime_usec, was[i]->last_reset.realtime_usec);
                assert_int_equal(gpu->last_reset.monotonic_usec, was[i]->last_reset.monotonic_usec);
                assert_int_equal(gpu->last_reset.duration_usec, was[i]->last_reset.duration_usec);
                assert_int_equal(gpu->last_reset.outcome, was[i]->last_reset.outcome);
                assert_string_equal(gpu->last_reset.detail, was[i]->last_reset.detail);
                assert_string_equal(gpu->last_reset.tenant, was[i]->last_reset.tenant);
                assert_false(gpu->probed);
        }
        inventory_done(&inventory);
}

static void test_the_file_is_for_the_agent_alone(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = NULL;
        CLEANUP(free_ptr) char *text = written(&f);
        struct stat st;

        assert_non_null(text);
        assert_int_equal(stat(f->state_path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_a_file_cut_at_any_byte_is_no_file(void **state) {
        CLEANUP(free_ptr) char *text = written(NULL);

        for (size_t size = strlen(text); size-- > 0;) {
                text[size] = '\0';
                refused(text);
        }
}

static void test_no_changed_byte_makes_another_gpu_clean(void **state) {
        CLEANUP(free_ptr) char *text = written(NULL);
        static const char others[] = "\n 0a\x7f";
        unsigned read = 0;

        for (size_t i = 0; text[i] != '\0'; i++) {
                char was = text[i];

                for (unsigned j = 0; j < 8 + sizeof others - 1;
                                j++) { /* each bit turned over, and these bytes */
                        Inventory inventory;

                        text[i] = j < 8 ? (char) (was ^ (1 << j)) : others[j - 8];
                        if (text[i] == '\0' || parse(text, &inventory) != 1)
                                continue;
                        read++;
                        for (size_t k = 1; k < 3; k++) {
                                char uuid[GPU_UUID_SIZE];
                                const Gpu *gpu;

                                fake_uuid(k, uuid);
                                gpu = inventory_by_uuid(&inventory, uuid);
                                if (gpu)
                                        assert_int_not_equal(gpu->record, GPU_STATE_CLEAN);
                        }
                        inventory_done(&inventory);
                }
                text[i] = was;
        }
        assert_true(read > 0);
}

static void test_foreign_files_are_refused(void **state) {
        static const char *const texts[] = {
                "",
                "\n",
                "end\n",
                "gpuagent-state 2\nend\n",
                "gpuagent-state 1",
                "gpuagent-state 1\n",
                "gpuagent-state 1\nend",
                "gpuagent-state 1\nend \n",
                "gpuagent-state 1\nend\n\n",
                "gpuagent-state 1\nend\ngpu " UUID_0 "\nstate clean\nend\n",
                "gpuagent-state 1\n\nend\n",
                "gpuagent-state 1\nstate clean\nend\n",
                "gpuagent-state 1\ngpu\nend\n",
                "gpuagent-state 1\ngpu 0\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\ngpu " UUID_0 "\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate lost\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate resetting\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate in-use\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate Clean\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate clean \nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate clean\r\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nstate\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nindex -1\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nindex 4294967296\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nreset-count 18446744073709551616\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nreset-result fine\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nlast-tenant ../../etc\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nreset-tenant \nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nbus-id 18:00\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nreason \x1b[31m\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nreason \xff\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nlease slurm/1.0\nend\n",
                "gpuagent-state 1\nlease sole unseen 1 slurm/1.0\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition 7\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition 7 7 7\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition 32767 7 7 a\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition -1 7 7 a\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition 7 x 7 a\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition 7 7 4294967296 a\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\npartition 7 7 7 \x7f\nend\n",
                "gpuagent-state 1\npartition 7 7 7 a\nend\n",
                "gpuagent-state 1\nmaintenance\nend\n",
                "gpuagent-state 1\nmaintenance \t\nend\n",
                "gpuagent-state 1\nquiesced no\nend\n",
                "gpuagent-state 1\nquiesced\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nquiesced yes\nend\n",
                "gpuagent-state 1\ngpu " UUID_0 "\nmaintenance now\nend\n",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                refused(texts[i]);
}

static void test_what_is_said_of_the_tray_is_read_whole_or_not_at_all(void **state) {
        char whole[] = "gpuagent-state 1\nmaintenance new fans\nquiesced yes\nend\n",
             torn[] = "gpuagent-state 1\nmaintenance new fans\nquiesced yes\nen";
        Inventory inventory = {};
        StateTray tray;

        assert_int_equal(state_parse(whole, &inventory, &tray), 1);
        assert_true(tray.maintenance);
        assert_string_equal(tray.maintenance_reason, "new fans");
        assert_true(tray.quiesced);
        assert_int_equal(state_parse(torn, &inventory, &tray), -EBADMSG);
        assert_false(tray.maintenance);
        assert_string_equal(tray.maintenance_reason, "");
        assert_false(tray.quiesced);
}

static void test_texts_longer_than_their_place_are_refused(void **state) {
        static const char *const keys[] = { "name", "reason", "reason-counts", "reset-detail",
                "last-tenant" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                char text[1024], value[600];

                memset(value, 'a', sizeof value);
                memcpy(value, "slurm/", strlen("slurm/"));
                value[sizeof value - 1] = '\0';
                (void) snprintf(text, sizeof text, "gpuagent-state 1\ngpu %s\n%s %s\nend\n", UUID_0, keys[i],
                                value);
                refused(text);
        }
}

static void test_a_gpu_without_a_state_is_unknown(void **state) {
        Inventory inventory;

        assert_int_equal(parse("gpuagent-state 1\ngpu " UUID_0 "\nend\n", &inventory), 1);
        assert_int_equal(inventory.by_index[0]->record, GPU_STATE_UNKNOWN);
        inventory_done(&inventory);
}

static void test_a_tray_without_gpus_is_a_file_too(void **state) {
        Inventory inventory;

        assert_int_equal(parse("gpuagent-state 1\nend\n", &inventory), 1);
        assert_int_equal(inventory.n, 0);
        inventory_done(&inventory);
}

static void put(const Fixture *f, const char *text, size_t size) {
        assert_int_equal(file_write_atomic(f->state_path, text, size, 0600), 0);
}

static void test_a_file_with_a_zero_byte_is_refused(void **state) {
        static const char text[] = "gpuagent-state 1\ngpu " UUID_0 "\nstate clean\nend\n\0gpu " UUID_1 "\n";
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(1);
        Inventory inventory = {};

        put(f, text, sizeof text - 1);
        assert_int_equal(state_read(f->state_path, &inventory, &(StateTray){}), -EBADMSG);
        assert_int_equal(inventory.n, 0);
}

static void test_no_file_and_what_is_no_file_are_told_apart(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(1);
        Inventory inventory = {};

        (void) unlink(f->state_path);
        assert_int_equal(state_read(f->state_path, &inventory, &(StateTray){}), 0);
        assert_int_equal(state_read(f->folder, &inventory, &(StateTray){}), -EINVAL);
        assert_int_equal(state_read("/proc/self/mem/state", &inventory, &(StateTray){}), -ENOTDIR);
        assert_int_equal(inventory.n, 0);
}

static void test_a_damaged_file_leaves_every_gpu_unknown(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = NULL;
        CLEANUP(free_ptr) char *text = written(&f);

        put(f, text, strlen(text) - 1);
        fixture_crash(f);
        fixture_tick(f);
        fixture_answer(f);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(fixture_state(f, i), GPU_STATE_UNKNOWN);
}

/* --- a state that cannot be written --- */

static void test_a_reset_is_refused_while_the_state_cannot_be_written(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_break_state(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "", "slurm/1.0", &told), -EISDIR);
        assert_contains(manager_error(f->manager), "the state cannot be written to /tmp/test-core-");
        assert_int_equal(told.times, 0);
        assert_false(f->fake.out);
        assert_null(fixture_gpu(f, 0)->handover);
        assert_int_not_equal(fixture_state(f, 0), GPU_STATE_CLEAN);
        fixture_crash(f);
        fixture_tick(f);
        fixture_answer(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_UNKNOWN);

        fixture_mend_state(f);
        assert_int_equal(fixture_reset(f, "", "slurm/1.0", &told), OUTCOME_DONE);
}

static void test_a_state_that_cannot_be_written_before_the_reset_stops_it(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_break_state(f);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_RESET_FAILED);
        assert_contains(told.message, "GPU 0 was not reset: the state cannot be written");
        assert_int_equal(f->fake.started[VENDOR_RESET], 1);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY); /* nothing was tried: no quarantine */
        assert_int_equal(manager_driver_state(f->manager), DRIVER_OK);
}

static void test_a_reset_that_cannot_be_recorded_is_not_clean(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), 0);
        fixture_answer(f);
        fixture_answer(f);
        fixture_break_state(f);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
        assert_contains(told.message,
                        "GPU 0 was reset, but is not clean on record: the state cannot be written");
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_gpu(f, 0)->reset_count, 0);
        assert_int_equal(fixture_gpu(f, 0)->last_reset.outcome, OUTCOME_NOT_CLEAN);
        assert_int_equal(fixture_count(f, "gpu 0 clean*"), 0);
        fixture_mend_state(f);
        fixture_tick(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_DIRTY);
        assert_int_equal(fixture_file_state(f, 0), GPU_STATE_DIRTY);
}

static void test_a_use_that_cannot_be_written_down_takes_the_old_file_along(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_break_state(f);
        fake_hold(&f->fake, 0, "python", 1860, true);
        assert_int_equal(fixture_request(f, REQUEST_REFRESH, "", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_IN_USE);
        assert_int_equal(access(f->state_path, F_OK), -1);
}

static void test_an_agent_that_cannot_write_its_state_does_not_trust_the_old_one(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        /* a use that was seen may be missing from it for the same reason */
        assert_int_equal(fixture_reset(f, "0", NULL, &told), OUTCOME_DONE);
        fixture_break_state(f);
        fixture_crash(f);
        assert_int_equal(fixture_state(f, 0), GPU_STATE_UNKNOWN);
}

static void test_a_folder_that_does_not_exist_refuses_resets_and_nothing_else(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(1);
        Told told;

        (void) unlink(f->state_path);
        (void) strcpy(f->state_path, "/tmp/test-core-is-not-there/state");
        fixture_crash(f);
        fixture_tick(f);
        fixture_answer(f);
        assert_int_equal(fixture_request(f, REQUEST_RESET, "0", NULL, &told), -ENOENT);
        assert_contains(manager_error(f->manager), "No such file or directory");
        assert_int_equal(fixture_request(f, REQUEST_VERIFY, "0", NULL, &told), 0);
        fixture_run_until_told(f, &told);
        assert_int_equal(told.outcome, OUTCOME_NOT_CLEAN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_was_written_is_read_again),
                cmocka_unit_test(test_the_file_is_for_the_agent_alone),
                cmocka_unit_test(test_a_file_cut_at_any_byte_is_no_file),
                cmocka_unit_test(test_no_changed_byte_makes_another_gpu_clean),
                cmocka_unit_test(test_foreign_files_are_refused),
                cmocka_unit_test(test_what_is_said_of_the_tray_is_read_whole_or_not_at_all),
                cmocka_unit_test(test_texts_longer_than_their_place_are_refused),
                cmocka_unit_test(test_a_gpu_without_a_state_is_unknown),
                cmocka_unit_test(test_a_tray_without_gpus_is_a_file_too),
                cmocka_unit_test(test_a_file_with_a_zero_byte_is_refused),
                cmocka_unit_test(test_no_file_and_what_is_no_file_are_told_apart),
                cmocka_unit_test(test_a_damaged_file_leaves_every_gpu_unknown),
                cmocka_unit_test(test_a_reset_is_refused_while_the_state_cannot_be_written),
                cmocka_unit_test(test_a_state_that_cannot_be_written_before_the_reset_stops_it),
                cmocka_unit_test(test_a_reset_that_cannot_be_recorded_is_not_clean),
                cmocka_unit_test(test_a_use_that_cannot_be_written_down_takes_the_old_file_along),
                cmocka_unit_test(test_an_agent_that_cannot_write_its_state_does_not_trust_the_old_one),
                cmocka_unit_test(test_a_folder_that_does_not_exist_refuses_resets_and_nothing_else),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
