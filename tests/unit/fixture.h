/* SPDX-License-Identifier: MIT */
/* A manager on a fake vendor: a tray of scripted GPUs, a given time, a state file in a folder of its own,
 * and a record of everything that was told. Nothing here sleeps or reads a clock. */
#pragma once

#include <string.h>

#include "agent/config/config.h"
#include "agent/core/manager.h"
#include "agent/core/state.h"
#include "tests/unit/unit.h"

#define FAKE_HOLDERS_MAX   8
#define FIXTURE_EVENTS_MAX 16384

/* One GPU of the tray as the vendor side has it. */
typedef struct FakeGpu {
        GpuSample sample; /* what a probe sees */
        bool listed;      /* false: a probe does not find it */
        uint32_t verdict; /* of a reset; RESET_DONE is refused as in use while there are holders */
        const char *detail;
        uint32_t clique_after; /* a reset puts it there */
        int32_t action_after;  /* and this is the recovery action then … */
        unsigned action_lag;   /* … which stays as it was for this many probes */
        unsigned settle_after; /* a reset leaves the fabric in progress for this many probes */
        unsigned settle_left, action_left;
        GpuHolder holders[FAKE_HOLDERS_MAX];
        bool left_over[FAKE_HOLDERS_MAX]; /* that holder is proven to be its ended tenant's */
        bool monitored[FAKE_HOLDERS_MAX]; /* that holder goes away with VENDOR_QUIESCE */
        size_t n_holders;
        const char *check_failure; /* NULL: the checks pass */
        unsigned resets;           /* those that got through */
        bool looks;                /* such a reset brings a look at what came of it */
} FakeGpu;

typedef struct Fixture Fixture;

typedef struct Fake {
        FakeGpu *gpus;
        size_t n;
        DriverState driver_state[_VENDOR_OPERATION_MAX]; /* what each operation is answered with */
        const char *driver_error;
        int start_error[_VENDOR_OPERATION_MAX];
        void (*on_start)(Fixture *fixture, const VendorRequest *request);

        bool out;
        VendorOperation operation;
        usec_t timeout_usec;
        char **uuids;
        char **tenants;
        const char *quiesce_failure, *resume_failure; /* NULL: it works */
        bool quiesced;
        const char *alive,
                        *gone; /* a tenant with signs of life, and one without; of others nothing is known */
        unsigned started[_VENDOR_OPERATION_MAX]; /* how many of each operation went out */
        unsigned asked[_VENDOR_OPERATION_MAX];   /* how many GPUs the last one was about; 0: all */
} Fake;

/* How a request ended, as its caller was told. */
typedef struct Told {
        unsigned times;
        Outcome outcome;
        char message[4096];
        bool skipped, observed;
} Told;

struct Fixture {
        char folder[64];
        char state_path[96];
        Config *config;
        Manager *manager;
        Now now;
        Fake fake;
        char *events[FIXTURE_EVENTS_MAX]; /* "started 0 slurm/1", "gpu 0 resetting: " … */
        size_t n_events;
        unsigned requests_finished;
        Outcome last_outcome;
        usec_t last_duration_usec; /* of the last request, as its log line has it */
};

/* A tray of n GPUs, all of them idle, in clique 1 and with persistence mode off, so that no poll comes in
 * between. */
Fixture* fixture_new(size_t n);
Fixture* fixture_free(Fixture *fixture);
DEFINE_CLEANUP(Fixture, fixture_free_ptr, fixture_free)

/* The same with the GPUs known to the manager, as after its first poll. */
Fixture* fixture_new_probed(size_t n);

/* An Acquire, a Release of these GPUs, run to its end. */
Outcome fixture_acquire(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told);
Outcome fixture_release(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told);

/* An Acquire by a tenant that shares them. */
Outcome fixture_share(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told);

/* Who has it by the state file at this moment, "" for nobody. Good until the next call. */
const char* fixture_file_tenant(const Fixture *fixture, size_t i);

/* The agent dies, and a new one starts from the state file. */
void fixture_crash(Fixture *fixture);

void fixture_advance(Fixture *fixture, usec_t usec);
void fixture_tick(Fixture *fixture);

/* The fake answers what is out; fails the test if nothing is. */
void fixture_answer(Fixture *fixture);

/* Goes on until nothing is under way: answers what is out, and advances the time to what is due, at most to
 * `usec` from now. The time is there afterwards. */
void fixture_run_for(Fixture *fixture, usec_t usec);

/* The same until this request is told about; fails after an hour. */
void fixture_run_until_told(Fixture *fixture, const Told *told);

/* manager_request() with a `told` for its end, a list of ids as text ("0 2 7"; "" for all), and a tenant or
 * NULL. */
int fixture_request(Fixture *fixture, RequestKind kind, const char *ids, const char *tenant, Told *ret_told);
int fixture_request_full(Fixture *fixture, RequestKind kind, const char *ids, const RequestOptions *options,
                Told *ret_told, Request **ret);

/* A reset of these GPUs, run to its end. */
Outcome fixture_reset(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told);

Gpu* fixture_gpu(const Fixture *fixture, size_t i);
GpuState fixture_state(const Fixture *fixture, size_t i);

/* What the state file says about it at this moment: UNKNOWN without a file or an entry. */
GpuState fixture_file_state(const Fixture *fixture, size_t i);

/* From here on the state file cannot be written, or can be again. */
void fixture_break_state(Fixture *fixture);
void fixture_mend_state(Fixture *fixture);

/* What the fixture makes its tray and its vendor of (fake.c). A good GPU · as VendorOps has it. */
void fake_gpu_init(FakeGpu *gpu, size_t i);
int fake_start(const VendorRequest *request, void *userdata);

void fake_uuid(size_t i, char ret[static GPU_UUID_SIZE]);

/* A process that holds the GPU's node; `by_nvml`: NVML lists it too. */
void fake_hold(Fake *fake, size_t i, const char *command, pid_t pid, bool by_nvml);
void fake_hold_leftover(Fake *fake, size_t i, const char *command, pid_t pid);
void fake_hold_monitor(Fake *fake, size_t i, const char *command, pid_t pid);
void fake_let_go(Fake *fake, size_t i);

/* How many events there are with this text; of a text that ends in '*', with this start. */
unsigned fixture_count(const Fixture *fixture, const char *text);

/* Where the first such event is; fails without one. */
size_t fixture_position(const Fixture *fixture, const char *text);

#define assert_contains(text, part)                                      \
        do {                                                             \
                if (!strstr((text), (part)))                             \
                        fail_msg("'%s' is not in '%s'", (part), (text)); \
        } while (0)
