/* SPDX-License-Identifier: MIT */
/* Callers that leave, a bus that restarts, a driver that hangs and dies, a private door, limits and
 * reloads. */
#include "tests/bus/bus-fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/io.h"
#include "agent/base/text.h"
#include "dbus/bus-call.h"

#define GPU(hex) GPU_PATH(hex), BUS_GPU_INTERFACE

static void send_call(sd_bus *bus, const char *member, const char *types, sd_bus_message_handler_t done,
                void *userdata) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;

        assert_true(sd_bus_message_new_method_call(bus, &msg, BUS_NAME, MANAGER, member) >= 0);
        assert_true(sd_bus_message_append(msg, types, 0, 0) >= 0);
        assert_true(sd_bus_call_async(bus, NULL, msg, done, userdata, 30 * USEC_PER_SEC) >= 0);
        assert_true(sd_bus_flush(bus) >= 0);
}

static int ignore_answer(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return 0;
}

static void test_work_goes_on_when_the_caller_leaves(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);
        unsigned asked = fixture_count(f, "Reset");
        sd_bus *bus;

        fixture_script(f, "delay 300\n");
        bus = fixture_connect(f, 0, 0);
        send_call(bus, "Reset", "asa{sv}", ignore_answer, NULL);
        wait_until(fixture_count(f, "Reset") == asked + 1);
        (void) sd_bus_close_unref(bus);
        wait_until(fixture_resets(f) == resets + 4);

        assert_int_equal(fixture_connect_private(f, 0, &bus), 0);
        send_call(bus, "Reset", "asa{sv}", ignore_answer, NULL);
        wait_until(fixture_count(f, "Reset") == asked + 2);
        (void) sd_bus_close_unref(bus);
        wait_until(fixture_resets(f) == resets + 8);
}

/* A caller that is gone before the agent has asked who it was is nobody, also if it was root. */
static void test_a_caller_that_left_before_the_question_is_refused(void **state) {
        const Fixture *f = *state;
        uint64_t resets = fixture_resets(f);

        for (unsigned i = 0; i < 20; i++) {
                sd_bus *bus = fixture_connect(f, 0, 0);

                assert_int_equal(kill(f->agent, SIGSTOP), 0);
                send_call(bus, "Reset", "asa{sv}", ignore_answer, NULL);
                (void) sd_bus_close_unref(bus);
                /* The bus has seen it go when it answers somebody else. */
                wait_until(fixture_has_name(f));
                assert_int_equal(kill(f->agent, SIGCONT), 0);
        }
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        assert_int_equal(fixture_resets(f), resets);
}

static void test_descriptors_are_closed_with_their_connections(void **state) {
        const Fixture *f = *state;
        unsigned before = fixture_descriptors_at_rest(f);

        for (unsigned i = 0; i < 300; i++) {
                sd_bus *bus;

                assert_int_equal(fixture_connect_private(f, 0, &bus), 0);
                if (i % 3 == 0)
                        fixture_expect(bus, MANAGER, "ListGPUs", NULL, "");
                if (i % 3 == 1)
                        send_call(bus, "Verify", "asa{sv}", ignore_answer, NULL);
                (void) sd_bus_close_unref(bus);
        }
        for (unsigned i = 0; i < 50; i++) {
                sd_bus *bus = fixture_connect(f, NOBODY_UID, 0);

                fixture_expect(bus, MANAGER, "Reset", SD_BUS_ERROR_ACCESS_DENIED, "asa{sv}", 0, 0);
                (void) sd_bus_close_unref(bus);
        }
        wait_until(fixture_descriptors(f) == before);
}

