/* SPDX-License-Identifier: MIT */
#include "tests/unit/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/text.h"

void fake_uuid(size_t i, char ret[static GPU_UUID_SIZE]) {
        (void) snprintf(ret, GPU_UUID_SIZE, "GPU-5ef0a1b2-0000-4000-8000-%012zx", i);
}

static FakeGpu* fake_by_uuid(Fake *fake, const char *uuid) {
        size_t i = strtoul(uuid + strlen("GPU-5ef0a1b2-0000-4000-8000-"), NULL, 16);

        assert_true(i < fake->n);
        return &fake->gpus[i];
}

static void fake_gpu_init(FakeGpu *gpu, size_t i) {
        GpuSample *sample = &gpu->sample;

        gpu_sample_init(sample);
        fake_uuid(i, sample->uuid);
        (void) snprintf(sample->bus_id, sizeof sample->bus_id, "%08zX:%02zX:00.0", i / 256, i % 256);
        (void) snprintf(sample->name, sizeof sample->name, "NVIDIA GB200");
        sample->index = sample->minor = (uint32_t) i;
        sample->fabric_state = FABRIC_COMPLETED;
        sample->clique_id = gpu->clique_after = 1;
        (void) snprintf(sample->cluster_uuid, sizeof sample->cluster_uuid,
                        "a1b2c3d4-0000-4000-8000-000000000001");
        sample->fabric_health = FABRIC_HEALTH_HEALTHY;
        sample->n_links = sample->n_links_active = 18;
        sample->recovery_action = gpu->action_after = RECOVERY_NONE;
        sample->n_processes = 0;
        gpu->listed = true;
        gpu->verdict = RESET_DONE;
        gpu->detail = "GPU reset";
}

void fake_hold(Fake *fake, size_t i, const char *command, pid_t pid, bool by_nvml) {
        FakeGpu *gpu = &fake->gpus[i];
        GpuHolder *holder = &gpu->holders[gpu->n_holders++];

        gpu->left_over[gpu->n_holders - 1] = gpu->monitored[gpu->n_holders - 1] = false;
        *holder = (GpuHolder){ .pid = pid, .start_time = 1, .uid = 1000, .used_bytes = UNKNOWN_U64 };
        fake_uuid(i, holder->uuid);
        (void) snprintf(holder->user, sizeof holder->user, "joe");
        (void) snprintf(holder->command, sizeof holder->command, "%s", command);
        (void) snprintf(holder->where, sizeof holder->where, "unit session-3.scope");
        gpu->sample.n_processes += by_nvml;
}

void fake_hold_leftover(Fake *fake, size_t i, const char *command, pid_t pid) {
        fake_hold(fake, i, command, pid, true);
        fake->gpus[i].left_over[fake->gpus[i].n_holders - 1] = true;
}

void fake_hold_monitor(Fake *fake, size_t i, const char *command, pid_t pid) {
        fake_hold(fake, i, command, pid, false);
        fake->gpus[i].monitored[fake->gpus[i].n_holders - 1] = true;
}

/* The holders that are marked are gone. */
static void fake_end_holders(FakeGpu *gpu, const bool *marked) {
        size_t kept = 0;

        for (size_t i = 0; i < gpu->n_holders; i++) {
                if (marked[i]) {
                        gpu->sample.n_processes -= gpu->sample.n_processes > 0 &&
                                        gpu->sample.n_processes != UNKNOWN_U32;
                        continue;
                }
                gpu->holders[kept] = gpu->holders[i];
                gpu->left_over[kept] = gpu->left_over[i];
                gpu->monitored[kept] = gpu->monitored[i];
                kept++;
        }
        gpu->n_holders = kept;
}

void fake_let_go(Fake *fake, size_t i) {
        fake->gpus[i].n_holders = 0;
        fake->gpus[i].sample.n_processes = 0;
}

