/* SPDX-License-Identifier: MIT */
#include "tests/unit/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/text.h"

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

/* The message without the advice at its end, which each failure has for its outcome, or brings with its
 * cause. */
static void told_take_message(Told *told, const Request *request) {
        Outcome outcome = request->outcome;
        const char *advice;

        for (size_t i = 0; i < request->n_items; i++)
                outcome = outcome_gravest(outcome, request->items[i].outcome);
        advice = outcome_advice(outcome);
        (void) snprintf(told->message, sizeof told->message, "%s", request->message ?: "");
        if (told->message[0] && advice[0]) {
                size_t n = strlen(told->message), cut = strlen(advice) + strlen("; ");

                assert_true(n > cut);
                if (streq(told->message + n - strlen(advice), advice))
                        told->message[n - cut] = '\0';
                else
                        assert_true(strstr(told->message, "reboot the tray") ||
                                        strstr(told->message, "restart nvidia-imex") ||
                                        strstr(told->message, "gpuagentctl ") ||
                                        strstr(told->message, "systemctl "));
        }
}

static void on_told(const Request *request, void *userdata) {
        Told *told = userdata;

        told->times++;
        told->outcome = request->outcome;
        told->skipped = request->skipped;
        told->observed = request->observed;
        told_take_message(told, request);
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

Outcome fixture_share(Fixture *fixture, const char *ids, const char *tenant, Told *ret_told) {
        RequestOptions options = { .tenant = tenant, .shared = true };

        assert_int_equal(fixture_request_full(fixture, REQUEST_ACQUIRE, ids, &options, ret_told, NULL), 0);
        fixture_run_until_told(fixture, ret_told);
        return ret_told->outcome;
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

        assert_true(outcome_is_a_handovers(outcome)); /* the metrics know no other */
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

/* What the file has of it, in an inventory to be done with; NULL for nothing. */
static const Gpu* file_gpu(const Fixture *fixture, size_t i, Inventory *inventory) {
        char uuid[GPU_UUID_SIZE];
        int r;

        r = state_read(fixture->state_path, inventory, &(StateTray){});
        assert_true(r == 0 || r == 1);
        fake_uuid(i, uuid);
        return inventory_by_uuid(inventory, uuid);
}

GpuState fixture_file_state(const Fixture *fixture, size_t i) {
        CLEANUP(inventory_done) Inventory inventory = {};
        const Gpu *gpu = file_gpu(fixture, i, &inventory);

        return gpu ? gpu->record : GPU_STATE_UNKNOWN;
}

const char* fixture_file_tenant(const Fixture *fixture, size_t i) {
        static char tenant[GPU_TENANT_SIZE];
        CLEANUP(inventory_done) Inventory inventory = {};
        const Gpu *gpu = file_gpu(fixture, i, &inventory);

        (void) snprintf(tenant, sizeof tenant, "%s", gpu ? gpu->tenant : "");
        return tenant;
}

/* Where the new file is written. */
static void new_state_path(const Fixture *fixture, char *ret, size_t size) {
        const char *name = strrchr(fixture->state_path, '/') + 1;

        (void) snprintf(ret, size, "%.*s.%s.%d.new", (int) (name - fixture->state_path), fixture->state_path,
                        name, (int) getpid());
}

/* A folder in its place: that stops root, too. */
void fixture_break_state(Fixture *fixture) {
        char path[sizeof fixture->state_path + sizeof "...new" + 10];

        new_state_path(fixture, path, sizeof path);
        assert_int_equal(mkdir(path, 0700), 0);
}

void fixture_mend_state(Fixture *fixture) {
        char path[sizeof fixture->state_path + sizeof "...new" + 10];

        new_state_path(fixture, path, sizeof path);
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
