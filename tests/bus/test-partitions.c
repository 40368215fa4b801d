/* SPDX-License-Identifier: MIT */
/* SetPartition and ListPartitions: what is set is published, told, on the list, and expected after the
 * reset. */
#include "tests/bus/bus-fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/sample.h"
#include "agent/base/text.h"

#define GPU(hex) GPU_PATH(hex), BUS_GPU_INTERFACE
#define SET      MANAGER, "SetPartition"

/* All GPUs in the default partition, where any clique will do. */
static int calm(void **state) {
        const Fixture *f = *state;

        fixture_expect(f->root, SET, NULL, "asusa{sv}", 4, "0", "1", "2", "3", 32766, "", 0);
        return bus_fixture_calm(state);
}

/* The entry of this partition as "0 3", by the last digit of each UUID; "" for none. To be freed. */
static char* list_partition(const Fixture *f, uint32_t wanted, const char *wanted_name) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        char text[64] = "";
        const char *name, *path;
        uint32_t id;

        assert_true(sd_bus_call_method(f->nobody, BUS_NAME, MANAGER, "ListPartitions", NULL, &reply, "") >=
                        0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(usao)") > 0);
        while (sd_bus_message_enter_container(reply, 'r', "usao") > 0) {
                assert_true(sd_bus_message_read(reply, "us", &id, &name) > 0);
                assert_true(sd_bus_message_enter_container(reply, 'a', "o") > 0);
                while (sd_bus_message_read_basic(reply, 'o', &path) > 0)
                        if (id == wanted && streq(name, wanted_name))
                                (void) snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                                                text[0] ? " " : "", path + strlen(path) - 1);
                assert_true(sd_bus_message_exit_container(reply) >= 0);
                assert_true(sd_bus_message_exit_container(reply) >= 0);
        }
        return strdup(text);
}

static void test_what_is_set_is_published_and_listed(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *name = NULL, *mine = NULL, *others = NULL, *none = NULL;

        fixture_expect(f->admin, SET, NULL, "asusa{sv}", 2, "3", GPU_UUID("1"), 7, "tray2", 0);
        assert_int_equal(fixture_number(f, GPU("1"), "Partition", 'u'), 7);
        name = fixture_text(f, GPU("1"), "PartitionName");
        assert_string_equal(name, "tray2");
        assert_int_equal(fixture_number(f, GPU("1"), "ExpectedCliqueID", 'u'), 7);
        assert_int_equal(fixture_number(f, GPU("0"), "ExpectedCliqueID", 'u'), UNKNOWN_U32);
        assert_int_equal(fixture_number(f, GPU("1"), "ResetPending", 'b'), 1);
        assert_int_equal(fixture_number(f, MANAGER, "ResetsPending", 'u'), 2);

        fixture_expect(f->root, SET, NULL, "asusa{sv}", 1, "2", 0, "", 0);
        assert_int_equal(fixture_number(f, GPU("2"), "ExpectedCliqueID", 'u'), 0);
        mine = list_partition(f, 7, "tray2");
        others = list_partition(f, 32766, "");
        none = list_partition(f, 0, "");
        assert_string_equal(mine, "1 3");
        assert_string_equal(others, "0");
        assert_string_equal(none, "");

        fixture_expect(f->root, SET, NULL, "asusa{sv}", 1, "1", 7, "tray2", 1, "clique", "u", 40);
        assert_int_equal(fixture_number(f, GPU("1"), "ExpectedCliqueID", 'u'), 40);
}

static void test_a_reset_has_to_bring_the_clique(void **state) {
        const Fixture *f = *state;
        CLEANUP(free_ptr) char *before = NULL, *after = NULL;

        fixture_expect(f->root, SET, NULL, "asusa{sv}", 1, "1", 7, "tray2", 0);
        before = fixture_text(f, GPU("1"), "State");
        assert_string_equal(before, "dirty");
        fixture_script(f, "clique 7\n");
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 1, "1", 0);
        after = fixture_text(f, GPU("1"), "State");
        assert_string_equal(after, "clean");
        assert_int_equal(fixture_number(f, GPU("1"), "ResetPending", 'b'), 0);
}

