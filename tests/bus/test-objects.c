/* SPDX-License-Identifier: MIT */
/* What the objects show, and what they tell when it changes. */
#include "tests/bus/bus-fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/io.h"
#include "agent/base/text.h"

#define GPU(hex) GPU_PATH(hex), BUS_GPU_INTERFACE

static void test_the_lists_have_every_gpu_in_order(void **state) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        const char *uuid, *bus_id, *path;
        const Fixture *f = *state;
        uint32_t index;

        assert_true(sd_bus_call_method(f->nobody, BUS_NAME, MANAGER, "ListGPUs", NULL, &reply, NULL) >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(usso)") > 0);
        for (uint32_t i = 0; i < 4; i++) {
                char expected[GPU_UUID_SIZE];

                (void) snprintf(expected, sizeof expected, GPU_UUID("%u"), i);
                assert_true(sd_bus_message_read(reply, "(usso)", &index, &uuid, &bus_id, &path) > 0);
                assert_int_equal(index, i);
                assert_string_equal(uuid, expected);
                assert_int_equal(bus_id[13], '0' + (int) i);
        }
        assert_int_equal(sd_bus_message_at_end(reply, false), 1);
}

static void test_a_clique_lists_its_gpus(void **state) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(strv_free_ptr) char **gpus = NULL;
        const Fixture *f = *state;
        const char *cluster;
        uint32_t clique;

        assert_true(sd_bus_call_method(f->nobody, BUS_NAME, MANAGER, "ListCliques", NULL, &reply, NULL) >=
                        0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(suao)") > 0);
        assert_true(sd_bus_message_enter_container(reply, 'r', "suao") > 0);
        assert_true(sd_bus_message_read(reply, "su", &cluster, &clique) > 0);
        assert_true(sd_bus_message_read_strv(reply, &gpus) > 0);
        assert_string_equal(cluster, "00000000-0000-4000-9000-000000000001");
        assert_int_equal(clique, 1);
        assert_int_equal(strv_length(gpus), 4);
        assert_true(sd_bus_message_exit_container(reply) >= 0);
        assert_int_equal(sd_bus_message_at_end(reply, false), 1);
}

static void test_processes_are_listed_with_everything_known(void **state) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        const char *path, *user, *command, *where;
        const Fixture *f = *state;
        uint32_t pid, uid;
        uint64_t bytes;

        fixture_script(f, "holder 2 python\n");
        assert_true(sd_bus_call_method(f->root, BUS_NAME, MANAGER, "ListProcesses", NULL, &reply, "asa{sv}",
                                    0, 0) >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(ouussst)") > 0);
        assert_true(sd_bus_message_read(reply, "(ouussst)", &path, &pid, &uid, &user, &command, &where,
                                    &bytes) > 0);
        assert_string_equal(path, GPU_PATH("2"));
        assert_int_equal(pid, 1860);
        assert_int_equal(uid, 1000);
        assert_string_equal(user, "joe");
        assert_string_equal(command, "python");
        assert_string_equal(where, "unit session-3.scope");
        assert_int_equal(bytes, 4096);
        assert_int_equal(sd_bus_message_at_end(reply, false), 1);
}

/* White space between tags is the printer's. */
static void squeeze(char *xml) {
        char *to = xml;

        for (const char *from = xml; *from != '\0'; from++) {
                if (*from == '>') {
                        *to++ = '>';
                        from += strspn(from + 1, " \n");
                        if (startswith(from + 1, "</property>") && to[-2] != '/') {
                                (void) memcpy(to - 1, "/>", 2);
                                to++;
                                from += strlen("</property>");
                                from += strspn(from + 1, " \n");
                        }
                        continue;
                }
                *to++ = *from;
        }
        *to = '\0';
}

static char* cut_interface(const char *xml, const char *interface) {
        CLEANUP(free_ptr) char *head = NULL;
        const char *from, *to;
        char *cut;

        assert_true(asprintf(&head, "<interface name=\"%s\">", interface) > 0);
        from = strstr(xml, head);
        assert_non_null(from);
        to = strstr(from, "</interface>");
        assert_non_null(to);
        cut = strndup(from, (size_t) (to - from));
        assert_non_null(cut);
        squeeze(cut);
        return cut;
}