static int fake_start(const VendorRequest *request, void *userdata) {
        Fixture *fixture = userdata;
        Fake *fake = &fixture->fake;

        assert_false(fake->out); /* one at a time */
        assert_true(request->timeout_usec > 0);
        if (fixture->fake.on_start)
                fixture->fake.on_start(fixture, request);
        fake->started[request->operation]++;
        if (fake->start_error[request->operation] < 0)
                return fake->start_error[request->operation];

        fake->out = true;
        fake->operation = request->operation;
        fake->timeout_usec = request->timeout_usec;
        fake->uuids = strv_free(fake->uuids);
        fake->tenants = strv_free(fake->tenants);
        for (size_t i = 0; request->tenants && request->tenants[i]; i++)
                assert_int_equal(strv_append(&fake->tenants, request->tenants[i]), 0);
        for (size_t i = 0; request->uuids && request->uuids[i]; i++)
                assert_int_equal(strv_append(&fake->uuids, request->uuids[i]), 0);
        fake->asked[request->operation] = (unsigned) strv_length(fake->uuids);
        if (request->operation == VENDOR_LEFTOVERS || request->operation == VENDOR_CHECKS)
                assert_int_equal(strv_length(fake->tenants), strv_length(fake->uuids));
        if (request->operation == VENDOR_TENANTS)
                assert_true(strv_length(fake->tenants) > 0);
        else if (request->operation != VENDOR_PROBE && request->operation != VENDOR_QUIESCE &&
                        request->operation != VENDOR_RESUME)
                assert_true(fake->asked[request->operation] > 0);
        return 0;
}

/* Ahead in time by one probe. */
static void fake_gpu_settle(FakeGpu *gpu) {
        if (gpu->settle_left > 0 && --gpu->settle_left == 0) {
                gpu->sample.fabric_state = FABRIC_COMPLETED;
                gpu->sample.clique_id = gpu->clique_after;
        }
        if (gpu->action_left > 0 && --gpu->action_left == 0)
                gpu->sample.recovery_action = gpu->action_after;
}

/* As the driver service has it: when one of those asked for is not there, nothing is said of the others. */
static size_t fake_probe(Fake *fake, GpuSample *samples) {
        size_t n = 0;

        STRV_FOREACH (uuid, fake->uuids)
                if (!fake_by_uuid(fake, *uuid)->listed)
                        return 0;

        for (size_t i = 0; i < fake->n; i++) {
                FakeGpu *gpu = &fake->gpus[i];

                if (!gpu->listed || (fake->uuids && !strv_contains(fake->uuids, gpu->sample.uuid)))
                        continue;
                samples[n++] = gpu->sample;
                fake_gpu_settle(gpu);
        }
        return n;
}

static void fake_gpu_reset(FakeGpu *gpu, GpuReset *ret) {
        *ret = (GpuReset){ .verdict = gpu->verdict };
        memcpy(ret->uuid, gpu->sample.uuid, sizeof ret->uuid);
        (void) snprintf(ret->detail, sizeof ret->detail, "%s", gpu->detail);
        if (gpu->verdict == RESET_DONE && gpu->n_holders > 0)
                ret->verdict = RESET_IN_USE;
        if (ret->verdict != RESET_DONE)
                return;

        gpu->resets++;
        gpu->settle_left = gpu->settle_after;
        gpu->action_left = gpu->action_lag;
        if (gpu->action_lag == 0)
                gpu->sample.recovery_action = gpu->action_after;
        if (gpu->settle_after > 0)
                gpu->sample.fabric_state = FABRIC_IN_PROGRESS;
        else
                gpu->sample.clique_id = gpu->clique_after;
}

static size_t fake_find_holders(Fake *fake, GpuHolder *holders) {
        size_t n = 0;

        STRV_FOREACH (uuid, fake->uuids) {
                const FakeGpu *gpu = fake_by_uuid(fake, *uuid);

                for (size_t i = 0; i < gpu->n_holders; i++)
                        holders[n++] = gpu->holders[i];
        }
        return n;
}

/* Those of the GPUs whose tenant was told. */
static void fake_end_leftovers(Fake *fake) {
        for (size_t i = 0; i < strv_length(fake->uuids); i++)
                if (fake->tenants[i][0]) {
                        FakeGpu *gpu = fake_by_uuid(fake, fake->uuids[i]);

                        fake_end_holders(gpu, gpu->left_over);
                }
}

