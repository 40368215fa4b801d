/* SPDX-License-Identifier: MIT */
/* Bookings by each caller and what stands against them, maintenance, and GPUs that are forgotten; after each
 * refusal nothing has changed. */
#include "tests/bus/bus-fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/text.h"

#define GPU(hex) GPU_PATH(hex), BUS_GPU_INTERFACE
#define INVALID  SD_BUS_ERROR_INVALID_ARGS
#define LEASED   BUS_ERROR_PREFIX "Leased"

static void acquire(const Fixture *f, const char *tenant, const char *gpu, const char *error_name) {
        fixture_expect(f->root, MANAGER, "Acquire", error_name, "sasa{sv}", tenant, 1, gpu, 0);
}

static void release(const Fixture *f, const char *tenant, const char *gpu, const char *error_name) {
        fixture_expect(f->root, MANAGER, "Release", error_name, "sasa{sv}", tenant, 1, gpu, 0);
}

static void assert_tenant(const Fixture *f, const char *path, const char *expected) {
        CLEANUP(free_ptr) char *tenant = fixture_text(f, path, BUS_GPU_INTERFACE, "Tenant");

        assert_string_equal(tenant, expected);
}

static void assert_state(const Fixture *f, const char *path, const char *expected) {
        CLEANUP(free_ptr) char *text = fixture_text(f, path, BUS_GPU_INTERFACE, "State");

        assert_string_equal(text, expected);
}

/* GPU 0 had a visitor: it is not clean, and nobody has it. */
static void make_dirty(const Fixture *f) {
        fixture_script(f, "holder 0 python\n");
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        fixture_script(f, "");
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        assert_state(f, GPU_PATH("0"), "dirty");
}

static void test_a_booking_keeps_others_out_until_its_release(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);
        unsigned asked;

        acquire(f, "slurm/1.0", "0", NULL);
        assert_tenant(f, GPU_PATH("0"), "slurm/1.0");
        assert_state(f, GPU_PATH("0"), "in-use");

        acquire(f, "slurm/1.0", "0", NULL);
        asked = fixture_count(f, "Reset");
        acquire(f, "pod/x", "0", LEASED);
        fixture_expect(f->root, MANAGER, "Reset", LEASED, "asa{sv}", 1, "0", 0);
        fixture_expect(f->root, GPU("0"), "Reset", LEASED, "a{sv}", 0);
        release(f, "slurm/2.0", "0", BUS_ERROR_NOT_HOLDER);
        release(f, "slurm/1.1", "0", BUS_ERROR_NOT_HOLDER);
        assert_tenant(f, GPU_PATH("0"), "slurm/1.0");
        assert_int_equal(fixture_resets(f), resets);
        assert_int_equal(fixture_count(f, "Reset"), asked);

        release(f, "slurm/1.0", "0", NULL);
        assert_tenant(f, GPU_PATH("0"), "");
        assert_state(f, GPU_PATH("0"), "clean");
        assert_int_equal(fixture_resets(f), resets + 1);
        acquire(f, "pod/x", "0", NULL);
}

static void test_a_refusal_names_the_gpu_and_who_has_it(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *leased = NULL, *not_holder = NULL;

        acquire(f, "slurm/1.0", "1", NULL);
        leased = fixture_expect_message(
                        f->root, MANAGER, "Acquire", LEASED, "sasa{sv}", "slurm/2.0", 2, "0", "1", 0);
        not_holder = fixture_expect_message(f->root, MANAGER, "Release", BUS_ERROR_NOT_HOLDER, "sasa{sv}",
                        "slurm/2.0", 2, "0", "1", 0);
        for (size_t i = 0; i < 2; i++) {
                const char *text = i == 0 ? leased : not_holder;

                assert_non_null(strstr(text, "GPU 1"));
                assert_non_null(strstr(text, "slurm/1.0"));
                assert_null(strchr(text, '\n'));
        }
}

static void test_all_gpus_of_a_booking_are_booked_or_none(void **state) {
        const Fixture *f = *state;

        acquire(f, "slurm/1.0", "1", NULL);
        fixture_expect(f->root, MANAGER, "Acquire", LEASED, "sasa{sv}", "slurm/2.0", 3, "0", "1", "2", 0);
        assert_tenant(f, GPU_PATH("0"), "");
        assert_tenant(f, GPU_PATH("2"), "");
        assert_state(f, GPU_PATH("0"), "clean");
}