static void test_the_private_socket_is_root_s_whatever_its_mode(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *path = NULL;
        sd_bus *bus = NULL;
        struct stat st;

        assert_true(asprintf(&path, "%s/run/private", f->dir) > 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(fixture_connect_private(f, NOBODY_UID, &bus), -EACCES);

        assert_int_equal(chmod(path, 0666), 0);
        assert_true(fixture_connect_private(f, NOBODY_UID, &bus) < 0);
        assert_true(fixture_connect_private(f, AGENT_UID, &bus) < 0);
        assert_int_equal(chmod(path, 0600), 0);
}

/* The agent has closed the connection, whatever there still is to read from it. */
static bool is_put_out(sd_bus *bus) {
        struct pollfd item = { .fd = sd_bus_get_fd(bus), .events = POLLRDHUP };

        return poll(&item, 1, 0) > 0;
}

static void test_a_peer_that_does_not_read_is_put_out(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *deaf = NULL;
        unsigned before = fixture_descriptors_at_rest(f);

        assert_int_equal(fixture_connect_private(f, 0, &deaf), 0);
        wait_until(fixture_descriptors(f) > before);
        /* Each reload is a signal; the socket itself takes some hundreds. */
        for (unsigned i = 0; i < 100000 && !is_put_out(deaf); i++)
                fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        assert_true(is_put_out(deaf));
        wait_until(fixture_descriptors(f) == before);
}

/* Here the signal that is too much comes from a call of its own. */
static void test_a_peer_that_calls_and_does_not_read_is_put_out_too(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *deaf = NULL;
        unsigned before = fixture_descriptors_at_rest(f);
        int r = 0;

        assert_int_equal(fixture_connect_private(f, 0, &deaf), 0);
        for (unsigned i = 0; i < 100000 && r >= 0; i++) {
                CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;

                assert_true(sd_bus_message_new_method_call(deaf, &msg, NULL, MANAGER, "Reload") >= 0);
                assert_true(sd_bus_message_set_expect_reply(msg, false) >= 0);
                r = sd_bus_send(deaf, msg, NULL);
                if (r >= 0)
                        r = sd_bus_flush(deaf);
        }

        wait_until(fixture_descriptors(f) == before);
        fixture_expect(f->root, MANAGER, "ListGPUs", NULL, "");
}

static void test_the_private_socket_has_the_same_objects(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        uint64_t resets = fixture_resets(f);

        assert_int_equal(fixture_connect_private(f, 0, &bus), 0);
        fixture_expect(bus, MANAGER, "ListGPUs", NULL, "");
        fixture_expect(bus, GPU("0"), "Reset", NULL, "a{sv}", 0);
        fixture_expect(bus, BUS_PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL, "");
        fixture_expect(bus, MANAGER, "Reset", BUS_ERROR_NO_SUCH_GPU, "asa{sv}", 1, "9", 0);
        assert_int_equal(fixture_resets(f), resets + 1);
}

/* The end of the handshake and two calls in one piece, as other libraries than sd-bus may send them. */
static void test_calls_that_come_with_the_handshake_are_answered(void **state) {
#define CALL(serial)                                                                      \
        "l\1\0\1\0\0\0\0" serial "\0\0\0\x49\0\0\0"                                       \
        "\1\1o\0\x0e\0\0\0/org/gpuagent1\0\0\2\1s\0\x15\0\0\0org.gpuagent1.Manager\0\0\0" \
        "\3\1s\0\x08\0\0\0ListGPUs\0\0\0\0\0\0\0\0"
        static const char hello[] = "\0AUTH EXTERNAL 30\r\n", calls[] = "BEGIN\r\n" CALL("\2") CALL("\3");
        static const struct timeval patience = { .tv_sec = 5 };
        const Fixture *f = *state;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_close) int fd = -1;
        char answer[8192];
        size_t size = 0;
        ssize_t n = 1;

        assert_true(snprintf(address.sun_path, sizeof address.sun_path, "%s/run/private", f->dir) > 0);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
        assert_int_equal(connect(fd, (const struct sockaddr *) &address, sizeof address), 0);
        assert_int_equal(send(fd, hello, sizeof hello - 1, 0), sizeof hello - 1);
        assert_true(recv(fd, answer, sizeof answer, 0) > 0);

        assert_int_equal(send(fd, calls, sizeof calls - 1, 0), sizeof calls - 1);
        while (n > 0 && !memmem(answer, size, "\5\1u\0\3", 5)) {
                n = recv(fd, answer + size, sizeof answer - size, 0);
                size += n > 0 ? (size_t) n : 0;
        }
        assert_non_null(memmem(answer, size, "\5\1u\0\2", 5)); /* in reply to the first */
        assert_non_null(memmem(answer, size, "\5\1u\0\3", 5));
}