static void fake_quiesce(Fake *fake) {
        fake->quiesced = true;
        for (size_t i = 0; i < fake->n && !fake->quiesce_failure; i++)
                fake_end_holders(&fake->gpus[i], fake->gpus[i].monitored);
}

static size_t fake_check(Fake *fake, GpuReset *checks) {
        size_t n = 0;

        STRV_FOREACH (uuid, fake->uuids) {
                const FakeGpu *gpu = fake_by_uuid(fake, *uuid);

                checks[n] = (GpuReset){ .verdict = gpu->check_failure ? RESET_FAILED : RESET_DONE };
                memcpy(checks[n].uuid, gpu->sample.uuid, sizeof checks[n].uuid);
                (void) snprintf(checks[n].detail, sizeof checks[n].detail, "%s", gpu->check_failure ?: "");
                n++;
        }
        return n;
}

static size_t fake_look_for_tenants(Fake *fake, TenantSign *signs) {
        size_t n = 0;

        STRV_FOREACH (tenant, fake->tenants) {
                assert_true(n < LEASE_TENANTS_MAX);
                signs[n] = (TenantSign){ .presence = TENANT_UNKNOWN };
                (void) snprintf(signs[n].tenant, sizeof signs[n].tenant, "%s", *tenant);
                if (fake->alive && streq(*tenant, fake->alive))
                        signs[n].presence = TENANT_ALIVE;
                else if (fake->gone && streq(*tenant, fake->gone))
                        signs[n].presence = TENANT_NO_SIGN;
                n++;
        }
        return n;
}

/* What a reply borrows. */
typedef struct FakeAnswer {
        GpuSample *samples;
        GpuReset *resets;
        GpuHolder *holders;
        TenantSign tenants[LEASE_TENANTS_MAX];
} FakeAnswer;

static void fake_reply(Fake *fake, VendorReply *reply, FakeAnswer *answer) {
        switch (fake->operation) {
        case VENDOR_PROBE:
                reply->driver_version = "580.95.05";
                reply->complete = !fake->uuids;
                reply->n_samples = fake_probe(fake, answer->samples);
                break;
        case VENDOR_RESET:
                STRV_FOREACH (uuid, fake->uuids) {
                        FakeGpu *gpu = fake_by_uuid(fake, *uuid);

                        fake_gpu_reset(gpu, &answer->resets[reply->n_resets++]);
                        if (!gpu->looks)
                                continue;
                        answer->samples[reply->n_samples++] = gpu->sample;
                        fake_gpu_settle(gpu);
                }
                break;
        case VENDOR_LEFTOVERS:
                fake_end_leftovers(fake);
                reply->n_holders = fake_find_holders(fake, answer->holders);
                break;
        case VENDOR_HOLDERS: reply->n_holders = fake_find_holders(fake, answer->holders); break;
        case VENDOR_QUIESCE:
                fake_quiesce(fake);
                reply->failure = fake->quiesce_failure ?: "";
                break;
        case VENDOR_RESUME:
                fake->quiesced = fake->quiesced && fake->resume_failure;
                reply->failure = fake->resume_failure ?: "";
                break;
        case VENDOR_CHECKS: reply->n_resets = fake_check(fake, answer->resets); break;
        case VENDOR_TENANTS: reply->n_tenants = fake_look_for_tenants(fake, answer->tenants); break;
        case _VENDOR_OPERATION_MAX: break;
        }
        reply->samples = answer->samples;
        reply->resets = answer->resets;
        reply->holders = answer->holders;
        reply->tenants = answer->tenants;
}

static void fake_answer_done(FakeAnswer *answer) {
        free(answer->samples);
        free(answer->resets);
        free(answer->holders);
}

void fixture_answer(Fixture *fixture) {
        Fake *fake = &fixture->fake;
        CLEANUP(fake_answer_done)
        FakeAnswer answer = {
                .samples = calloc(fake->n + 1, sizeof *answer.samples),
                .resets = calloc(fake->n + 1, sizeof *answer.resets),
                .holders = calloc(fake->n * FAKE_HOLDERS_MAX + 1, sizeof *answer.holders),
        };
        VendorReply reply = { .operation = fake->operation,
                .driver_state = DRIVER_OK,
                .driver_error = "",
                .driver_version = "",
                .failure = "" };

        assert_true(fake->out);
        assert_true(answer.samples && answer.resets && answer.holders);
        reply.driver_state = fake->driver_state[fake->operation];
        if (reply.driver_state == DRIVER_OK)
                fake_reply(fake, &reply, &answer);
        else
                reply.driver_error = fake->driver_error;
        fake->out = false;
        manager_vendor_done(fixture->manager, &reply, fixture->now);
}

