/* SPDX-License-Identifier: MIT */
/* No memory, at every single allocation of the core in turn: nothing crashes, leaks, hangs or becomes clean
 * for that. */
#include "tests/unit/fixture.h"

#include <errno.h>

#include "agent/base/text.h"

void* __real_calloc(size_t n, size_t size);
void* __wrap_calloc(size_t n, size_t size);
void* __real_reallocarray(void *old, size_t n, size_t size);
void* __wrap_reallocarray(void *old, size_t n, size_t size);
void* __real_realloc(void *old, size_t size);
void* __wrap_realloc(void *old, size_t size);
char* __real_strdup(const char *s);
char* __wrap_strdup(const char *s);
FILE* __real_open_memstream(char **text, size_t *size);
FILE* __wrap_open_memstream(char **text, size_t *size);

int __wrap_fprintf(FILE *file, const char *format, ...) PRINTF_FORMAT(2, 3);

/* Which allocation of the core fails, counted from the start of a call into it: 0 none. */
static unsigned failing, allocations;
static bool counting;

static bool fails(void) {
        return counting && ++allocations == failing;
}

void* __wrap_calloc(size_t n, size_t size) {
        return fails() ? NULL : __real_calloc(n, size);
}

void* __wrap_reallocarray(void *old, size_t n, size_t size) {
        return fails() ? NULL : __real_reallocarray(old, n, size);
}

void* __wrap_realloc(void *old, size_t size) {
        return fails() ? NULL : __real_realloc(old, size);
}

char* __wrap_strdup(const char *s) {
        return fails() ? NULL : __real_strdup(s);
}

FILE* __wrap_open_memstream(char **text, size_t *size) {
        if (!fails())
                return __real_open_memstream(text, size);
        errno = ENOMEM;
        return NULL;
}

/* As into a memory stream that cannot grow; neither ferror() nor fclose() says so afterwards (glibc
 * 2.36). */
int __wrap_fprintf(FILE *file, const char *format, ...) {
        va_list arguments;
        int r;

        if (fails())
                return -1;
        va_start(arguments, format);
        r = vfprintf(file, format, arguments);
        va_end(arguments);
        return r;
}

/* What the fake allocates does not count. */
static void answer(Fixture *f) {
        Fake *fake = &f->fake;
        GpuSample samples[2] = { fake->gpus[0].sample, fake->gpus[1].sample };
        TenantSign sign = { .tenant = "slurm/1.0", .presence = TENANT_ALIVE };
        GpuReset resets[2] = {};
        VendorReply reply = { .operation = fake->operation,
                .driver_state = DRIVER_OK,
                .driver_error = "",
                .driver_version = "1",
                .complete = !fake->uuids };

        for (size_t i = 0; i < 2; i++) {
                memcpy(resets[i].uuid, samples[i].uuid, sizeof resets[i].uuid);
                resets[i].verdict = i == 1 && fake->gpus[1].n_holders > 0 ? RESET_IN_USE : RESET_DONE;
        }
        if (fake->operation == VENDOR_PROBE) {
                reply.samples = samples;
                reply.n_samples = 2;
        } else if (fake->operation == VENDOR_RESET) {
                reply.resets = resets;
                reply.n_resets = 2;
        } else if (fake->operation == VENDOR_TENANTS) {
                reply.tenants = &sign;
                reply.n_tenants = 1;
        } else {
                reply.holders = fake->gpus[1].holders;
                reply.n_holders = fake->gpus[1].n_holders;
        }
        fake->out = false;
        manager_vendor_done(f->manager, &reply, f->now);
}

static int start_quietly(const VendorRequest *request, void *userdata) {
        Fixture *f = userdata;
        bool was = counting;

        counting = false;
        f->fake.uuids = strv_free(f->fake.uuids);
        for (size_t i = 0; request->uuids && request->uuids[i]; i++)
                assert_int_equal(strv_append(&f->fake.uuids, request->uuids[i]), 0);
        f->fake.operation = request->operation;
        f->fake.out = true;
        counting = was;
        return 0;
}

static void on_end(const Request *request, void *userdata) {
        unsigned *times = userdata;

        (*times)++;
}