static void test_what_is_not_clean_is_handed_over_before_it_is_booked(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        make_dirty(f);
        acquire(f, "slurm/1.0", "0", NULL);
        assert_int_equal(fixture_resets(f), resets + 1);
        assert_tenant(f, GPU_PATH("0"), "slurm/1.0");
}

static void test_a_quarantined_gpu_is_refused_at_once(void **state) {
        const Fixture *f = *state;
        unsigned asked;

        fixture_script(f, "broken 0\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "ResetFailed", "asa{sv}", 1, "0", 0);
        fixture_script(f, "");
        asked = fixture_count(f, "reset");
        acquire(f, "slurm/1.0", "0", BUS_ERROR_PREFIX "NotClean");
        assert_int_equal(fixture_count(f, "reset"), asked);
        assert_tenant(f, GPU_PATH("0"), "");

        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, "0", 0);
        acquire(f, "slurm/1.0", "0", NULL);
}

static void test_a_holder_is_found_before_the_tenant(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL;

        fixture_script(f, "busy 0\nholder 0 python\n");
        message = fixture_expect_message(f->root, MANAGER, "Acquire", BUS_ERROR_PREFIX "Busy", "sasa{sv}",
                        "slurm/1.0", 2, "0", "1", 0);
        assert_non_null(strstr(message, "GPU 0 is held by python (pid 1860, user joe"));
        assert_tenant(f, GPU_PATH("0"), "");
        assert_tenant(f, GPU_PATH("1"), "");
}

static void test_a_booking_that_comes_too_late_is_none(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        make_dirty(f);
        fixture_script(f, "delay 1000\n");
        fixture_expect(f->root, MANAGER, "Acquire", BUS_ERROR_PREFIX "TimedOut", "sasa{sv}", "slurm/1.0", 1,
                        "0", 1, "timeout-usec", "t", (uint64_t) 200000);
        wait_until(fixture_resets(f) == resets + 1);
        assert_tenant(f, GPU_PATH("0"), "");
        assert_state(f, GPU_PATH("0"), "clean");
}

static int ignore_answer(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return 0;
}

static void send_acquire(sd_bus *bus, const char *tenant, const char *gpu) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;

        assert_true(sd_bus_message_new_method_call(bus, &msg, BUS_NAME, MANAGER, "Acquire") >= 0);
        assert_true(sd_bus_message_append(msg, "sasa{sv}", tenant, 1, gpu, 0) >= 0);
        assert_true(sd_bus_call_async(bus, NULL, msg, ignore_answer, NULL, 30 * USEC_PER_SEC) >= 0);
        assert_true(sd_bus_flush(bus) >= 0);
}

static void test_a_caller_that_leaves_gets_no_lease(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);
        unsigned asked = fixture_count(f, "Reset");
        sd_bus *bus;

        make_dirty(f);
        fixture_script(f, "delay 500\n");
        bus = fixture_connect(f, 0, 0);
        send_acquire(bus, "slurm/1.0", "0");
        wait_until(fixture_count(f, "Reset") == asked + 1);
        (void) sd_bus_close_unref(bus);
        wait_until(fixture_resets(f) == resets + 1);
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        assert_tenant(f, GPU_PATH("0"), "");
        acquire(f, "slurm/2.0", "0", NULL);
}

static void test_leases_outlive_the_agent(void **state) {
        static const int signals[] = { SIGKILL, SIGTERM };
        Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        acquire(f, "slurm/1.0", "0", NULL);
        fixture_expect(f->root, MANAGER, "Acquire", NULL, "sasa{sv}", "pod/x", 2, "2", "3", 0);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                fixture_stop_agent(f, signals[i]);
                fixture_start_agent(f);
                assert_tenant(f, GPU_PATH("0"), "slurm/1.0");
                assert_tenant(f, GPU_PATH("2"), "pod/x");
                acquire(f, "slurm/2.0", "0", LEASED);
                fixture_expect(f->root, MANAGER, "Reset", LEASED, "asa{sv}", 1, "3", 0);
        }
        assert_int_equal(fixture_resets(f), resets);
        release(f, "slurm/1.0", "0", NULL);
        assert_state(f, GPU_PATH("0"), "clean");
}