/* What is due is done: nothing may be due still, or the agent would spin. */
static void assert_no_spin(const Fixture *fixture) {
        assert_true(manager_next_elapse(fixture->manager) > fixture->now.monotonic_usec);
}

void fixture_tick(Fixture *fixture) {
        manager_tick(fixture->manager, fixture->now);
        assert_no_spin(fixture);
}

void fixture_advance(Fixture *fixture, usec_t usec) {
        fixture->now.monotonic_usec += usec;
        fixture->now.realtime_usec += usec;
}

static bool fixture_step(Fixture *fixture, usec_t end_usec) {
        usec_t next;

        if (fixture->fake.out) {
                fixture_answer(fixture);
                assert_no_spin(fixture);
                return true;
        }
        next = manager_next_elapse(fixture->manager);
        if (next > end_usec)
                return false;
        if (next > fixture->now.monotonic_usec)
                fixture_advance(fixture, next - fixture->now.monotonic_usec);
        fixture_tick(fixture);
        return true;
}

void fixture_run_for(Fixture *fixture, usec_t usec) {
        usec_t end_usec = fixture->now.monotonic_usec + usec;

        while (fixture_step(fixture, end_usec))
                ;
        fixture_advance(fixture, end_usec - fixture->now.monotonic_usec);
}

void fixture_run_until_told(Fixture *fixture, const Told *told) {
        usec_t end_usec = fixture->now.monotonic_usec + 3600 * USEC_PER_SEC;

        while (told->times == 0)
                assert_true(fixture_step(fixture, end_usec));
        assert_int_equal(told->times, 1);
}

static void on_told(const Request *request, void *userdata) {
        Told *told = userdata;

        told->times++;
        told->outcome = request->outcome;
        told->skipped = request->skipped;
        told->observed = request->observed;
        (void) snprintf(told->message, sizeof told->message, "%s", request->message ?: "");
}

int fixture_request_full(Fixture *fixture, RequestKind kind, const char *ids, const RequestOptions *options,
                Told *ret_told, Request **ret) {
        CLEANUP(strv_free_ptr) char **list = NULL;
        CLEANUP(free_ptr) char *copy = strdup(ids);
        char *rest = copy;

        assert_non_null(copy);
        for (char *id; *ids && (id = strsep(&rest, " "));)
                assert_int_equal(strv_append(&list, id), 0);
        if (ret_told)
                *ret_told = (Told){};
        return manager_request(fixture->manager, kind, list, options, ret_told ? on_told : NULL, ret_told,
                        fixture->now, ret);
}

int fixture_request(
                Fixture *fixture, RequestKind kind, const char *ids, const char *tenant, Told *ret_told) {
        RequestOptions options = { .tenant = tenant };

        return fixture_request_full(fixture, kind, ids, &options, ret_told, NULL);
}

static Outcome fixture_run(
                Fixture *fixture, RequestKind kind, const char *ids, const char *tenant, Told *ret_told) {
        assert_int_equal(fixture_request(fixture, kind, ids, tenant, ret_told), 0);
        fixture_run_until_told(fixture, ret_told);
        return ret_told->outcome;
}

Outcome fixture_reset(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told) {
        return fixture_run(fixture, REQUEST_RESET, ids, tenant, ret_told);
}

Outcome fixture_acquire(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told) {
        return fixture_run(fixture, REQUEST_ACQUIRE, ids, tenant, ret_told);
}

Outcome fixture_release(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told) {
        return fixture_run(fixture, REQUEST_RELEASE, ids, tenant, ret_told);
}