static void test_introspection_is_what_the_files_say(void **state) {
        static const struct {
                const char *path, *interface, *file;
        } interfaces[] = {
                { MANAGER, INTERFACES "/org.gpuagent1.Manager.xml" },
                { GPU("0"), INTERFACES "/org.gpuagent1.GPU.xml" },
        };
        const Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(interfaces); i++) {
                CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
                CLEANUP(free_ptr) char *golden = NULL, *expected = NULL, *got = NULL;
                const char *xml;

                assert_true(sd_bus_call_method(f->nobody, BUS_NAME, interfaces[i].path,
                                            "org.freedesktop.DBus.Introspectable", "Introspect", NULL,
                                            &reply, "") >= 0);
                assert_true(sd_bus_message_read(reply, "s", &xml) > 0);
                assert_int_equal(file_read(AT_FDCWD, interfaces[i].file, 1 << 20, &golden, NULL), 0);
                expected = cut_interface(golden, interfaces[i].interface);
                got = cut_interface(xml, interfaces[i].interface);
                assert_string_equal(got, expected);
        }
}

/* Everything that a client may read of the tray in one go. The number of objects. */
static unsigned count_managed_objects(sd_bus *bus) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        const char *path;
        unsigned n = 0;

        assert_true(sd_bus_call_method(bus, BUS_NAME, BUS_PATH, "org.freedesktop.DBus.ObjectManager",
                                    "GetManagedObjects", NULL, &reply, "") >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}") > 0);
        while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                assert_true(sd_bus_message_read(reply, "o", &path) > 0);
                assert_true(sd_bus_message_skip(reply, "a{sa{sv}}") > 0);
                assert_true(sd_bus_message_exit_container(reply) > 0);
                n += startswith(path, BUS_GPU_PATH "/") != NULL;
        }
        return n;
}

static void test_whatever_a_process_calls_itself_every_object_stays_readable(void **state) {
        static const char *const scripts[] = {
                "busy 0\nholder 0 \\xff\\x1b[2J\n", /* as the driver escapes them */
                "busy 0\nholder 0 \xff\n",          /* as a broken driver might not */
                "busy 0\nholder 0 \033[31m\n",
                "raw 3\n",
        };
        const Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(scripts); i++) {
                fixture_script(f, scripts[i]);
                (void) sd_bus_call_method(f->root, BUS_NAME, MANAGER, "Reset", NULL, NULL, "asa{sv}", 0, 0);
                (void) sd_bus_call_method(f->root, BUS_NAME, MANAGER, "Refresh", NULL, NULL, "a{sv}", 0);
                assert_int_equal(count_managed_objects(f->nobody), 4);
                fixture_expect(f->nobody, BUS_PATH, "org.freedesktop.DBus.Properties", "GetAll", NULL, "s",
                                BUS_MANAGER_INTERFACE);
                (void) bus_fixture_calm(state);
        }
}

static void test_a_holder_is_named_as_the_driver_escaped_it(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL, *reason = NULL;

        fixture_script(f, "busy 0\nholder 0 \\xffpython\n");
        message = fixture_expect_message(
                        f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "Busy", "asa{sv}", 1, "0", 0);
        assert_string_equal(
                        message, "GPU 0 is held by \\xffpython (pid 1860, user joe, unit session-3.scope)");
        reason = fixture_text(f, GPU("0"), "StateReason");
        assert_non_null(strstr(reason, "\\xffpython"));
}

typedef struct Heard {
        unsigned started, finished, cliques, others;
        char result[32];
} Heard;

static int on_signal(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        Heard *heard = userdata;
        const char *path, *tenant, *result, *detail;

        if (sd_bus_message_is_signal(msg, BUS_MANAGER_INTERFACE, "ResetStarted") > 0)
                heard->started++;
        if (sd_bus_message_is_signal(msg, BUS_MANAGER_INTERFACE, "ResetFinished") > 0 &&
                        sd_bus_message_read(msg, "osss", &path, &tenant, &result, &detail) > 0) {
                heard->finished++;
                assert_string_equal(path, GPU_PATH("1"));
                assert_string_equal(tenant, "slurm/26.0");
                (void) snprintf(heard->result, sizeof heard->result, "%s", result);
        }
        return 0;
}