static void test_a_release_without_gpus_is_of_the_tenant_s_own(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        fixture_expect(f->root, MANAGER, "Acquire", NULL, "sasa{sv}", "slurm/1.0", 2, "0", "2", 0);
        acquire(f, "slurm/2.0", "1", NULL);
        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "slurm/1.0", 0, 0);
        assert_tenant(f, GPU_PATH("0"), "");
        assert_tenant(f, GPU_PATH("2"), "");
        assert_tenant(f, GPU_PATH("1"), "slurm/2.0");
        assert_int_equal(fixture_resets(f), resets + 2);

        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "slurm/1.0", 0, 0);
        assert_int_equal(fixture_resets(f), resets + 2);
}

static void test_only_root_ends_the_leases_of_others(void **state) {
        const Fixture *f = *state;

        acquire(f, "slurm/1.0", "0", NULL);
        fixture_expect(f->admin, MANAGER, "Release", SD_BUS_ERROR_ACCESS_DENIED, "sasa{sv}", "slurm/2.0", 1,
                        "0", 1, "force", "b", 1);
        assert_tenant(f, GPU_PATH("0"), "slurm/1.0");
        fixture_expect(f->admin, MANAGER, "Release", NULL, "sasa{sv}", "slurm/1.0", 1, "0", 1, "force", "b",
                        0);

        acquire(f, "slurm/1.0", "0", NULL);
        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "slurm/2.0", 1, "0", 1, "force", "b",
                        1);
        assert_tenant(f, GPU_PATH("0"), "");
        assert_state(f, GPU_PATH("0"), "clean");
}

static void test_a_booking_with_a_mistake_is_invalid(void **state) {
        static const char *const tenants[] = { "", "slurm", "slurm/", "/26", "Slurm/26", "slurm/a b",
                "a/\n" };
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);
        unsigned asked = fixture_count(f, "");

        for (size_t i = 0; i < ELEMENTSOF(tenants); i++)
                acquire(f, tenants[i], "0", INVALID);
        fixture_expect(f->root, MANAGER, "Acquire", INVALID, "sasa{sv}", "slurm/1.0", 0, 0);
        acquire(f, "slurm/1.0", "x", INVALID);
        acquire(f, "slurm/1.0", "9", BUS_ERROR_NO_SUCH_GPU);
        fixture_expect(f->root, MANAGER, "Acquire", INVALID, "sasa{sv}", "slurm/1.0", 1, "0", 1, "tenant",
                        "s", "slurm/2.0");
        fixture_expect(f->root, MANAGER, "Acquire", INVALID, "sasa{sv}", "slurm/1.0", 1, "0", 1, "shared",
                        "s", "yes");
        fixture_expect(f->root, MANAGER, "Acquire", INVALID, "sasa{sv}", "slurm/1.0", 1, "0", 1, "force",
                        "b", 1);
        fixture_expect(f->root, MANAGER, "Release", INVALID, "sasa{sv}", "slurm/1.0", 1, "0", 1, "shared",
                        "b", 1);
        fixture_expect(f->root, MANAGER, "Reset", INVALID, "asa{sv}", 1, "0", 1, "checks", "b", 1);
        fixture_expect(f->root, MANAGER, "Forget", INVALID, "sa{sv}", "0", 1, "force", "b", 1);
        fixture_expect(f->root, MANAGER, "Acquire", INVALID, "sasa{sv}", "slurm/1.0", 1, "0", 1, "exclusive",
                        "b", 1);
        assert_tenant(f, GPU_PATH("0"), "");
        assert_int_equal(fixture_resets(f), resets);
        assert_int_equal(fixture_count(f, ""), asked);
}

static void test_strangers_book_and_release_nothing(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        acquire(f, "slurm/1.0", "0", NULL);
        fixture_expect(f->nobody, MANAGER, "Release", SD_BUS_ERROR_ACCESS_DENIED, "sasa{sv}", "slurm/1.0", 1,
                        "0", 0);
        fixture_expect(f->nobody, MANAGER, "Acquire", SD_BUS_ERROR_ACCESS_DENIED, "sasa{sv}", "slurm/1.0", 1,
                        "1", 0);
        fixture_expect(f->nobody, MANAGER, "Verify", SD_BUS_ERROR_ACCESS_DENIED, "asa{sv}", 0, 1, "checks",
                        "b", 1);
        fixture_expect(f->nobody, MANAGER, "Forget", SD_BUS_ERROR_ACCESS_DENIED, "sa{sv}", "0", 0);
        fixture_expect(f->nobody, MANAGER, "SetMaintenance", SD_BUS_ERROR_ACCESS_DENIED, "bs", 1, "mine");
        assert_tenant(f, GPU_PATH("0"), "slurm/1.0");
        assert_tenant(f, GPU_PATH("1"), "");
        assert_int_equal(fixture_number(f, MANAGER, "Maintenance", 'b'), 0);
        assert_int_equal(fixture_resets(f), resets);
}

