/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"

/* What is renamed to "file". */
static const char* temporary(void) {
        static char name[32];

        (void) snprintf(name, sizeof name, ".file.%d.new", (int) getpid());
        return name;
}

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
        (void) unlink(temporary());
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
        assert_int_equal(mkdir(temporary(), 0700), 0);
        assert_int_equal(file_write_atomic("file", "new", 3, 0600), -EISDIR);
        assert_int_equal(rmdir(temporary()), 0);

        assert_int_equal(file_read(AT_FDCWD, "file", 10, &text, NULL), 0);
        assert_string_equal(text, "old");
}

static void test_what_was_left_in_the_place_of_the_temporary_file_is_replaced(void **state) {
        CLEANUP(free_ptr) char *text = NULL;
        struct stat st;

        assert_int_equal(mkfifo(temporary(), 0600), 0);
        assert_int_equal(file_write_atomic("file", "1", 1, 0600), 0); /* and it does not wait for a reader */

        assert_int_equal(symlink("elsewhere", temporary()), 0);
        assert_int_equal(file_write_atomic("file", "2", 1, 0600), 0);
        assert_int_equal(access("elsewhere", F_OK), -1);

        assert_int_equal(lstat("file", &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(file_read(AT_FDCWD, "file", 10, &text, NULL), 0);
        assert_string_equal(text, "2");
}

/* Of two lengths, so that one written into the other's file would show. */
static void write_many_times(char letter, size_t size) {
        CLEANUP(free_ptr) char *text = calloc(1, size);
        int r = text ? 0 : -ENOMEM;

        memset(text, letter, size);
        for (int i = 0; r >= 0 && i < 200; i++)
                r = file_write_atomic("file", text, size, 0600);
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void test_two_writers_leave_the_text_of_one_of_them(void **state) {
        static const size_t sizes[] = { 300000, 100000 };
        int running = 2;

        assert_int_equal(file_write_atomic("file", "a", 1, 0600), 0);
        for (int i = 0; i < 2; i++) {
                pid_t pid = fork();

                assert_true(pid >= 0);
                if (pid == 0)
                        write_many_times("ab"[i], sizes[i]);
        }
        while (running > 0) {
                CLEANUP(free_ptr) char *text = NULL;
                size_t size;
                int status;

                assert_int_equal(file_read(AT_FDCWD, "file", sizes[0], &text, &size), 0);
                assert_true(size == 1 || size == sizes[text[0] - 'a']);
                assert_int_equal(strspn(text, (char[]){ text[0], '\0' }), size);
                if (waitpid(-1, &status, WNOHANG) > 0) {
                        assert_int_equal(status, 0);
                        running--;
                }
        }
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
                cmocka_unit_test(test_two_writers_leave_the_text_of_one_of_them),
                cmocka_unit_test(test_a_full_disk_is_told),
                cmocka_unit_test(test_a_descriptor_handed_on_is_not_closed),
        };

        return cmocka_run_group_tests(tests, setup_folder, teardown_folder);
}