static int on_changed(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        Heard *heard = userdata;
        bool clique = false, cluster = false;
        const char *interface, *property;

        if (sd_bus_message_read(msg, "s", &interface) <= 0 || !streq(interface, BUS_GPU_INTERFACE))
                return 0;
        assert_true(sd_bus_message_enter_container(msg, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(msg, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(msg, "s", &property) > 0);
                clique |= streq(property, "CliqueID");
                cluster |= streq(property, "ClusterUUID");
                assert_false(streq(property, "Power") || streq(property, "MemoryUsed"));
                assert_true(sd_bus_message_skip(msg, "v") > 0);
                assert_true(sd_bus_message_exit_container(msg) >= 0);
        }
        assert_int_equal(clique, cluster);
        heard->cliques += clique;
        heard->others += !clique;
        return 0;
}

static void listen_until(sd_bus *bus, const unsigned *counter, unsigned wanted) {
        for (unsigned i = 0; *counter < wanted && i < 5000; i++)
                if (sd_bus_process(bus, NULL) == 0)
                        (void) usleep(1000);
        assert_true(*counter >= wanted);
}

static void test_a_reset_is_told_as_it_goes(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *bus = fixture_connect(f, NOBODY_UID, 0);
        Heard heard = {};

        assert_true(sd_bus_match_signal(bus, NULL, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, NULL,
                                    on_signal, &heard) >= 0);
        assert_true(sd_bus_match_signal(bus, NULL, BUS_NAME, GPU_PATH("1"),
                                    "org.freedesktop.DBus.Properties", "PropertiesChanged", on_changed,
                                    &heard) >= 0);

        fixture_script(f, "clique 7\n");
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, "1", 1, "tenant", "s", "slurm/26.0");
        listen_until(bus, &heard.finished, 1);
        listen_until(bus, &heard.others, 1);
        assert_int_equal(heard.started, 1);
        assert_int_equal(heard.finished, 1);
        assert_string_equal(heard.result, "done");
        assert_true(heard.cliques >= 1);
        assert_int_equal(fixture_number(f, GPU("1"), "CliqueID", 'u'), 7);
}

static void test_the_last_reset_can_be_looked_up(void **state) {
        const Fixture *f = *state;
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) char *result = NULL, *detail = NULL;
        const char *step;
        usec_t before = now_realtime_usec();
        uint64_t usec;

        fixture_script(f, "broken 0\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "ResetFailed", "asa{sv}", 1, "0", 0);
        result = fixture_text(f, GPU("0"), "LastResetResult");
        assert_string_equal(result, "reset-failed");
        detail = fixture_text(f, GPU("0"), "LastResetDetail");
        assert_non_null(strstr(detail, "GPU 0"));
        assert_true(fixture_number(f, GPU("0"), "LastResetTimestamp", 't') >= before);
        assert_int_equal(fixture_number(f, MANAGER, "Quarantined", 'u'), 1);

        assert_true(sd_bus_get_property(f->nobody, BUS_NAME, GPU("0"), "LastResetSteps", NULL, &reply,
                                    "a(st)") >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(st)") > 0);
        assert_true(sd_bus_message_read(reply, "(st)", &step, &usec) > 0);
        assert_string_equal(step, "probe");
}

static void test_new_gpus_appear_as_objects(void **state) {
        const Fixture *f = *state;

        fixture_script(f, "gpus 1024\n");
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        assert_int_equal(count_managed_objects(f->nobody), 1024);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_the_lists_have_every_gpu_in_order, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_clique_lists_its_gpus, bus_fixture_calm),
                cmocka_unit_test_setup(test_processes_are_listed_with_everything_known, bus_fixture_calm),
                cmocka_unit_test_setup(test_introspection_is_what_the_files_say, bus_fixture_calm),
                cmocka_unit_test_setup(test_whatever_a_process_calls_itself_every_object_stays_readable,
                                bus_fixture_calm),
                cmocka_unit_test_setup(test_a_holder_is_named_as_the_driver_escaped_it, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_reset_is_told_as_it_goes, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_last_reset_can_be_looked_up, bus_fixture_calm),
                cmocka_unit_test_setup(test_new_gpus_appear_as_objects, bus_fixture_calm),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("objects", tests, bus_fixture_setup, bus_fixture_teardown);
}
