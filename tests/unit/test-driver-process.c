/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/driver/process.h"
#include "agent/driver/record.h"
#include "agent/driver/walk.h"

#define STAT_REST " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21\n"

static void test_the_start_time_is_read_behind_any_name(void **state) {
        static const char *const names[] = { "python", "a) S 1 2", "x\n(", "", "((()" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char text[256];
                ProcessStat stat;

                (void) snprintf(text, sizeof text, "17 (%s)%s", names[i], STAT_REST);
                assert_int_equal(process_stat_parse(text, &stat), 0);
                assert_string_equal(stat.command, names[i]);
                assert_int_equal(stat.state, 'S');
                assert_int_equal(stat.start_time, 987654);
        }
}

static void test_a_torn_stat_is_refused(void **state) {
        static const char *const texts[] = { "", "17", "17 (", "17 )(", "17 (x)", "17 (x) S 1 2 3" };
        ProcessStat stat;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_int_equal(process_stat_parse(texts[i], &stat), -EINVAL);
}

static void test_the_real_uid_is_the_first(void **state) {
        uid_t uid;

        assert_int_equal(process_uid_parse("Name:\tUid:\\n\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\n",
                                         &uid),
                        0);
        assert_int_equal(uid, 1000);
        assert_int_equal(process_uid_parse("Name:\tx\n", &uid), -EINVAL);
}

/* valgrind 3.19 does not know pidfd_open(2). */
static void need_pidfds(void) {
        CLEANUP(fd_close) int fd = -1;
        ProcessId id;

        if (process_id_read(getpid(), &id) >= 0 && process_open(&id, &fd) == -ENOSYS)
                skip();
}

static void test_we_are_found_until_we_are_somebody_else(void **state) {
        CLEANUP(fd_close) int fd = -1;
        ProcessId id;
        uid_t uid;

        need_pidfds();
        assert_int_equal(process_id_read(getpid(), &id), 0);
        assert_int_equal(process_open(&id, &fd), 0);
        assert_int_equal(process_uid_read(getpid(), &uid), 0);
        assert_int_equal(uid, getuid());
        id.start_time++;
        assert_int_equal(process_open(&id, &fd), -ESRCH);
}

static void test_a_zombie_is_gone(void **state) {
        CLEANUP(fd_close) int fd = -1;
        ProcessId id;
        siginfo_t info;
        pid_t pid;

        need_pidfds();
        pid = fork();
        if (pid == 0)
                _exit(0);
        assert_true(pid > 0);
        assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
        assert_int_equal(process_id_read(pid, &id), 0);
        assert_int_equal(process_open(&id, &fd), -ESRCH);
        (void) waitpid(pid, NULL, 0);
        assert_int_equal(process_id_read(pid, &id), -ESRCH);
}

static void test_a_record_reads_back(void **state) {
        Record written = { .kind = TASK_HOLDERS,
                .deadline_usec = 123456789,
                .processes = { { 17, 99 } },
                .n_processes = 1 };
        char folder[] = "/tmp/test-record-XXXXXX", path[64];
        Record read;

        assert_non_null(mkdtemp(folder));
        (void) snprintf(path, sizeof path, "%s/worker", folder);
        assert_int_equal(record_read(path, &read), -ENOENT);
        assert_int_equal(record_append(path, &(ProcessId){ 1, 1 }), -ENOENT);

        assert_int_equal(record_write(path, &written), 0);
        assert_int_equal(record_append(path, &(ProcessId){ 18, 100 }), 0);
        assert_int_equal(record_read(path, &read), 0);
        (void) unlink(path);
        (void) rmdir(folder);

        assert_int_equal(read.kind, TASK_HOLDERS);
        assert_int_equal(read.deadline_usec, 123456789);
        assert_int_equal(read.n_processes, 2);
        assert_int_equal(read.processes[1].pid, 18);
        assert_int_equal(read.processes[1].start_time, 100);
}

static void test_a_record_keeps_only_programs_that_are_not_gone(void **state) {
        Record written = { .kind = TASK_CHECKS, .processes = { { 17, 99 } }, .n_processes = 1 };
        char folder[] = "/tmp/test-record-XXXXXX", path[64];
        ProcessId self;
        Record read;

        need_pidfds();
        assert_non_null(mkdtemp(folder));
        (void) snprintf(path, sizeof path, "%s/worker", folder);
        assert_int_equal(process_id_read(getpid(), &self), 0);
        assert_int_equal(record_write(path, &written), 0);
        assert_int_equal(record_append(path, &self), 0);
        for (uint64_t i = 1; i < 3 * RECORD_PROCESSES_MAX; i++)
                assert_int_equal(record_append(path, &(ProcessId){ getpid(), self.start_time + i }), 0);
        assert_int_equal(record_read(path, &read), 0);
        (void) unlink(path);
        (void) rmdir(folder);

        assert_int_equal(read.n_processes, 3);
        assert_int_equal(read.processes[0].pid, 17);
        assert_int_equal(read.processes[1].start_time, self.start_time);
        assert_int_equal(read.processes[2].start_time, self.start_time + 3 * RECORD_PROCESSES_MAX - 1);
}

