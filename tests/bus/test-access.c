/* SPDX-License-Identifier: MIT */
/* Each method by each caller, through the shipped policy; after each refusal nothing has changed. */
#include "tests/bus/bus-fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/text.h"

#define GPU(hex)           GPU_PATH(hex), BUS_GPU_INTERFACE
#define MANAGER_PROPERTIES BUS_PATH, "org.freedesktop.DBus.Properties"

typedef struct Method {
        const char *path, *interface, *member, *types;
        const char *for_nobody; /* the error for a caller without rights; NULL: it is for everyone */
} Method;

/* Called with empty arrays and options, or with GPU 0 and its tenant. */
static const Method methods[] = {
        { MANAGER, "ListGPUs", "", NULL },
        { MANAGER, "GetGPU", "s", NULL },
        { MANAGER, "ListCliques", "", NULL },
        { MANAGER, "ListPartitions", "", NULL },
        { MANAGER, "Verify", "asa{sv}", NULL },
        { MANAGER, "Refresh", "a{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "Reset", "asa{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "Acquire", "sasa{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "Release", "sasa{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "SetMaintenance", "bs", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "SetPartition", "asusa{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "ListProcesses", "asa{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { MANAGER, "Reload", "", SD_BUS_ERROR_ACCESS_DENIED },
        { GPU("0"), "Reset", "a{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { GPU("0"), "Verify", "a{sv}", NULL },
        { GPU("0"), "ListProcesses", "a{sv}", SD_BUS_ERROR_ACCESS_DENIED },
        { BUS_PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "", NULL },
        { BUS_PATH, "org.freedesktop.DBus.Introspectable", "Introspect", "", NULL },
        { BUS_PATH, "org.freedesktop.DBus.Peer", "Ping", "", NULL },
};

static void call(sd_bus *bus, const Method *method, const char *error_name) {
        if (streq(method->types, "sasa{sv}"))
                fixture_expect(bus, method->path, method->interface, method->member, error_name, "sasa{sv}",
                                "slurm/1.0", 1, "0", 0);
        else if (streq(method->types, "asusa{sv}"))
                fixture_expect(bus, method->path, method->interface, method->member, error_name, "asusa{sv}",
                                1, "0", 32766, "", 0);
        else if (streq(method->types, "bs"))
                fixture_expect(bus, method->path, method->interface, method->member, error_name, "bs", 0,
                                "");
        else if (streq(method->types, "s"))
                fixture_expect(bus, method->path, method->interface, method->member, error_name, "s", "0");
        else
                fixture_expect(bus, method->path, method->interface, method->member, error_name,
                                method->types, 0, 0);
}

static void test_root_may_call_everything(void **state) {
        const Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(methods); i++)
                call(f->root, &methods[i], NULL);
}

static void test_a_member_of_the_group_may_call_everything(void **state) {
        const Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(methods); i++)
                call(f->admin, &methods[i], NULL);
}

static void test_everybody_may_read_and_nothing_else(void **state) {
        const Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
                uint64_t resets = fixture_resets(f);
                unsigned asked = fixture_count(f, "");

                call(f->nobody, &methods[i], methods[i].for_nobody);
                assert_int_equal(fixture_resets(f), resets);
                assert_int_equal(fixture_count(f, ""), asked);
        }
}

static void test_everybody_may_read_every_property(void **state) {
        const Fixture *f = *state;
        static const char *const objects[][2] = {
                { MANAGER },
                { GPU("0") },
                { GPU("3") },
                { "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1" },
        };

        for (size_t i = 0; i < ELEMENTSOF(objects); i++)
                fixture_expect(f->nobody, objects[i][0], "org.freedesktop.DBus.Properties", "GetAll", NULL,
                                "s", objects[i][1]);
}

static void test_verify_tells_everybody_what_is_known(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *message = NULL;
        unsigned asked;

        fixture_script(f, "broken 2\n");
        fixture_expect(f->root, MANAGER, "Reset", BUS_ERROR_PREFIX "ResetFailed", "asa{sv}", 1, "2", 0);

        asked = fixture_count(f, "");
        message = fixture_expect_message(
                        f->nobody, MANAGER, "Verify", BUS_ERROR_PREFIX "NotClean", "asa{sv}", 0, 0);
        assert_non_null(strstr(message, "GPU 2"));
        fixture_expect(f->nobody, GPU("1"), "Verify", NULL, "a{sv}", 0);
        assert_int_equal(fixture_count(f, ""), asked);
}

static void test_the_log_level_is_for_those_who_manage(void **state) {
        const Fixture *f = *state;
        static const char path[] = "/org/freedesktop/LogControl1",
                          interface[] = "org.freedesktop.LogControl1";
        CLEANUP(free_ptr) char *level = NULL, *after = NULL, *identifier = NULL;

        fixture_expect(f->root, path, "org.freedesktop.DBus.Properties", "Set", NULL, "ssv", interface,
                        "LogLevel", "s", "debug");
        level = fixture_text(f, path, interface, "LogLevel");
        assert_string_equal(level, "debug");

        fixture_expect(f->nobody, path, "org.freedesktop.DBus.Properties", "Set", SD_BUS_ERROR_ACCESS_DENIED,
                        "ssv", interface, "LogLevel", "s", "emerg");
        fixture_expect(f->root, path, "org.freedesktop.DBus.Properties", "Set", SD_BUS_ERROR_INVALID_ARGS,
                        "ssv", interface, "LogLevel", "s", "chatty");
        fixture_expect(f->root, path, "org.freedesktop.DBus.Properties", "Set", SD_BUS_ERROR_INVALID_ARGS,
                        "ssv", interface, "LogLevel", "u", 7);
        fixture_expect(f->root, path, "org.freedesktop.DBus.Properties", "Set", SD_BUS_ERROR_NOT_SUPPORTED,
                        "ssv", interface, "LogTarget", "s", "console");
        after = fixture_text(f, path, interface, "LogLevel");
        assert_string_equal(after, "debug");
        identifier = fixture_text(f, path, interface, "SyslogIdentifier");
        assert_string_equal(identifier, "gpuagentd");
}

static void test_no_property_can_be_set_even_by_root(void **state) {
        const Fixture *f = *state;

        fixture_expect(f->root, MANAGER_PROPERTIES, "Set", SD_BUS_ERROR_PROPERTY_READ_ONLY, "ssv",
                        BUS_MANAGER_INTERFACE, "HandoverReset", "b", 0);
        assert_int_equal(fixture_number(f, MANAGER, "HandoverReset", 'b'), 1);
}

/* Answers as polkit does: yes to the actions that `allows` begins with. */
static int on_check_authorization(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        const char *kind, *key, *sender, *action, *allows = userdata;

        assert_true(sd_bus_message_read(msg, "(sa{sv})s", &kind, 1, &key, "s", &sender, &action) > 0);
        assert_string_equal(kind, "system-bus-name");
        assert_string_equal(key, "name");
        return sd_bus_reply_method_return(msg, "(bba{ss})", startswith(action, allows) != NULL, 0, 0);
}

static const sd_bus_vtable polkit_vtable[] = { SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", on_check_authorization,
                        SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END };

static int on_answer(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        char **answer = userdata;

        *answer = strdup(sd_bus_message_is_method_error(msg, NULL) ? sd_bus_message_get_error(msg)->name
                                                                   : "done");
        return 0;
}

/* Calls as nobody while `polkit` is served. "done" or the error's name, good until the caller's next
 * message. */
static char* call_with_polkit(const Fixture *f, sd_bus *polkit, const char *member) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;
        char *answer = NULL;

        assert_true(sd_bus_message_new_method_call(f->nobody, &msg, BUS_NAME, MANAGER, member) >= 0);
        assert_true(sd_bus_message_append(msg, "asa{sv}", 0, 0) >= 0);
        assert_true(sd_bus_call_async(f->nobody, NULL, msg, on_answer, &answer, 10 * USEC_PER_SEC) >= 0);
        while (!answer) {
                bool idle = sd_bus_process(polkit, NULL) == 0;

                idle &= sd_bus_process(f->nobody, NULL) == 0;
                if (idle)
                        (void) usleep(1000);
        }
        return answer;
}

static void test_polkit_allows_by_action(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *polkit = fixture_connect(f, 0, 0);
        CLEANUP(free_ptr) char *processes = NULL, *reset = NULL, *later = NULL;
        uint64_t resets = fixture_resets(f);
        char allows[] = "org.gpuagent1.probe";

        assert_true(sd_bus_add_object_vtable(polkit, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                    "org.freedesktop.PolicyKit1.Authority", polkit_vtable, allows) >= 0);
        assert_true(sd_bus_request_name(polkit, "org.freedesktop.PolicyKit1", 0) >= 0);

        processes = call_with_polkit(f, polkit, "ListProcesses");
        assert_string_equal(processes, "done");
        reset = call_with_polkit(f, polkit, "Reset");
        assert_string_equal(reset, SD_BUS_ERROR_ACCESS_DENIED);
        assert_int_equal(fixture_resets(f), resets);

        (void) snprintf(allows, sizeof allows, "org.gpuagent1.reset");
        later = call_with_polkit(f, polkit, "Reset");
        assert_string_equal(later, "done");
        assert_int_equal(fixture_resets(f), resets + 4);
}

static void test_names_are_kept_from_everybody_where_the_site_wants_it(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *reason = NULL, *detail = NULL, *tenant = NULL, *verify = NULL, *told = NULL;
        CLEANUP(free_ptr) char *for_root = NULL;
        CLEANUP(bus_close_ptr) sd_bus *private = NULL;

        fixture_config(f,
                        "driver: {poll-interval: 1h}\nhandover: {busy-grace: 0s}\naccess: {processes: "
                        "own}\n");
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        fixture_script(f, "busy 1\nholder 1 python\n");
        told = fixture_expect_message(f->root, MANAGER, "Release", BUS_ERROR_PREFIX "Busy", "sasa{sv}",
                        "slurm/77.0", 1, "1", 0);
        assert_non_null(strstr(told, "python"));
        assert_non_null(strstr(told, "joe"));

        reason = fixture_text(f, GPU("1"), "StateReason");
        detail = fixture_text(f, GPU("1"), "LastResetDetail");
        tenant = fixture_text(f, GPU("1"), "LastTenant");
        verify = fixture_expect_message(
                        f->nobody, MANAGER, "Verify", BUS_ERROR_PREFIX "NotClean", "asa{sv}", 0, 0);
        assert_non_null(strstr(verify, "; gpuagentctl status tells what cures it"));
        assert_string_equal(tenant, "");
        for (size_t i = 0; i < 3; i++) {
                const char *text = (const char *[]){ reason, detail, verify }[i];

                assert_non_null(strstr(text, "held by 1 process"));
                assert_null(strstr(text, "python"));
                assert_null(strstr(text, "joe"));
                assert_null(strstr(text, "slurm/77"));
        }

        /* On the private socket there is nobody but root. */
        assert_int_equal(fixture_connect_private(f, 0, &private), 0);
        assert_true(sd_bus_get_property_string(private, BUS_NAME, GPU("1"), "LastTenant", NULL, &for_root) >=
                        0);
        assert_string_equal(for_root, "slurm/77.0");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_root_may_call_everything, bus_fixture_calm),
                cmocka_unit_test_setup(test_a_member_of_the_group_may_call_everything, bus_fixture_calm),
                cmocka_unit_test_setup(test_everybody_may_read_and_nothing_else, bus_fixture_calm),
                cmocka_unit_test_setup(test_everybody_may_read_every_property, bus_fixture_calm),
                cmocka_unit_test_setup(test_verify_tells_everybody_what_is_known, bus_fixture_calm),
                cmocka_unit_test_setup(test_the_log_level_is_for_those_who_manage, bus_fixture_calm),
                cmocka_unit_test_setup(test_no_property_can_be_set_even_by_root, bus_fixture_calm),
                cmocka_unit_test_setup(test_polkit_allows_by_action, bus_fixture_calm),
                cmocka_unit_test_setup(test_names_are_kept_from_everybody_where_the_site_wants_it,
                                bus_fixture_calm),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("access", tests, bus_fixture_setup, bus_fixture_teardown);
}
