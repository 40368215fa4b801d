/* SPDX-License-Identifier: MIT */
/* Thousands of random days: requests, drivers that fail in every way, processes and tenants that come and
 * go, Xids, maintenance, full disks and crashes in any order. After each step: a GPU is clean, in memory
 * and on file, only if it was reset since a tenant had it or a process was seen, and was given to a tenant
 * only so; who has it is on file, and is one tenant unless it is shared; nothing is due that was just
 * done; and in the end everybody was told once. */
#include "tests/unit/fixture.h"

#include <errno.h>

#include <unistd.h>

#include "agent/base/text.h"
#include "agent/core/handover.h"
#include "agent/core/recovery.h"

#define GPUS  3
#define WALKS 75
#define STEPS 250

typedef struct Walk {
        Fixture *f;
        unsigned number;
        uint64_t random;
        unsigned clock;                     /* counts what happens */
        unsigned soiled_at[GPUS];           /* by a tenant, or by a process that was seen; 0 before any */
        unsigned reset_from[GPUS];          /* when the reset that is out began */
        unsigned clean_since[GPUS];         /* when the last reset that went through began */
        char had_by[GPUS][GPU_TENANT_SIZE]; /* at the last check */
        Told told[STEPS];
        bool taken[STEPS];
        size_t n_told;
        unsigned booked;
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
        for (size_t i = 0; i < GPUS; i++) {
                const FakeGpu *gpu = &f->fake.gpus[i];

                if (gpu->resets > resets[i]) {
                        walk->clean_since[i] = walk->reset_from[i];
                        if (gpu->looks && gpu->sample.n_processes > 0 &&
                                        gpu->sample.n_processes != UNKNOWN_U32)
                                walk->soiled_at[i] = walk->clock;
                } else if (operation == VENDOR_LEFTOVERS && gpu->n_holders > 0 &&
                                strv_contains(f->fake.uuids, gpu->sample.uuid))
                        walk->soiled_at[i] = walk->clock;
        }
}