static void test_a_shared_gpu_is_reset_with_its_last_tenant(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);
        CLEANUP(free_ptr) char *both = NULL;

        fixture_expect(f->root, MANAGER, "Acquire", BUS_ERROR_PREFIX "NotSupported", "sasa{sv}", "slurm/1.0",
                        1, "0", 1, "shared", "b", 1);
        assert_tenant(f, GPU_PATH("0"), "");

        fixture_config(f, "driver: {poll-interval: 1h}\nhandover: {busy-grace: 0s, shared: count}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        fixture_expect(f->root, MANAGER, "Acquire", NULL, "sasa{sv}", "slurm/1.0", 1, "0", 1, "shared", "b",
                        1);
        acquire(f, "slurm/3.0", "0", LEASED);
        fixture_expect(f->root, MANAGER, "Acquire", NULL, "sasa{sv}", "slurm/2.0", 1, "0", 1, "shared", "b",
                        1);
        both = fixture_text(f, GPU("0"), "Tenant");
        assert_non_null(strstr(both, "slurm/1.0"));
        assert_non_null(strstr(both, "slurm/2.0"));

        release(f, "slurm/1.0", "0", NULL);
        assert_tenant(f, GPU_PATH("0"), "slurm/2.0");
        assert_int_equal(fixture_resets(f), resets);
        release(f, "slurm/2.0", "0", NULL);
        assert_int_equal(fixture_resets(f), resets + 1);
}

static void test_a_lease_of_a_tenant_that_is_gone_is_reclaimed(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        /* No sign yet is no proof. */
        fixture_script(f, "presence 2\n");
        acquire(f, "slurm/1.0", "0", NULL);
        acquire(f, "slurm/2.0", "0", LEASED);
        fixture_script(f, "presence 1\n");
        acquire(f, "slurm/2.0", "0", LEASED);
        assert_tenant(f, GPU_PATH("0"), "slurm/1.0");

        fixture_script(f, "presence 2\n");
        acquire(f, "slurm/2.0", "0", NULL);
        assert_tenant(f, GPU_PATH("0"), "slurm/2.0");
        assert_int_equal(fixture_resets(f), resets + 1);
}

static void test_leftovers_of_the_ended_tenant_are_no_obstacle(void **state) {
        const Fixture *f = *state;

        acquire(f, "slurm/1.0", "0", NULL);
        fixture_script(f, "leftover 0 python\n");
        release(f, "slurm/1.0", "0", NULL);
        assert_state(f, GPU_PATH("0"), "clean");
        assert_true(fixture_count(f, "Leftovers") > 0);
}