static void test_the_name_comes_back_with_the_bus_and_the_private_socket_never_goes(void **state) {
        Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *private = NULL;

        assert_int_equal(fixture_connect_private(f, 0, &private), 0);
        fixture_stop_bus(f);
        fixture_expect(private, MANAGER, "Reset", NULL, "asa{sv}", 0, 0);

        fixture_start_bus(f);
        wait_until(fixture_has_name(f));
        fixture_expect(private, MANAGER, "ListGPUs", NULL, "");
        fixture_expect(f->nobody, MANAGER, "ListGPUs", NULL, "");
}

static void test_an_agent_without_a_bus_serves_the_private_socket_and_finds_a_bus_later(void **state) {
        Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *private = NULL;

        fixture_stop_agent(f, SIGTERM);
        fixture_stop_bus(f);
        fixture_spawn_agent(f);
        wait_until(fixture_connect_private(f, 0, &private) == 0);
        fixture_expect(private, MANAGER, "ListGPUs", NULL, "");

        fixture_start_bus(f);
        wait_until(fixture_has_name(f));
        fixture_expect(f->nobody, MANAGER, "ListGPUs", NULL, "");
}

static void test_a_driver_that_dies_is_told_and_its_successor_asked(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) char *driver_state = NULL, *error = NULL, *after = NULL;
        uint64_t resets = fixture_resets(f);

        fixture_script(f, "mode die\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "NoDriver", "asa{sv}", 1, "0", 0);
        driver_state = fixture_text(f, MANAGER, "DriverState");
        assert_string_equal(driver_state, "failed");
        error = fixture_text(f, MANAGER, "DriverError");
        /* Gone in the middle at first; a moment later, when the agent looks again, not to be reached. */
        assert_non_null(startswith(error, "gpuagent-driver cannot be reached"));
        assert_int_equal(fixture_resets(f), resets);

        fixture_stop(&f->driver, SIGKILL);
        fixture_script(f, "");
        fixture_expect(f->root, MANAGER, "Refresh", BUS_ERROR_PREFIX "NoDriver", "a{sv}", 0);
        fixture_start_driver(f);
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, "0", 0);
        after = fixture_text(f, MANAGER, "DriverState");
        assert_string_equal(after, "ok");
}

static void test_the_driver_s_errors_become_its_state(void **state) {
        static const char *const modes[][3] = {
                { "missing", "missing", BUS_ERROR_PREFIX "NoDriver" },
                { "failed", "failed", BUS_ERROR_PREFIX "NoDriver" },
                { "stranger", "failed", BUS_ERROR_PREFIX "NoDriver" },
                { "nonsense", "failed", BUS_ERROR_PREFIX "NoDriver" },
                { "unresponsive", "unresponsive", BUS_ERROR_PREFIX "DriverUnresponsive" },
        };
        const Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(modes); i++) {
                CLEANUP(free_ptr) char *driver_state = NULL, *script = NULL;
                uint64_t resets = fixture_resets(f);

                assert_true(asprintf(&script, "mode %s\n", modes[i][0]) > 0);
                fixture_script(f, script);
                fixture_expect(f->root, MANAGER, "Refresh", modes[i][2], "a{sv}", 0);
                fixture_expect(f->root, MANAGER, "Verify", modes[i][2], "asa{sv}", 0, 0);
                fixture_expect(f->root, MANAGER, "Reset", modes[i][2], "asa{sv}", 0, 0);
                driver_state = fixture_text(f, MANAGER, "DriverState");
                assert_string_equal(driver_state, modes[i][1]);
                assert_int_equal(fixture_resets(f), resets);
                (void) bus_fixture_calm(state);
        }
}

static int note_error(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        char **name = userdata;

        *name = strdup(sd_bus_message_is_method_error(msg, NULL) ? sd_bus_message_get_error(msg)->name
                                                                 : "done");
        return 0;
}