/* The work of a day, with everything counted; each request that was taken is told of once. */
static void a_day(Fixture *f) {
        static const RequestKind kinds[] = { REQUEST_RESET, REQUEST_VERIFY, REQUEST_PROCESSES,
                REQUEST_REFRESH, REQUEST_RELEASE, REQUEST_ACQUIRE, REQUEST_RELEASE };
        VendorOps vendor = { .start = start_quietly, .userdata = f };
        unsigned taken = 0, told = 0;
        char *ids[] = { (char[]){ "0" }, (char[]){ "1" }, NULL }, *first[] = { ids[0], NULL };
        CLEANUP(free_ptr) char *message = NULL;

        counting = true;
        if (manager_new(f->config, &vendor, f->state_path, &f->manager) < 0) {
                counting = false;
                return;
        }
        manager_tick(f->manager, f->now);
        for (size_t i = 0; i < ELEMENTSOF(kinds) + 4; i++) {
                RequestOptions options = {
                        .tenant = "slurm/1.0", .identifier = "slurm-epilog", .reason = "why"
                };

                if (i < ELEMENTSOF(kinds))
                        taken += manager_request(f->manager, kinds[i],
                                                 kinds[i] == REQUEST_ACQUIRE ? first : ids, &options, on_end,
                                                 &told, f->now, NULL) >= 0;
                if (f->fake.out)
                        answer(f);
                f->now.monotonic_usec += 20 * USEC_PER_SEC;
                manager_tick(f->manager, f->now);
        }
        (void) manager_verify_known(f->manager, ids, &message);
        for (unsigned i = 0; i < 30; i++) {
                if (f->fake.out)
                        answer(f);
                f->now.monotonic_usec += 20 * USEC_PER_SEC;
                manager_tick(f->manager, f->now);
        }
        counting = false;
        assert_int_equal(told, taken);
}

static void test_no_missing_memory_crashes_leaks_or_makes_a_gpu_clean(void **state) {
        unsigned n = 0;

        for (failing = 0; failing <= n; failing++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(2);
                size_t n_gpus;
                Gpu *const *gpus;

                fake_hold(&f->fake, 1, "python", 1860, false);
                f->manager = manager_free(f->manager);
                allocations = 0;
                a_day(f);
                n = allocations > n ? allocations : n;
                if (!f->manager)
                        continue;
                gpus = manager_gpus(f->manager, &n_gpus);
                for (size_t i = 0; i < n_gpus; i++)
                        if (streq(gpus[i]->sample.uuid, f->fake.gpus[1].sample.uuid))
                                assert_int_not_equal(
                                                gpus[i]->record, GPU_STATE_CLEAN); /* it was held all day */
        }
        assert_true(n > 50);
}

/* Verify asks for the holders; when they cannot be noted, the answer is not "none". */
static void test_holders_that_cannot_be_noted_are_not_taken_for_none(void **state) {
        for (failing = 1; failing < 8; failing++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
                Told told;

                assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
                fake_hold(&f->fake, 1, "python", 1860, false);
                assert_int_equal(fixture_request(f, REQUEST_VERIFY, "1", NULL, &told), 0);
                fixture_answer(f);
                assert_int_equal(f->fake.operation, VENDOR_HOLDERS);
                allocations = 0;
                counting = true;
                answer(f);
                counting = false;
                assert_int_equal(told.times, 1);
                assert_true(outcome_is_failure(told.outcome));
        }
}

/* A request that is refused for want of memory leaves no work behind. */
static void test_a_request_refused_without_memory_has_done_nothing(void **state) {
        int r = -ENOMEM;

        for (failing = 1; r < 0; failing++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
                RequestOptions options = { .tenant = "slurm/1.0" };
                char *ids[] = { (char[]){ "0" }, (char[]){ "1" }, NULL };

                allocations = 0;
                counting = true;
                r = manager_request(f->manager, REQUEST_RESET, ids, &options, NULL, NULL, f->now, NULL);
                counting = false;
                if (r >= 0)
                        break;
                assert_null(fixture_gpu(f, 0)->handover);
                assert_null(fixture_gpu(f, 1)->handover);
                fixture_tick(f);
                assert_false(f->fake.out);
        }
        assert_true(failing > 5);
}

