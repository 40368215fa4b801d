/* SPDX-License-Identifier: MIT */
/* Thousands of random days: requests, drivers that fail in every way, processes that come and go, full disks
 * and crashes in any order. After each step: a GPU is clean, in memory and on file, only if it was reset
 * since a tenant had it or a process was seen; nothing is due that was just done; and in the end everybody
 * was told once. */
#include "tests/unit/fixture.h"

#include <errno.h>

#include "agent/base/text.h"
#include "agent/core/handover.h"

#define GPUS  3
#define WALKS 75
#define STEPS 250

typedef struct Walk {
        Fixture *f;
        unsigned number;
        uint64_t random;
        unsigned clock;             /* counts what happens */
        unsigned soiled_at[GPUS];   /* by a tenant, or by a process that was seen; 0 before any */
        unsigned reset_from[GPUS];  /* when the reset that is out began */
        unsigned clean_since[GPUS]; /* when the last reset that went through began */
        Told told[STEPS];
        bool taken[STEPS];
        size_t n_told;
} Walk;

/* on_start() has no room for more. */
static Walk *walk;

static unsigned random_below(unsigned n) {
        walk->random ^= walk->random << 13;
        walk->random ^= walk->random >> 7;
        walk->random ^= walk->random << 17;
        return (unsigned) (walk->random % n);
}

static bool one_in(unsigned n) {
        return random_below(n) == 0;
}

static void note_reset(Fixture *f, const VendorRequest *request) {
        walk->clock++;
        for (size_t i = 0; i < GPUS && request->operation == VENDOR_RESET; i++)
                if (strv_contains(request->uuids, f->fake.gpus[i].sample.uuid)) {
                        walk->reset_from[i] = walk->clock;
                        assert_int_not_equal(fixture_file_state(f, i), GPU_STATE_CLEAN);
                }
}

static void answer(void) {
        Fixture *f = walk->f;
        unsigned resets[GPUS];
        VendorOperation operation = f->fake.operation;

        if (!f->fake.out)
                return;
        walk->clock++;
        for (size_t i = 0; i < GPUS; i++) {
                const FakeGpu *gpu = &f->fake.gpus[i];
                bool asked = !f->fake.uuids || strv_contains(f->fake.uuids, gpu->sample.uuid);

                resets[i] = gpu->resets;
                if (f->fake.driver_state[operation] == DRIVER_OK && asked &&
                                ((operation == VENDOR_PROBE && gpu->listed && gpu->sample.n_processes > 0 &&
                                                 gpu->sample.n_processes != UNKNOWN_U32) ||
                                                (operation == VENDOR_HOLDERS && gpu->n_holders > 0)))
                        walk->soiled_at[i] = walk->clock;
        }
        fixture_answer(f);
        for (size_t i = 0; i < GPUS; i++)
                if (f->fake.gpus[i].resets > resets[i])
                        walk->clean_since[i] = walk->reset_from[i];
}

static void ask(void) {
        static const char *const tenants[] = { NULL, "slurm/1.0", "slurm/2.0", "pod/a" };
        static const char *const lists[] = { "", "0", "1", "2", "0 1", "1 2", "2 0 1", "0 7" };
        RequestKind kind = (RequestKind) random_below(_REQUEST_KIND_MAX);
        RequestOptions options = { .tenant = tenants[random_below(4)],
                .timeout_usec = one_in(3) ? random_below(40) * USEC_PER_SEC : 0 };
        const char *ids = lists[random_below(8)];
        bool joins[GPUS], clean[GPUS];
        size_t n = walk->n_told++;
        Request *request = NULL;

        walk->clock++;
        for (size_t i = 0; i < GPUS; i++) {
                char uuid[GPU_UUID_SIZE];
                const Gpu *gpu;

                fake_uuid(i, uuid);
                gpu = manager_gpu_by_uuid(walk->f->manager, uuid);
                joins[i] = gpu && gpu->handover && handover_has_begun(gpu->handover) && options.tenant &&
                                strcmp(gpu->handover->tenant, options.tenant) == 0;
                clean[i] = gpu && options.tenant && gpu_state(gpu) == GPU_STATE_CLEAN && !gpu->handover &&
                                strcmp(gpu->last_reset.tenant, options.tenant) ==
                                                0; /* a repeat changes nothing */
        }
        walk->taken[n] = fixture_request_full(walk->f, kind, ids, &options, &walk->told[n], &request) >= 0;
        for (size_t i = 0; i < GPUS && options.tenant && walk->taken[n]; i++)
                if ((kind == REQUEST_RESET || kind == REQUEST_RELEASE) && !joins[i] && !clean[i] &&
                                (strchr(ids, (int) ('0' + i)) || (ids[0] == '\0' && kind == REQUEST_RESET)))
                        walk->soiled_at[i] = walk->clock;
        if (request && one_in(8)) {
                request_abandon(request);
                walk->taken[n] = false;
        }
}