static void process_until(sd_bus *bus, char *const *answer) {
        while (!*answer)
                if (sd_bus_process(bus, NULL) == 0)
                        (void) sd_bus_wait(bus, 10 * USEC_PER_MSEC);
}

static bool driver_is(const Fixture *f, const char *expected) {
        CLEANUP(free_ptr) char *text = fixture_text(f, MANAGER, "DriverState");

        return streq(text, expected);
}

static void test_everything_is_readable_while_the_driver_hangs(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *answer = NULL;
        unsigned asked = fixture_count(f, "Probe");
        usec_t start;

        fixture_script(f, "mode hang\n");
        send_call(f->root, "Verify", "asa{sv}", note_error, &answer);
        wait_until(fixture_count(f, "Probe") == asked + 1);

        start = now_monotonic_usec();
        fixture_expect(f->nobody, BUS_PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL,
                        "");
        fixture_expect(f->nobody, MANAGER, "ListGPUs", NULL, "");
        assert_true(now_monotonic_usec() - start < USEC_PER_SEC);

        process_until(f->root, &answer);
        assert_true(streq(answer, BUS_ERROR_PREFIX "DriverUnresponsive") ||
                        streq(answer, BUS_ERROR_PREFIX "TimedOut"));
        wait_until(driver_is(f, "unresponsive"));
}

static void test_one_user_s_waiting_calls_are_limited(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *first = fixture_connect(f, NOBODY_UID, ADMIN_GID);
        CLEANUP(bus_close_ptr) sd_bus *second = fixture_connect(f, NOBODY_UID, ADMIN_GID);
        CLEANUP(bus_close_ptr) sd_bus *third = fixture_connect(f, NOBODY_UID, ADMIN_GID);
        unsigned asked = fixture_count(f, "Reset");

        fixture_script(f, "delay 1000\n");
        send_call(first, "Reset", "asa{sv}", ignore_answer, NULL);
        wait_until(fixture_count(f, "Reset") == asked + 1);
        /* dbus-daemon has a limit of its own for one connection. */
        for (unsigned i = 1; i < BUS_CALLS_PER_USER; i++)
                send_call(i % 2 ? second : first, "Reset", "asa{sv}", ignore_answer, NULL);

        /* Seen by the agent before what comes now. */
        fixture_expect(first, BUS_PATH, "org.freedesktop.DBus.Peer", "Ping", NULL, "");
        fixture_expect(second, BUS_PATH, "org.freedesktop.DBus.Peer", "Ping", NULL, "");

        fixture_expect(third, MANAGER, "Reset", SD_BUS_ERROR_LIMITS_EXCEEDED, "asa{sv}", 0, 0);
        fixture_script(f, "");
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 0, 0);
}

static void test_strangers_cannot_cut_the_agent_off_with_many_calls(void **state) {
        const Fixture *f = *state;
        sd_bus *strangers[12];
        const char *before, *after;
        CLEANUP(message_unref_ptr) sd_bus_message *first = NULL, *second = NULL;
        uint64_t resets = fixture_resets(f);

        assert_true(sd_bus_call_method(f->root, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                    "org.freedesktop.DBus", "GetNameOwner", NULL, &first, "s",
                                    BUS_NAME) >= 0);
        assert_true(sd_bus_message_read(first, "s", &before) > 0);

        assert_int_equal(kill(f->agent, SIGSTOP), 0);
        for (size_t i = 0; i < ELEMENTSOF(strangers); i++) {
                strangers[i] = fixture_connect(f, NOBODY_UID, 0);
                for (unsigned j = 0; j < 120; j++)
                        send_call(strangers[i], "Reset", "asa{sv}", ignore_answer, NULL);
        }
        assert_int_equal(kill(f->agent, SIGCONT), 0);
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        for (size_t i = 0; i < ELEMENTSOF(strangers); i++)
                (void) sd_bus_close_unref(strangers[i]);

        assert_true(sd_bus_call_method(f->root, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                    "org.freedesktop.DBus", "GetNameOwner", NULL, &second, "s",
                                    BUS_NAME) >= 0);
        assert_true(sd_bus_message_read(second, "s", &after) > 0);
        assert_string_equal(after, before);
        assert_int_equal(fixture_resets(f), resets);
}