/* Nor behind the resets of another that are on their way. */
static void test_a_request_refused_without_memory_leaves_the_running_ones_alone(void **state) {
        int r = -ENOMEM;

        for (failing = 1; r < 0; failing++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
                RequestOptions options = { .tenant = "slurm/2.0" };
                char *ids[] = { (char[]){ "0" }, (char[]){ "1" }, NULL };
                Told told;

                assert_int_equal(fixture_request(f, REQUEST_RESET, "", "slurm/1.0", &told), 0);
                fixture_answer(f);
                allocations = 0;
                counting = true;
                r = manager_request(f->manager, REQUEST_RESET, ids, &options, NULL, NULL, f->now, NULL);
                counting = false;
                if (r >= 0)
                        break;
                assert_null(fixture_gpu(f, 0)->next);
                assert_null(fixture_gpu(f, 1)->next);
                fixture_run_until_told(f, &told);
                assert_int_equal(told.outcome, OUTCOME_DONE);
                assert_int_equal(f->fake.started[VENDOR_RESET], 1);
        }
        assert_true(failing > 5);
}

/* A booking without the memory for it gives nothing away, and a release without it ends nothing. */
static void test_a_lease_begins_and_ends_only_with_the_memory_for_it(void **state) {
        bool booked = false, released = false;

        for (failing = 1; !booked || !released; failing++) {
                CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
                char *ids[] = { (char[]){ "0" }, (char[]){ "1" }, NULL };
                RequestOptions options = { .tenant = "slurm/1.0" };
                Told told;

                assert_int_equal(fixture_reset(f, "", NULL, &told), OUTCOME_DONE);
                assert_int_equal(fixture_request(f, REQUEST_ACQUIRE, "0 1", "slurm/1.0", &told), 0);
                allocations = 0;
                counting = true;
                answer(f);
                counting = false;
                fixture_run_until_told(f, &told);
                booked = told.outcome == OUTCOME_DONE;
                for (size_t i = 0; i < 2; i++)
                        assert_string_equal(fixture_gpu(f, i)->tenant, booked ? "slurm/1.0" : "");
                if (!booked)
                        assert_int_equal(fixture_acquire(f, "0 1", "slurm/1.0", &told), OUTCOME_DONE);

                allocations = 0;
                counting = true;
                released = manager_request(f->manager, REQUEST_RELEASE, ids, &options, NULL, NULL, f->now,
                                           NULL) >= 0;
                counting = false;
                for (size_t i = 0; i < 2; i++)
                        assert_string_equal(fixture_gpu(f, i)->tenant, released ? "" : "slurm/1.0");
        }
        assert_true(failing > 5);
}

static void test_a_state_without_the_memory_for_all_of_it_is_not_written(void **state) {
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new_probed(2);
        Inventory inventory = {};
        int r = -ENOMEM;
        Told told;

        assert_int_equal(fixture_reset(f, "", "slurm/1.0", &told), OUTCOME_DONE);
        assert_int_equal(state_read(f->state_path, &inventory, &(StateTray){}), 1);
        for (size_t i = 0; i < inventory.n; i++)
                inventory.by_index[i]->record = GPU_STATE_DIRTY;
        for (failing = 1; r < 0; failing++) {
                allocations = 0;
                counting = true;
                r = state_write(f->state_path, &inventory, &(StateTray){});
                counting = false;
                if (r < 0)
                        assert_int_equal(fixture_file_state(f, 1), GPU_STATE_CLEAN);
        }
        assert_true(failing > 8);
        assert_int_equal(fixture_file_state(f, 1), GPU_STATE_DIRTY);
        inventory_done(&inventory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_missing_memory_crashes_leaks_or_makes_a_gpu_clean),
                cmocka_unit_test(test_holders_that_cannot_be_noted_are_not_taken_for_none),
                cmocka_unit_test(test_a_request_refused_without_memory_has_done_nothing),
                cmocka_unit_test(test_a_request_refused_without_memory_leaves_the_running_ones_alone),
                cmocka_unit_test(test_a_lease_begins_and_ends_only_with_the_memory_for_it),
                cmocka_unit_test(test_a_state_without_the_memory_for_all_of_it_is_not_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