static void change_gpu(void) {
        static const int32_t actions[] = { RECOVERY_NONE, RECOVERY_NONE, RECOVERY_GPU_RESET,
                RECOVERY_NODE_REBOOT, 9 };
        size_t i = random_below(GPUS);
        FakeGpu *gpu = &walk->f->fake.gpus[i];

        switch (random_below(9)) {
        case 0: gpu->verdict = one_in(2) ? RESET_DONE : random_below(6); break;
        case 1: gpu->sample.recovery_action = actions[random_below(5)]; break;
        case 2:
                gpu->action_after = one_in(2) ? RECOVERY_NONE : actions[random_below(5)];
                gpu->action_lag = random_below(4);
                break;
        case 3: gpu->settle_after = one_in(4) ? 1000 : random_below(5); break;
        case 4: gpu->listed = !one_in(3); break;
        case 5: gpu->sample.lost = one_in(3); break;
        case 6:
                gpu->sample.partition = one_in(2) ? UNKNOWN_U32 : random_below(2) * 7;
                gpu->clique_after = one_in(3) ? 1 : 7;
                break;
        case 7:
                if (gpu->n_holders < FAKE_HOLDERS_MAX && gpu->sample.n_processes != UNKNOWN_U32)
                        fake_hold(&walk->f->fake, i, "python", (pid_t) walk->clock, one_in(2));
                break;
        default:
                fake_let_go(&walk->f->fake, i);
                if (one_in(4))
                        gpu->sample.n_processes = UNKNOWN_U32;
                gpu->sample.persistence = one_in(2);
                break;
        }
}

static void change_driver(void) {
        size_t operation = random_below(_VENDOR_OPERATION_MAX);

        walk->f->fake.driver_state[operation] =
                        one_in(3) ? (DriverState) (DRIVER_OK + random_below(4)) : DRIVER_OK;
        walk->f->fake.start_error[operation] = one_in(6) ? -ECONNREFUSED : 0;
        fixture_mend_state(walk->f);
        if (one_in(6))
                fixture_break_state(walk->f);
}

/* The callers are gone with their agent. */
static void crash(void) {
        fixture_crash(walk->f);
        for (size_t i = 0; i < walk->n_told; i++)
                walk->taken[i] = walk->taken[i] && walk->told[i].times > 0;
}

static void step(void) {
        unsigned action = random_below(20);

        if (action < 8)
                answer();
        else if (action < 11) {
                fixture_advance(walk->f, random_below(8000) * USEC_PER_MSEC);
                fixture_tick(walk->f);
        } else if (action < 14)
                ask();
        else if (action < 18)
                change_gpu();
        else if (action == 18)
                change_driver();
        else if (one_in(5))
                crash();
}

static void check(void) {
        for (size_t i = 0; i < GPUS; i++) {
                char uuid[GPU_UUID_SIZE];
                const Gpu *gpu;

                if (walk->clean_since[i] > walk->soiled_at[i])
                        continue;
                fake_uuid(i, uuid);
                gpu = manager_gpu_by_uuid(walk->f->manager, uuid);
                if ((gpu && gpu_state(gpu) == GPU_STATE_CLEAN) ||
                                fixture_file_state(walk->f, i) == GPU_STATE_CLEAN)
                        fail_msg("walk %u, event %u: GPU %zu is clean", walk->number, walk->clock, i);
        }
}

/* An hour in which nobody asks for anything. */
static void run_to_the_end(void) {
        usec_t end_usec = walk->f->now.monotonic_usec + 3600 * USEC_PER_SEC, next;

        for (;;) {
                if (walk->f->fake.out) {
                        answer();
                        continue;
                }
                next = manager_next_elapse(walk->f->manager);
                if (next > end_usec)
                        return;
                if (next > walk->f->now.monotonic_usec)
                        fixture_advance(walk->f, next - walk->f->now.monotonic_usec);
                fixture_tick(walk->f);
        }
}

static void go(unsigned number) {
        Walk this = { .number = number, .random = number * 0x9e3779b97f4a7c15 | 1 };
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(GPUS);

        walk = &this;
        this.f = f;
        f->fake.on_start = note_reset;
        for (unsigned i = 0; i < STEPS; i++) {
                step();
                check();
        }
        run_to_the_end();
        check();
        for (size_t i = 0; i < this.n_told; i++) {
                if (this.told[i].times > 1)
                        fail_msg("walk %u: request %zu was told %u times", number, i, this.told[i].times);
                if (this.taken[i] && this.told[i].times == 0)
                        fail_msg("walk %u: request %zu was not told", number, i);
        }
}

static void test_whatever_happens_no_used_gpu_is_clean_and_everybody_is_told(void **state) {
        for (unsigned number = 1; number <= WALKS; number++)
                go(number);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whatever_happens_no_used_gpu_is_clean_and_everybody_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