PRINTF_FORMAT(2, 3) static void note(Fixture *fixture, const char *format, ...) {
        va_list arguments;

        assert_true(fixture->n_events < FIXTURE_EVENTS_MAX);
        va_start(arguments, format);
        assert_true(vasprintf(&fixture->events[fixture->n_events++], format, arguments) >= 0);
        va_end(arguments);
}

static void on_gpu_added(Gpu *gpu, void *userdata) {
        note(userdata, "added %u", gpu->sample.index);
}

static void on_gpu_changed(Gpu *gpu, uint32_t changes, void *userdata) {
        if (changes & GPU_CHANGE_STATE)
                note(userdata, "gpu %u %s: %s", gpu->sample.index, gpu_state_to_string(gpu_state(gpu)),
                                gpu->reason);
}

static void on_gpu_removed(Gpu *gpu, void *userdata) {
        note(userdata, "removed %u", gpu->sample.index);
}

static void on_manager_changed(uint32_t changes, void *userdata) {
        Fixture *fixture = userdata;

        if (changes & MANAGER_CHANGE_MAINTENANCE)
                note(fixture, "maintenance %s", manager_maintenance(fixture->manager) ?: "off");
        if (changes & MANAGER_CHANGE_DRIVER)
                note(fixture, "driver %s", driver_state_to_string(manager_driver_state(fixture->manager)));
}

static void on_lease_reclaimed(Gpu *gpu, const char *tenant, void *userdata) {
        note(userdata, "reclaimed %u %s", gpu->sample.index, tenant);
}

static void on_reset_started(Gpu *gpu, const char *tenant, void *userdata) {
        note(userdata, "started %u %s", gpu->sample.index, tenant);
}

/* Nobody hears of a clean GPU that is not on file. */
static void on_reset_finished(
                Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata) {
        Fixture *fixture = userdata;

        if (gpu->record == GPU_STATE_CLEAN && fixture->fake.n <= 16)
                assert_int_equal(fixture_file_state(fixture, gpu->sample.index), GPU_STATE_CLEAN);
        note(fixture, "finished %u %s %s", gpu->sample.index, tenant, outcome_to_string(outcome));
}

static void on_request_finished(const Request *request, void *userdata) {
        Fixture *fixture = userdata;

        fixture->requests_finished++;
        fixture->last_outcome = request->outcome;
        fixture->last_duration_usec = request->finished_usec - request->started_usec;
        note(fixture, "request %s", outcome_to_string(request->outcome));
}

static void fixture_start_manager(Fixture *fixture) {
        VendorOps vendor = { .start = fake_start, .userdata = fixture };
        ManagerObserver observer = {
                .on_gpu_added = on_gpu_added,
                .on_gpu_removed = on_gpu_removed,
                .on_gpu_changed = on_gpu_changed,
                .on_manager_changed = on_manager_changed,
                .on_lease_reclaimed = on_lease_reclaimed,
                .on_reset_started = on_reset_started,
                .on_reset_finished = on_reset_finished,
                .on_request_finished = on_request_finished,
                .userdata = fixture,
        };

        assert_int_equal(manager_new(fixture->config, &vendor, fixture->state_path, &fixture->manager), 0);
        assert_int_equal(manager_add_observer(fixture->manager, &observer), 0);
}

Fixture* fixture_new(size_t n) {
        CLEANUP(free_ptr) char *message = NULL;
        Fixture *fixture;

        fixture = calloc(1, sizeof *fixture);
        assert_non_null(fixture);
        (void) strcpy(fixture->folder, "/tmp/test-core-XXXXXX");
        assert_non_null(mkdtemp(fixture->folder));
        (void) snprintf(fixture->state_path, sizeof fixture->state_path, "%s/state", fixture->folder);
        assert_int_equal(config_parse("test", "", 0, &fixture->config, &message), 0);
        fixture->now = (Now){ .monotonic_usec = 60 * USEC_PER_SEC,
                .realtime_usec = 1700000000 * USEC_PER_SEC };

        fixture->fake.gpus = calloc(n + 1, sizeof *fixture->fake.gpus);
        assert_non_null(fixture->fake.gpus);
        fixture->fake.n = n;
        fixture->fake.driver_error = "the driver says no";
        for (size_t i = 0; i < n; i++)
                fake_gpu_init(&fixture->fake.gpus[i], i);
        for (size_t i = 0; i < _VENDOR_OPERATION_MAX; i++)
                fixture->fake.driver_state[i] = DRIVER_OK;
        fixture_start_manager(fixture);
        return fixture;
}