static void test_a_torn_last_line_of_a_record_does_not_count(void **state) {
        Record record;

        assert_int_equal(record_parse("deadline 5 reset\nprocess 17 99\nprocess 18", &record), 0);
        assert_int_equal(record.n_processes, 1);
        assert_int_equal(record.kind, TASK_RESET);
}

static void test_more_processes_than_there_is_room_for_are_left_out(void **state) {
        char text[1024];
        Record record;
        int n;

        n = snprintf(text, sizeof text, "deadline 5 reset\n");
        for (int i = 0; i < RECORD_PROCESSES_MAX + 3; i++)
                n += snprintf(text + n, sizeof text - (size_t) n, "process 17 99\n");
        assert_int_equal(record_parse(text, &record), 0);
        assert_int_equal(record.n_processes, RECORD_PROCESSES_MAX);
}

static void test_a_record_of_somebody_else_is_refused(void **state) {
        static const char *const texts[] = {
                "",
                "process 17 99\n",
                "deadline 5 reset\n",
                "deadline 5 dance\nprocess 17 99\n",
                "deadline 5 reset\nprocess 1 99\n",
                "deadline 5 reset\nprocess -1 99\n",
                "deadline 5 reset\nprocess 17\n",
                "deadline 5 reset\nprocess 17 99 1\n",
                "\n\n\n",
        };
        Record record;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_int_equal(record_parse(texts[i], &record), -EBADMSG);
}

static void test_a_mapping_is_read_from_its_line(void **state) {
        uint32_t major_number, minor_number;
        char range[64];
        uint64_t inode;

        assert_int_equal(maps_line_parse("7f0012340000-7f0012350000 rw-s 00001000 00:06 2345   /dev/nvidia0",
                                         &major_number, &minor_number, &inode, range, sizeof range),
                        0);
        assert_int_equal(major_number, 0);
        assert_int_equal(minor_number, 6);
        assert_int_equal(inode, 2345);
        assert_string_equal(range, "map_files/7f0012340000-7f0012350000");
        assert_int_equal(maps_line_parse("7f00-7f01 r--p 00000000 fe:1a 7", &major_number, &minor_number,
                                         &inode, range, sizeof range),
                        0);
        assert_int_equal(major_number, 0xfe);
        assert_int_equal(minor_number, 0x1a);
}

static void test_what_maps_no_file_is_passed_over(void **state) {
        static const char *const lines[] = {
                "",
                "x",
                "7f00-7f01",
                "7f00-7f01 rw-p",
                "7f00-7f01 rw-p 0",
                "7f00-7f01 rw-p 0 0:0",
                "7f00-7f01 rw-p 0 0:0 x",
                "-- - - -:- -",
        };
        uint32_t major_number, minor_number;
        char range[64];
        uint64_t inode;

        assert_int_equal(maps_line_parse("7f00-7f01 rw-p 00000000 00:00 0   [heap]", &major_number,
                                         &minor_number, &inode, range, sizeof range),
                        -ENOENT);
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_int_equal(maps_line_parse(lines[i], &major_number, &minor_number, &inode, range,
                                                 sizeof range),
                                -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_start_time_is_read_behind_any_name),
                cmocka_unit_test(test_a_torn_stat_is_refused),
                cmocka_unit_test(test_the_real_uid_is_the_first),
                cmocka_unit_test(test_we_are_found_until_we_are_somebody_else),
                cmocka_unit_test(test_a_zombie_is_gone),
                cmocka_unit_test(test_a_record_reads_back),
                cmocka_unit_test(test_a_record_keeps_only_programs_that_are_not_gone),
                cmocka_unit_test(test_a_torn_last_line_of_a_record_does_not_count),
                cmocka_unit_test(test_more_processes_than_there_is_room_for_are_left_out),
                cmocka_unit_test(test_a_record_of_somebody_else_is_refused),
                cmocka_unit_test(test_a_mapping_is_read_from_its_line),
                cmocka_unit_test(test_what_maps_no_file_is_passed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
