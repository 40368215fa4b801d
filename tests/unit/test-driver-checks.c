/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/checks.h"

static const char *const names[] = { "50-links", "10-clique", "90-bandwidth.warn", ".hidden", "README",
        "disabled", "60-link", "70-nowhere", "10-clique~", "50-links.dpkg-old", "10-clique.bak" };

static int folder_setup(void **state) {
        static char folder[64];

        strcpy(folder, "/tmp/test-checks-XXXXXX");
        *state = folder;
        return mkdtemp(folder) ? 0 : -errno;
}

static int folder_teardown(void **state) {
        char path[128];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof path, "%s/%s", (const char *) *state, names[i]);
                (void) unlink(path);
        }
        return rmdir(*state);
}

static void put(const char *folder, const char *name, mode_t mode) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%s", folder, name);
        assert_int_equal(file_write_atomic(path, "#!/bin/sh\n", 10, mode), 0);
}

static void test_a_folders_executables_are_its_checks_in_order(void **state) {
        CLEANUP(strv_free_ptr) char **list = NULL;
        const char *folder = *state;
        char path[128];

        assert_false(checks_exist(folder));
        assert_int_equal(checks_list(folder, &list), 0);
        assert_null(list);

        put(folder, "README", 0644);
        put(folder, ".hidden", 0755);
        put(folder, "10-clique~", 0755);
        put(folder, "10-clique.bak", 0755);
        put(folder, "50-links.dpkg-old", 0755);
        assert_false(checks_exist(folder));
        put(folder, "50-links", 0755);
        put(folder, "90-bandwidth.warn", 0700);
        put(folder, "10-clique", 0755);
        (void) snprintf(path, sizeof path, "%s/60-link", folder);
        assert_int_equal(symlink("50-links", path), 0);
        (void) snprintf(path, sizeof path, "%s/70-nowhere", folder);
        assert_int_equal(symlink("/nonexistent", path), 0);

        assert_true(checks_exist(folder));
        assert_int_equal(checks_list(folder, &list), 0);
        assert_int_equal(strv_length(list), 5);
        assert_string_equal(list[0], "10-clique");
        assert_string_equal(list[1], "50-links");
        assert_string_equal(list[2], "60-link");
        assert_string_equal(list[3], "70-nowhere");
        assert_string_equal(list[4], "90-bandwidth.warn");
}

static void test_a_folder_that_is_not_there_has_no_checks(void **state) {
        char **list = NULL;

        assert_false(checks_exist("/nonexistent"));
        assert_int_equal(checks_list("/nonexistent", &list), -ENOENT);
        assert_null(list);
}

static void test_a_folder_that_cannot_be_read_is_not_passed_over(void **state) {
        assert_true(checks_exist("/dev/null"));
}

static void test_only_some_checks_just_warn(void **state) {
        assert_true(check_only_warns("90-bandwidth.warn"));
        assert_false(check_only_warns("90-bandwidth"));
        assert_false(check_only_warns(".warn"));
        assert_false(check_only_warns("x.warn.sh"));
}

static void test_a_check_in_a_folder_of_others_is_not_trusted(void **state) {
        const char *folder = *state;
        char path[128], *resolved = NULL;

        /* Everybody may write /tmp. */
        put(folder, "50-links", 0755);
        (void) snprintf(path, sizeof path, "%s/50-links", folder);
        assert_int_equal(check_resolve(path, &resolved), -EPERM);
        assert_null(resolved);
        assert_int_equal(check_resolve("/nonexistent/x", &resolved), -ENOENT);
}

static void test_a_check_that_is_roots_all_the_way_is_trusted(void **state) {
        CLEANUP(free_ptr) char *resolved = NULL;
        char path[128];
        struct stat st;

        if (lstat("/", &st) < 0 || st.st_uid != 0)
                return; /* the root folder of a container that is not root's */
        assert_int_equal(check_resolve("/usr/bin/env", &resolved), 0);

        /* A link from a folder of others is as good as what it leads to: that is what is executed. */
        (void) snprintf(path, sizeof path, "%s/60-link", (const char *) *state);
        assert_int_equal(symlink("/usr/bin/env", path), 0);
        free(resolved);
        resolved = NULL;
        assert_int_equal(check_resolve(path, &resolved), 0);
        assert_int_equal(resolved[0], '/');
        assert_null(strstr(resolved, "test-checks"));
}

static void test_the_last_line_is_the_reason(void **state) {
        static const struct {
                const char *output;
                const char *line;
        } cases[] = {
                { "one\ntwo\n", "two" },
                { "one\n two \n\n  \n", "two" },
                { "one", "one" },
                { "\r\n", "" },
                { "", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char output[64];

                strcpy(output, cases[i].output);
                assert_string_equal(last_line(output), cases[i].line);
        }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH_FOLDER(test_a_folders_executables_are_its_checks_in_order),
                cmocka_unit_test(test_a_folder_that_is_not_there_has_no_checks),
                cmocka_unit_test(test_a_folder_that_cannot_be_read_is_not_passed_over),
                cmocka_unit_test(test_only_some_checks_just_warn),
                WITH_FOLDER(test_a_check_in_a_folder_of_others_is_not_trusted),
                WITH_FOLDER(test_a_check_that_is_roots_all_the_way_is_trusted),
                cmocka_unit_test(test_the_last_line_is_the_reason),
        };

        return cmocka_run_group_tests_name("driver-checks", tests, NULL, NULL);
}