Fixture* fixture_new_probed(size_t n) {
        Fixture *fixture = fixture_new(n);

        fixture_tick(fixture);
        fixture_answer(fixture);
        assert_int_equal(manager_driver_state(fixture->manager), DRIVER_OK);
        return fixture;
}

void fixture_crash(Fixture *fixture) {
        fixture->manager = manager_free(fixture->manager);
        fixture->fake.out = false;
        fixture_start_manager(fixture);
}

Fixture* fixture_free(Fixture *fixture) {
        (void) manager_free(fixture->manager);
        (void) config_free(fixture->config);
        (void) strv_free(fixture->fake.uuids);
        (void) strv_free(fixture->fake.tenants);
        free(fixture->fake.gpus);
        for (size_t i = 0; i < fixture->n_events; i++)
                free(fixture->events[i]);
        fixture_mend_state(fixture);
        (void) unlink(fixture->state_path);
        (void) rmdir(fixture->folder);
        free(fixture);
        return NULL;
}

Gpu* fixture_gpu(const Fixture *fixture, size_t i) {
        char uuid[GPU_UUID_SIZE];
        Gpu *gpu;

        fake_uuid(i, uuid);
        gpu = manager_gpu_by_uuid(fixture->manager, uuid);
        assert_non_null(gpu);
        return gpu;
}

GpuState fixture_state(const Fixture *fixture, size_t i) {
        return gpu_state(fixture_gpu(fixture, i));
}

GpuState fixture_file_state(const Fixture *fixture, size_t i) {
        GpuState state = GPU_STATE_UNKNOWN;
        Inventory inventory = {};
        char uuid[GPU_UUID_SIZE];
        const Gpu *gpu;
        int r;

        r = state_read(fixture->state_path, &inventory, &(StateTray){});
        assert_true(r == 0 || r == 1);
        fake_uuid(i, uuid);
        gpu = inventory_by_uuid(&inventory, uuid);
        if (gpu)
                state = gpu->record;
        inventory_done(&inventory);
        return state;
}

const char* fixture_file_tenant(const Fixture *fixture, size_t i) {
        static char tenant[GPU_TENANT_SIZE];
        Inventory inventory = {};
        char uuid[GPU_UUID_SIZE];
        const Gpu *gpu;
        int r;

        r = state_read(fixture->state_path, &inventory, &(StateTray){});
        assert_true(r == 0 || r == 1);
        fake_uuid(i, uuid);
        gpu = inventory_by_uuid(&inventory, uuid);
        (void) snprintf(tenant, sizeof tenant, "%s", gpu ? gpu->tenant : "");
        inventory_done(&inventory);
        return tenant;
}

/* A folder where the new file would be written: that stops root, too. */
void fixture_break_state(Fixture *fixture) {
        char path[sizeof fixture->state_path + sizeof ".new"];

        (void) snprintf(path, sizeof path, "%s.new", fixture->state_path);
        assert_int_equal(mkdir(path, 0700), 0);
}

void fixture_mend_state(Fixture *fixture) {
        char path[sizeof fixture->state_path + sizeof ".new"];

        (void) snprintf(path, sizeof path, "%s.new", fixture->state_path);
        (void) rmdir(path);
}

static bool event_is(const char *event, const char *text) {
        size_t n = strlen(text);

        return n > 0 && text[n - 1] == '*' ? strncmp(event, text, n - 1) == 0 : streq(event, text);
}

unsigned fixture_count(const Fixture *fixture, const char *text) {
        unsigned n = 0;

        for (size_t i = 0; i < fixture->n_events; i++)
                n += event_is(fixture->events[i], text);
        return n;
}

size_t fixture_position(const Fixture *fixture, const char *text) {
        for (size_t i = 0; i < fixture->n_events; i++)
                if (event_is(fixture->events[i], text))
                        return i;
        fail_msg("nobody was told '%s'", text);
        return 0;
}
