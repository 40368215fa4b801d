/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"

static int setup_folder(void **state) {
        char *folder = strdup("/tmp/test-io-XXXXXX");

        if (!folder || !mkdtemp(folder) || chdir(folder) < 0)
                return 1;
        *state = folder;
        return 0;
}

static int teardown_folder(void **state) {
        CLEANUP(free_ptr) char *folder = *state;

        (void) unlink("file");
        (void) unlink(".file.new");
        (void) unlink("other");
        return chdir("/") < 0 || rmdir(folder) < 0;
}

static void test_a_written_file_reads_back_whole(void **state) {
        CLEANUP(free_ptr) char *text = NULL;
        char large[10000];
        size_t size = 0;

        memset(large, 'x', sizeof large);
        assert_int_equal(file_write_atomic("file", large, sizeof large, 0600), 0);
        assert_int_equal(file_read(AT_FDCWD, "file", sizeof large, &text, &size), 0);
        assert_int_equal(size, sizeof large);
        assert_memory_equal(text, large, sizeof large);
        assert_int_equal(text[size], '\0');
}

static void test_an_empty_file_is_an_empty_text(void **state) {
        CLEANUP(free_ptr) char *text = NULL;

        assert_int_equal(file_write_atomic("file", NULL, 0, 0600), 0);
        assert_int_equal(file_read(AT_FDCWD, "file", 0, &text, NULL), 0);
        assert_string_equal(text, "");
}

static void test_a_file_larger_than_allowed_is_refused(void **state) {
        char *text = NULL;
        size_t size = 77;

        assert_int_equal(file_write_atomic("file", "12345", 5, 0600), 0);
        assert_int_equal(file_read(AT_FDCWD, "file", 4, &text, &size), -EFBIG);
        assert_null(text);
        assert_int_equal(size, 77);
}

static void test_only_regular_files_are_read(void **state) {
        char *text = NULL;

        assert_int_equal(file_read(AT_FDCWD, "absent", 10, &text, NULL), -ENOENT);
        assert_int_equal(file_read(AT_FDCWD, ".", 10, &text, NULL), -EINVAL);
        assert_int_equal(mkfifo("other", 0600), 0);
        assert_int_equal(file_read(AT_FDCWD, "other", 10, &text, NULL),
                        -EINVAL); /* and it does not wait for a writer */
        assert_null(text);
}

static void test_files_of_proc_are_read_though_they_claim_no_size(void **state) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t size;

        assert_int_equal(file_read(AT_FDCWD, "/proc/self/stat", 4096, &text, &size), 0);
        assert_true(size > 0);
}

static void test_a_new_file_has_the_mode_asked_for_whatever_the_umask(void **state) {
        mode_t old = umask(0077);
        struct stat st;

        assert_int_equal(file_write_atomic("file", "x", 1, 0644), 0);
        (void) umask(old);
        assert_int_equal(stat("file", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
}

static void test_a_reader_of_the_old_file_keeps_the_old_text(void **state) {
        CLEANUP(free_ptr) char *text = NULL;
        CLEANUP(fd_close) int fd = -1;

        assert_int_equal(file_write_atomic("file", "old", 3, 0600), 0);
        fd = open("file", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(file_write_atomic("file", "new", 3, 0600), 0);
        assert_int_equal(fd_read_all(fd, 10, &text, NULL), 0);
        assert_string_equal(text, "old");
}

static void test_a_failed_write_leaves_the_old_file_and_nothing_else(void **state) {
        CLEANUP(free_ptr) char *text = NULL;

        assert_int_equal(file_write_atomic("file", "old", 3, 0600), 0);
        assert_int_equal(file_write_atomic("absent/file", "new", 3, 0600), -ENOENT);
        assert_int_equal(mkdir(".file.new", 0700), 0);
        assert_int_equal(file_write_atomic("file", "new", 3, 0600), -EISDIR);
        assert_int_equal(rmdir(".file.new"), 0);

        assert_int_equal(file_read(AT_FDCWD, "file", 10, &text, NULL), 0);
        assert_string_equal(text, "old");
}

static void test_what_was_left_in_the_place_of_the_temporary_file_is_replaced(void **state) {
        CLEANUP(free_ptr) char *text = NULL;
        struct stat st;

        assert_int_equal(mkfifo(".file.new", 0600), 0);
        assert_int_equal(file_write_atomic("file", "1", 1, 0600), 0); /* and it does not wait for a reader */

        assert_int_equal(symlink("elsewhere", ".file.new"), 0);
        assert_int_equal(file_write_atomic("file", "2", 1, 0600), 0);
        assert_int_equal(access("elsewhere", F_OK), -1);

        assert_int_equal(lstat("file", &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(file_read(AT_FDCWD, "file", 10, &text, NULL), 0);
        assert_string_equal(text, "2");
}

static void test_a_full_disk_is_told(void **state) {
        CLEANUP(fd_close) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                skip();
        assert_int_equal(fd_write_all(fd, "x", 1), -ENOSPC);
        assert_int_equal(fd_write_all(fd, NULL, 0), 0);
}

static void test_a_descriptor_handed_on_is_not_closed(void **state) {
        int fd = 0, taken = take_fd(&fd);

        assert_int_equal(taken, 0);
        assert_int_equal(fd, -1);
        fd_close(&fd);
        assert_true(fcntl(0, F_GETFD) >= 0 || errno == EBADF);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_written_file_reads_back_whole),
                cmocka_unit_test(test_an_empty_file_is_an_empty_text),
                cmocka_unit_test(test_a_file_larger_than_allowed_is_refused),
                cmocka_unit_test(test_only_regular_files_are_read),
                cmocka_unit_test(test_files_of_proc_are_read_though_they_claim_no_size),
                cmocka_unit_test(test_a_new_file_has_the_mode_asked_for_whatever_the_umask),
                cmocka_unit_test(test_a_reader_of_the_old_file_keeps_the_old_text),
                cmocka_unit_test(test_a_failed_write_leaves_the_old_file_and_nothing_else),
                cmocka_unit_test(test_what_was_left_in_the_place_of_the_temporary_file_is_replaced),
                cmocka_unit_test(test_a_full_disk_is_told),
                cmocka_unit_test(test_a_descriptor_handed_on_is_not_closed),
        };

        return cmocka_run_group_tests(tests, setup_folder, teardown_folder);
}