static int on_changed(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        const char *interface, *property;
        unsigned *told = userdata;

        if (sd_bus_message_read(msg, "s", &interface) <= 0 || !streq(interface, BUS_GPU_INTERFACE))
                return 0;
        assert_true(sd_bus_message_enter_container(msg, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(msg, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(msg, "s", &property) > 0);
                *told |= streq(property, "Partition") ? 1U : 0U;
                *told |= streq(property, "PartitionName") ? 2U : 0U;
                *told |= streq(property, "ExpectedCliqueID") ? 4U : 0U;
                *told |= streq(property, "ResetPending") ? 8U : 0U;
                assert_true(sd_bus_message_skip(msg, "v") > 0);
                assert_true(sd_bus_message_exit_container(msg) >= 0);
        }
        return 0;
}

static void test_a_change_is_told(void **state) {
        const Fixture *f = *state;
        CLEANUP(bus_close_ptr) sd_bus *bus = fixture_connect(f, NOBODY_UID, 0);
        unsigned told = 0;

        assert_true(sd_bus_match_signal(bus, NULL, BUS_NAME, GPU_PATH("1"),
                                    "org.freedesktop.DBus.Properties", "PropertiesChanged", on_changed,
                                    &told) >= 0);
        fixture_expect(f->root, SET, NULL, "asusa{sv}", 1, "1", 9, "x", 0);
        for (unsigned i = 0; told != 15 && i < 5000; i++)
                if (sd_bus_process(bus, NULL) == 0)
                        (void) usleep(1000);
        assert_int_equal(told, 15);
}

static void test_what_there_cannot_be_changes_nothing(void **state) {
        const Fixture *f = *state;
        static const char *const names[] = { "a b", "-", "a\n", "\x7f", "\xc3\xa4" };
        CLEANUP(free_ptr) char *message = NULL;

        message = fixture_expect_message(
                        f->root, SET, BUS_ERROR_NO_SUCH_GPU, "asusa{sv}", 2, "1", "9", 7, "a", 0);
        assert_string_equal(message, "There is no GPU 9 on this tray");
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 0, 7, "a", 0);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 32767, "a", 0);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 0, "a", 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, names[i], 0);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, "a", 1, "clique",
                        "s", "7");
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, "a", 1, "clique",
                        "u", UINT32_MAX);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, "a", 1, "force", "b",
                        1);
        fixture_expect(f->root, MANAGER, "Reset", SD_BUS_ERROR_INVALID_ARGS, "asa{sv}", 1, "1", 1, "clique",
                        "u", 7);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, "a", 1, "from", "u",
                        32766);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, "a", 1, "from", "au",
                        0);
        fixture_expect(f->root, SET, SD_BUS_ERROR_INVALID_ARGS, "asusa{sv}", 1, "1", 7, "a", 1, "from", "au",
                        2, 32766, 32766);
        fixture_expect(f->root, MANAGER, "Reset", SD_BUS_ERROR_INVALID_ARGS, "asa{sv}", 1, "1", 1, "from",
                        "au", 1, 7);
        assert_int_equal(fixture_number(f, GPU("1"), "Partition", 'u'), 32766);
}

static void test_who_comes_second_is_refused(void **state) {
        const Fixture *f = *state;

        fixture_expect(f->admin, SET, NULL, "asusa{sv}", 1, "1", 7, "a", 1, "from", "au", 1, 32766);
        fixture_expect(f->admin, SET, BUS_ERROR_PREFIX "Busy", "asusa{sv}", 2, "0", "1", 9, "b", 1, "from",
                        "au", 2, 32766, 32766);
        assert_int_equal(fixture_number(f, GPU("0"), "Partition", 'u'), 32766);
        assert_int_equal(fixture_number(f, GPU("1"), "Partition", 'u'), 7);
}

static void test_it_outlives_the_agent(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) char *name = NULL;

        fixture_expect(f->root, SET, NULL, "asusa{sv}", 1, "1", 7, "tray2", 1, "clique", "u", 40);
        fixture_stop_agent(f, SIGKILL);
        fixture_start_agent(f);
        assert_int_equal(fixture_number(f, GPU("1"), "Partition", 'u'), 7);
        name = fixture_text(f, GPU("1"), "PartitionName");
        assert_string_equal(name, "tray2");
        assert_int_equal(fixture_number(f, GPU("1"), "ExpectedCliqueID", 'u'), 40);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_what_is_set_is_published_and_listed, calm),
                cmocka_unit_test_setup(test_a_reset_has_to_bring_the_clique, calm),
                cmocka_unit_test_setup(test_a_change_is_told, calm),
                cmocka_unit_test_setup(test_what_there_cannot_be_changes_nothing, calm),
                cmocka_unit_test_setup(test_who_comes_second_is_refused, calm),
                cmocka_unit_test_setup(test_it_outlives_the_agent, calm),
        };

        bus_fixture_require();
        return cmocka_run_group_tests_name("partitions", tests, bus_fixture_setup, bus_fixture_teardown);
}