static void ask(void) {
        static const char *const tenants[] = { NULL, "slurm/1.0", "slurm/2.0", "pod/a" };
        static const char *const lists[] = { "", "0", "1", "2", "0 1", "1 2", "2 0 1", "0 7" };
        RequestKind kind = one_in(3) ? REQUEST_ACQUIRE : (RequestKind) random_below(_REQUEST_KIND_MAX);
        RequestOptions options = { .tenant = tenants[random_below(4)],
                .timeout_usec = one_in(3) ? random_below(40) * USEC_PER_SEC : 0,
                .shared = one_in(3),
                .force = one_in(12),
                .checks = one_in(2) };
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

/* A process of nobody, one that its tenant left behind, or monitoring. */
static void hold(size_t i) {
        switch (random_below(3)) {
        case 0: fake_hold(&walk->f->fake, i, "python", (pid_t) walk->clock, one_in(2)); break;
        case 1: fake_hold_leftover(&walk->f->fake, i, "python", (pid_t) walk->clock); break;
        default: fake_hold_monitor(&walk->f->fake, i, "nv-hostengine", (pid_t) walk->clock); break;
        }
}

/* What the driver logs while the reset is out is cured by it. */
static void log_xid(size_t i) {
        static const uint32_t xids[] = { 13, 62, 79, 119, 154 };
        uint32_t xid = xids[random_below(5)];
        Fixture *f = walk->f;

        if (xid_cure(xid) != CURE_NONE && !(f->fake.out && f->fake.operation == VENDOR_RESET) &&
                        manager_gpu_by_uuid(f->manager, f->fake.gpus[i].sample.uuid))
                walk->soiled_at[i] = ++walk->clock;
        manager_set_xid(f->manager, f->fake.gpus[i].sample.bus_id, xid, f->now);
}

static void change_gpu(void) {
        static const int32_t actions[] = { RECOVERY_NONE, RECOVERY_NONE, RECOVERY_GPU_RESET,
                RECOVERY_NODE_REBOOT, 9 };
        size_t i = random_below(GPUS);
        FakeGpu *gpu = &walk->f->fake.gpus[i];

        switch (random_below(11)) {
        case 0: gpu->verdict = one_in(2) ? RESET_DONE : random_below(6); break;
        case 1: gpu->sample.recovery_action = actions[random_below(5)]; break;
        case 2:
                gpu->action_after = one_in(2) ? RECOVERY_NONE : actions[random_below(5)];
                gpu->action_lag = random_below(4);
                break;
        case 3:
                gpu->settle_after = one_in(4) ? 1000 : random_below(5);
                gpu->looks = one_in(2);
                break;
        case 4: gpu->listed = !one_in(3); break;
        case 5: gpu->sample.lost = one_in(3); break;
        case 6:
                gpu->sample.partition = one_in(2) ? UNKNOWN_U32 : random_below(2) * 7;
                gpu->clique_after = one_in(3) ? 1 : 7;
                break;
        case 7:
                if (gpu->n_holders < FAKE_HOLDERS_MAX && gpu->sample.n_processes != UNKNOWN_U32)
                        hold(i);
                break;
        case 8: log_xid(i); break;
        case 9:
                gpu->sample.checks = one_in(2);
                gpu->check_failure = one_in(3) ? "it is too slow" : NULL;
                gpu->sample.mig = one_in(12);
                break;
        default:
                fake_let_go(&walk->f->fake, i);
                if (one_in(4))
                        gpu->sample.n_processes = UNKNOWN_U32;
                gpu->sample.persistence = one_in(2);
                break;
        }
}

static void change_site(void) {
        static const char *const tenants[] = { NULL, "slurm/1.0", "slurm/2.0", "pod/a" };
        Fixture *f = walk->f;
        static const char *const ids[] = { "0", "1", "2" };

        switch (random_below(5)) {
        case 0: f->fake.alive = tenants[random_below(4)]; break;
        case 1: f->fake.gone = tenants[random_below(4)]; break;
        case 2: (void) manager_set_maintenance(f->manager, one_in(4), "now and then", f->now); break;
        case 3: (void) manager_forget(f->manager, ids[random_below(3)], f->now); break;
        default:
                f->fake.quiesce_failure = one_in(3) ? "dcgm.service did not stop" : NULL;
                f->fake.resume_failure = one_in(3) ? "dcgm.service did not start" : NULL;
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

/* The callers are gone with their agent, and no lease is that is on file. */
static void crash(void) {
        fixture_crash(walk->f);
        for (size_t i = 0; i < GPUS && access(walk->f->state_path, F_OK) == 0; i++) {
                const Gpu *gpu = manager_gpu_by_uuid(walk->f->manager, walk->f->fake.gpus[i].sample.uuid);

                assert_string_equal(gpu ? gpu->tenant : "", walk->had_by[i]);
        }
        for (size_t i = 0; i < walk->n_told; i++)
                walk->taken[i] = walk->taken[i] && walk->told[i].times > 0;
}

static void step(void) {
        unsigned action = random_below(22);

        /* Where everything fails all the time nobody ever gets a GPU: most walks have calmer stretches. */
        if (action >= 14 && walk->number % 3 != 0 && !one_in(6))
                action = random_below(14);

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
        else if (action > 19)
                change_site();
        else if (one_in(5))
                crash();
}

/* Who has a GPU got it clean, and is on file. From then on it is used. */
static void check_lease(size_t i, const Gpu *gpu) {
        const char *tenant = gpu ? gpu->tenant : "";

        if (gpu && gpu->lease.n > 1 && !gpu->lease.shared)
                fail_msg("walk %u, event %u: %s share GPU %zu", walk->number, walk->clock, tenant, i);
        if (access(walk->f->state_path, F_OK) == 0 && !streq(fixture_file_tenant(walk->f, i), tenant))
                fail_msg("walk %u, event %u: GPU %zu is leased to '%s' on file, not to '%s'", walk->number,
                                walk->clock, i, fixture_file_tenant(walk->f, i), tenant);
        if (tenant[0] && !streq(tenant, walk->had_by[i])) {
                bool joined = gpu->lease.shared && walk->had_by[i][0];

                if (!joined && walk->clean_since[i] <= walk->soiled_at[i])
                        fail_msg("walk %u, event %u: %s was given GPU %zu as it was", walk->number,
                                        walk->clock, tenant, i);
                walk->soiled_at[i] = ++walk->clock;
                walk->booked++;
        }
        (void) snprintf(walk->had_by[i], sizeof walk->had_by[i], "%s", tenant);
}

static void check(void) {
        for (size_t i = 0; i < GPUS; i++) {
                const Gpu *gpu = manager_gpu_by_uuid(walk->f->manager, walk->f->fake.gpus[i].sample.uuid);

                check_lease(i, gpu);
                if (walk->clean_since[i] > walk->soiled_at[i])
                        continue;
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

static unsigned total_booked;

static void go(unsigned number) {
        Walk this = { .number = number, .random = number * 0x9e3779b97f4a7c15 | 1 };
        CLEANUP(fixture_free_ptr) Fixture *f = fixture_new(GPUS);

        walk = &this;
        this.f = f;
        f->fake.on_start = note_reset;
        f->config->handover.shared = number % 2 == 0 ? SHARED_COUNT : SHARED_REFUSE;
        if (number % 3 == 0)
                assert_int_equal(strv_append(&f->config->quiesce.units, "dcgm.service"), 0);
        for (unsigned i = 0; i < STEPS; i++) {
                step();
                check();
        }
        fixture_mend_state(f);
        (void) manager_set_maintenance(f->manager, false, "", f->now);
        run_to_the_end();
        check();
        total_booked += this.booked;
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

        assert_true(total_booked > WALKS); /* it was about something */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whatever_happens_no_used_gpu_is_clean_and_everybody_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
