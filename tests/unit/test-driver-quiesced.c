/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/driver/quiesced.h"

static int folder_setup(void **state) {
        static char folder[64];

        strcpy(folder, "/tmp/test-quiesced-XXXXXX");
        *state = folder;
        return mkdtemp(folder) ? 0 : -errno;
}

static int folder_teardown(void **state) {
        return rmdir(*state);
}

static void test_the_list_comes_back_as_it_was_written(void **state) {
        CLEANUP(quiesced_done) Quiesced written = {}, read = {};
        char path[128];

        (void) snprintf(path, sizeof path, "%s/" QUIESCED_NAME, (const char *) *state);
        assert_int_equal(strv_append(&written.units, "nvidia-dcgm.service"), 0);
        assert_int_equal(strv_append(&written.units, "x\\x2dy@a.socket"), 0);
        assert_int_equal(strv_append(&written.commands, "/usr/bin/monitoring --of gpus"), 0);
        assert_int_equal(quiesced_write(path, &written), 0);

        assert_int_equal(quiesced_read(path, &read), 0);
        assert_int_equal(strv_length(read.units), 2);
        assert_string_equal(read.units[0], "nvidia-dcgm.service");
        assert_string_equal(read.units[1], "x\\x2dy@a.socket");
        assert_int_equal(strv_length(read.commands), 1);
        assert_string_equal(read.commands[0], "/usr/bin/monitoring --of gpus");
        assert_int_equal(unlink(path), 0);
}

static void test_an_empty_list_is_no_file(void **state) {
        CLEANUP(quiesced_done) Quiesced quiesced = {};
        Quiesced none = {};
        char path[128];

        (void) snprintf(path, sizeof path, "%s/" QUIESCED_NAME, (const char *) *state);
        assert_int_equal(quiesced_write(path, &none), 0);
        assert_int_equal(strv_append(&quiesced.units, "a.service"), 0);
        assert_int_equal(quiesced_write(path, &quiesced), 0);
        assert_int_equal(access(path, F_OK), 0);
        assert_int_equal(quiesced_write(path, &none), 0);
        assert_int_equal(quiesced_read(path, &none), -ENOENT);
}

static void test_a_list_that_cannot_be_written_is_an_error(void **state) {
        CLEANUP(quiesced_done) Quiesced quiesced = {};

        assert_int_equal(strv_append(&quiesced.units, "a.service"), 0);
        assert_int_equal(quiesced_write("/nonexistent/" QUIESCED_NAME, &quiesced), -ENOENT);
}

static void test_what_is_named_twice_is_listed_once(void **state) {
        CLEANUP(quiesced_done) Quiesced quiesced = {};

        assert_int_equal(quiesced_parse("unit a.service\nunit a.service\n", &quiesced), 0);
        assert_int_equal(strv_length(quiesced.units), 1);
}

static void test_a_list_that_is_not_ours_is_refused(void **state) {
        static const char *const texts[] = { "unit a.service", "unit \n", "units a.service\n", "\n",
                "command \n", "unit a.service\nx", "unit a.service\nstop b.service\n" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                Quiesced quiesced = {};

                assert_int_equal(quiesced_parse(texts[i], &quiesced), -EBADMSG);
                assert_null(quiesced.units);
        }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH_FOLDER(test_the_list_comes_back_as_it_was_written),
                WITH_FOLDER(test_an_empty_list_is_no_file),
                cmocka_unit_test(test_a_list_that_cannot_be_written_is_an_error),
                cmocka_unit_test(test_what_is_named_twice_is_listed_once),
                cmocka_unit_test(test_a_list_that_is_not_ours_is_refused),
        };

        return cmocka_run_group_tests_name("driver-quiesced", tests, NULL, NULL);
}