static void test_a_reload_takes_a_good_file_and_keeps_the_old_for_a_bad_one(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL;
        uint64_t resets;

        fixture_config(f, "handover: {reset: false}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        assert_int_equal(fixture_number(f, MANAGER, "HandoverReset", 'b'), 0);
        resets = fixture_resets(f);
        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "slurm/1.0", 1, "0", 0);
        assert_int_equal(fixture_resets(f), resets);

        fixture_config(f, "handover:\n  reset: perhaps\n");
        message = fixture_expect_message(f->root, MANAGER, "Reload", SD_BUS_ERROR_FAILED, "");
        assert_non_null(strstr(message, "config.yaml:2:"));
        assert_int_equal(fixture_number(f, MANAGER, "HandoverReset", 'b'), 0);

        fixture_config(f, "handover: {reset: true}\naccess: {group: \"\"}\n");
        assert_int_equal(kill(f->agent, SIGHUP), 0);
        wait_until(fixture_number(f, MANAGER, "HandoverReset", 'b') == 1);
        fixture_expect(f->admin, MANAGER, "Reset", SD_BUS_ERROR_ACCESS_DENIED, "asa{sv}", 0, 0);
}

static void test_asked_twice_it_ends_at_once_also_in_the_middle_of_a_reset(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) char *gpu_state = NULL;
        unsigned asked = fixture_count(f, "Reset");
        usec_t start;

        fixture_script(f, "delay 3000\n");
        send_call(f->root, "Reset", "asa{sv}", ignore_answer, NULL);
        wait_until(fixture_count(f, "Reset") == asked + 1);
        assert_int_equal(kill(f->agent, SIGTERM), 0);
        (void) fixture_number(f, MANAGER, "HandoverReset", 'b'); /* the signal has its turn by now */
        fixture_expect(f->root, MANAGER, "Refresh", SD_BUS_ERROR_FAILED, "a{sv}", 0);
        start = now_monotonic_usec();
        fixture_stop(&f->agent, SIGTERM);
        assert_true(now_monotonic_usec() - start < USEC_PER_SEC);
        wait_until(!fixture_has_name(f));

        /* What was clean before the reset began is not clean for its successor. */
        fixture_script(f, "mode unresponsive\n");
        fixture_start_agent(f);
        gpu_state = fixture_text(f, GPU("0"), "State");
        assert_string_equal(gpu_state, "dirty");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_work_goes_on_when_the_caller_leaves, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_a_caller_that_left_before_the_question_is_refused, bus_fixture_calm),
                cmocka_unit_test_setup(test_descriptors_are_closed_with_their_connections, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_the_private_socket_is_root_s_whatever_its_mode, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_peer_that_does_not_read_is_put_out, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_a_peer_that_calls_and_does_not_read_is_put_out_too, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_private_socket_has_the_same_objects, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_calls_that_come_with_the_handshake_are_answered, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_the_name_comes_back_with_the_bus_and_the_private_socket_never_goes,
                                bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_an_agent_without_a_bus_serves_the_private_socket_and_finds_a_bus_later,
                                bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_a_driver_that_dies_is_told_and_its_successor_asked, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_driver_s_errors_become_its_state, bus_fixture_calm),
                cmocka_unit_test_setup(test_everything_is_readable_while_the_driver_hangs, bus_fixture_calm),
                cmocka_unit_test_setup(test_one_user_s_waiting_calls_are_limited, bus_fixture_calm),
                cmocka_unit_test_setup(
                                test_strangers_cannot_cut_the_agent_off_with_many_calls, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_reload_takes_a_good_file_and_keeps_the_old_for_a_bad_one,
                                bus_fixture_calm),
                cmocka_unit_test_setup(test_asked_twice_it_ends_at_once_also_in_the_middle_of_a_reset,
                                bus_fixture_calm),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("life", tests, bus_fixture_setup, bus_fixture_teardown);
}