static void test_monitoring_that_does_not_stop_is_named_and_started_again(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL;
        unsigned resumed = fixture_count(f, "Resume");

        fixture_config(f,
                        "driver: {poll-interval: 1h}\nhandover: {busy-grace: 0s}\n"
                        "quiesce: {units: [dcgm.service]}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        fixture_script(f, "busy 0\nholder 0 nv-hostengine\nquiesce dcgm.service does not stop\n");
        message = fixture_expect_message(
                        f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "Busy", "asa{sv}", 1, "0", 0);
        assert_non_null(strstr(message, "dcgm.service does not stop"));
        wait_until(fixture_count(f, "Resume") > resumed);
}

static void test_the_site_s_checks_decide_last(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL, *verify = NULL;

        fixture_script(f, "check 1 bandwidth is 3 GB/s\n");
        message = fixture_expect_message(
                        f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "NotClean", "asa{sv}", 2, "0", "1", 0);
        assert_non_null(strstr(message, "GPU 1"));
        assert_non_null(strstr(message, "bandwidth is 3 GB/s"));
        assert_state(f, GPU_PATH("0"), "clean");
        assert_state(f, GPU_PATH("1"), "quarantined");

        fixture_script(f, "check 2 too slow\n");
        fixture_expect(f->root, MANAGER, "Verify", NULL, "asa{sv}", 1, "2", 0);
        verify = fixture_expect_message(f->root, MANAGER, "Verify", BUS_ERROR_PREFIX "NotClean", "asa{sv}",
                        1, "2", 1, "checks", "b", 1);
        assert_non_null(strstr(verify, "too slow"));
}

static void test_a_gpu_in_mig_mode_is_not_reset(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL;
        unsigned asked = fixture_count(f, "reset");

        fixture_script(f, "mig 0\n");
        message = fixture_expect_message(
                        f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "NotSupported", "asa{sv}", 1, "0", 0);
        assert_non_null(strstr(message, "MIG"));
        assert_int_equal(fixture_count(f, "reset"), asked);
}

static void test_maintenance_refuses_with_its_reason_and_asks_nothing(void **state) {
        static const char maintenance[] = BUS_ERROR_PREFIX "Maintenance";
        Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL, *reason = NULL, *kept = NULL;
        uint64_t resets = fixture_resets(f);
        unsigned asked;

        acquire(f, "slurm/1.0", "1", NULL);
        fixture_expect(f->root, MANAGER, "SetMaintenance", NULL, "bs", 1, "driver \033 580.95");
        assert_int_equal(fixture_number(f, MANAGER, "Maintenance", 'b'), 1);
        reason = fixture_text(f, MANAGER, "MaintenanceReason");
        assert_string_equal(reason, "driver \\x1b 580.95");
        asked = fixture_count(f, "");

        message = fixture_expect_message(
                        f->root, MANAGER, "Acquire", maintenance, "sasa{sv}", "slurm/2.0", 1, "0", 0);
        assert_non_null(strstr(message, "580.95"));
        fixture_expect(f->root, MANAGER, "Reset", maintenance, "asa{sv}", 0, 0);
        fixture_expect(f->root, MANAGER, "Refresh", maintenance, "a{sv}", 0);
        fixture_expect(f->root, MANAGER, "Verify", maintenance, "asa{sv}", 0, 0);

        fixture_stop_agent(f, SIGKILL);
        fixture_spawn_agent(f);
        wait_until(fixture_has_name(f));
        kept = fixture_text(f, MANAGER, "MaintenanceReason");
        assert_string_equal(kept, reason);
        acquire(f, "slurm/2.0", "0", maintenance);
        assert_tenant(f, GPU_PATH("1"), "slurm/1.0");
        assert_int_equal(fixture_count(f, ""), asked);
        assert_int_equal(fixture_resets(f), resets);

        fixture_expect(f->root, MANAGER, "SetMaintenance", NULL, "bs", 0, "");
        assert_int_equal(fixture_number(f, MANAGER, "Maintenance", 'b'), 0);
        acquire(f, "slurm/2.0", "0", NULL);
}

static void test_a_site_that_only_observes_refuses_nothing(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *mode = NULL;

        fixture_config(f, "mode: observe\ndriver: {poll-interval: 1h}\nhandover: {busy-grace: 0s}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        mode = fixture_text(f, MANAGER, "Mode");
        assert_string_equal(mode, "observe");
        fixture_script(f, "busy 0\nholder 0 python\n");
        acquire(f, "slurm/1.0", "0", NULL);
        release(f, "slurm/1.0", "0", NULL);
}

static void test_with_the_handover_off_nobody_asks_for_clean_gpus(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        make_dirty(f);
        fixture_config(f, "driver: {poll-interval: 1h}\nhandover: {reset: false}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        acquire(f, "slurm/1.0", "0", NULL);
        acquire(f, "slurm/2.0", "0", LEASED);
        release(f, "slurm/1.0", "0", NULL);
        assert_int_equal(fixture_resets(f), resets);
        assert_tenant(f, GPU_PATH("0"), "");
}

static int note_removal(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(strv_free_ptr) char **interfaces = NULL;
        bool *removed = userdata;
        const char *path;

        assert_true(sd_bus_message_read(msg, "o", &path) > 0);
        assert_string_equal(path, GPU_PATH("3"));
        assert_true(sd_bus_message_read_strv(msg, &interfaces) >= 0);
        STRV_FOREACH (interface, interfaces)
                *removed |= streq(*interface, BUS_GPU_INTERFACE);
        return 0;
}

static bool process(sd_bus *bus, const bool *condition) {
        while (sd_bus_process(bus, NULL) > 0)
                continue;
        return *condition;
}

static void test_a_gpu_that_is_gone_can_be_forgotten(void **state) {
        const Fixture *f = *state;
        bool removed = false;

        fixture_expect(f->root, MANAGER, "Forget", BUS_ERROR_PREFIX "Busy", "sa{sv}", "3", 0);
        fixture_expect(f->root, MANAGER, "Forget", BUS_ERROR_NO_SUCH_GPU, "sa{sv}", "7", 0);
        acquire(f, "slurm/1.0", "3", NULL);
        assert_true(sd_bus_match_signal(f->nobody, NULL, BUS_NAME, BUS_PATH,
                                    "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved", note_removal,
                                    &removed) >= 0);

        fixture_script(f, "gpus 3\n");
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        assert_state(f, GPU_PATH("3"), "lost");
        assert_tenant(f, GPU_PATH("3"), "slurm/1.0");
        fixture_expect(f->root, MANAGER, "Forget", NULL, "sa{sv}", GPU_UUID("3"), 0);
        wait_until(process(f->nobody, &removed));
        fixture_expect(f->root, MANAGER, "GetGPU", BUS_ERROR_NO_SUCH_GPU, "s", GPU_UUID("3"));
        fixture_expect(f->root, GPU("3"), "Verify", SD_BUS_ERROR_UNKNOWN_OBJECT, "a{sv}", 0);

        fixture_script(f, "");
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        assert_state(f, GPU_PATH("3"), "unknown");
        assert_tenant(f, GPU_PATH("3"), "");
}

static void test_root_may_have_a_thousand_resets_waiting(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        uint64_t resets = fixture_resets(f);

        fixture_script(f, "delay 300\n");
        assert_int_equal(fixture_connect_private(f, 0, &bus), 0);
        for (unsigned i = 0; i < 1000; i++) {
                CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;

                assert_true(sd_bus_message_new_method_call(bus, &msg, BUS_NAME, MANAGER, "Reset") >= 0);
                assert_true(sd_bus_message_append(msg, "asa{sv}", 1, i % 2 ? "0" : "1", 0) >= 0);
                assert_true(sd_bus_call_async(bus, NULL, msg, ignore_answer, NULL, 60 * USEC_PER_SEC) >= 0);
        }
        fixture_expect(bus, MANAGER, "Reset", NULL, "asa{sv}", 1, "2", 0);
        assert_true(fixture_resets(f) > resets);
        assert_state(f, GPU_PATH("0"), "clean");
}

#define TEST(name) cmocka_unit_test_setup(name, bus_fixture_calm)

int main(void) {
        static const struct CMUnitTest tests[] = {
                TEST(test_a_booking_keeps_others_out_until_its_release),
                TEST(test_a_refusal_names_the_gpu_and_who_has_it),
                TEST(test_all_gpus_of_a_booking_are_booked_or_none),
                TEST(test_what_is_not_clean_is_handed_over_before_it_is_booked),
                TEST(test_a_quarantined_gpu_is_refused_at_once),
                TEST(test_a_holder_is_found_before_the_tenant),
                TEST(test_a_booking_that_comes_too_late_is_none),
                TEST(test_a_caller_that_leaves_gets_no_lease),
                TEST(test_leases_outlive_the_agent),
                TEST(test_a_release_without_gpus_is_of_the_tenant_s_own),
                TEST(test_only_root_ends_the_leases_of_others),
                TEST(test_a_booking_with_a_mistake_is_invalid),
                TEST(test_strangers_book_and_release_nothing),
                TEST(test_a_shared_gpu_is_reset_with_its_last_tenant),
                TEST(test_a_lease_of_a_tenant_that_is_gone_is_reclaimed),
                TEST(test_leftovers_of_the_ended_tenant_are_no_obstacle),
                TEST(test_monitoring_that_does_not_stop_is_named_and_started_again),
                TEST(test_the_site_s_checks_decide_last),
                TEST(test_a_gpu_in_mig_mode_is_not_reset),
                TEST(test_maintenance_refuses_with_its_reason_and_asks_nothing),
                TEST(test_a_site_that_only_observes_refuses_nothing),
                TEST(test_with_the_handover_off_nobody_asks_for_clean_gpus),
                TEST(test_a_gpu_that_is_gone_can_be_forgotten),
                TEST(test_root_may_have_a_thousand_resets_waiting),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("leases", tests, bus_fixture_setup, bus_fixture_teardown);
}
