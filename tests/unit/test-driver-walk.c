/* SPDX-License-Identifier: MIT */
/* The walk of /proc, with files in the place of device nodes: what counts is device and inode. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/driver/walk.h"

#define N_GPUS 3U

typedef struct Fixture {
        char folder[32];
        WalkGpu gpus[N_GPUS];
        pid_t holder;
        unsigned found[N_GPUS]; /* how often the holder was found to have it */
        int answer;             /* what on_found() says */
} Fixture;

static void node_path(const Fixture *f, unsigned i, char *ret, size_t size) {
        (void) snprintf(ret, size, "%s/nvidia%u", f->folder, i);
}

static int fixture_setup(void **state) {
        static Fixture f;

        /* A tmpfs: what /proc/PID/maps calls a file's device is another number on an overlay. */
        f = (Fixture){ .folder = "/dev/shm/test-walk-XXXXXX" };
        if (!mkdtemp(f.folder))
                return -errno;
        for (unsigned i = 0; i < N_GPUS; i++) {
                CLEANUP(fd_close) int fd = -1;
                char path[64];

                node_path(&f, i, path, sizeof path);
                fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0 || ftruncate(fd, 4096) < 0)
                        return -errno;
                f.gpus[i] = (WalkGpu){ .minor = i };
        }
        *state = &f;
        return 0;
}

static int fixture_teardown(void **state) {
        Fixture *f = *state;

        if (f->holder > 0) {
                (void) kill(f->holder, SIGKILL);
                (void) waitpid(f->holder, NULL, 0);
        }
        for (unsigned i = 0; i < N_GPUS; i++) {
                char path[64];

                node_path(f, i, path, sizeof path);
                (void) unlink(path);
        }
        return rmdir(f->folder) < 0 ? -errno : 0;
}

typedef enum HoldKind {
        HOLD_NOTHING,
        HOLD_OPEN,
        HOLD_PATH,
        HOLD_TWICE,
        HOLD_MAPPED,
        HOLD_RENAMED,
} HoldKind;

static int hold_in_child(const Fixture *f, HoldKind kind, unsigned i) {
        char path[64], other[80];
        int fd;

        node_path(f, i, path, sizeof path);
        fd = kind == HOLD_NOTHING ? 0 : open(path, (kind == HOLD_PATH ? O_PATH : O_RDWR) | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        switch (kind) {
        case HOLD_NOTHING:
        case HOLD_OPEN:
        case HOLD_PATH: return 0;
        case HOLD_TWICE: return dup(fd) < 0 ? -errno : 0;
        case HOLD_MAPPED:
                if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
                        return -errno;
                return close(fd) < 0 ? -errno : 0;
        case HOLD_RENAMED:
                (void) snprintf(other, sizeof other, "%s/other", f->folder);
                return link(path, other) < 0 || close(fd) < 0 || open(other, O_RDONLY | O_CLOEXEC) < 0 ||
                                                unlink(other) < 0
                                ? -errno
                                : 0;
        }
        return -EINVAL;
}

/* Starts a process that holds GPU i in some way. */
static void hold(Fixture *f, HoldKind kind, unsigned i) {
        CLEANUP(fd_close) int reader = -1, writer = -1;
        int fds[2];
        char ready;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        reader = fds[0], writer = fds[1];
        f->holder = fork();
        assert_true(f->holder >= 0);
        if (f->holder == 0) {
                if (hold_in_child(f, kind, i) >= 0)
                        (void) fd_write_all(writer, "", 1);
                for (;;)
                        (void) pause();
        }
        assert_int_equal(read(reader, &ready, 1), 1);
}

static int on_found(const WalkGpu *gpu, pid_t pid, int process_dir_fd, void *userdata) {
        Fixture *f = userdata;

        if (pid == f->holder)
                f->found[gpu - f->gpus]++;
        return f->answer;
}

static int walk(Fixture *f, const pid_t *except, size_t n_except) {
        return walk_processes(f->gpus, N_GPUS, f->folder, except, n_except, on_found, f);
}

static void test_an_open_node_is_found(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_OPEN, 1);
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[0], 0);
        assert_int_equal(f->found[1], 1);
        assert_int_equal(f->found[2], 0);
}

static void test_a_mapped_node_is_found(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_MAPPED, 2);
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[2], 1);
        assert_int_equal(f->found[0] + f->found[1], 0);
}

static void test_a_node_open_twice_is_found_once(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_TWICE, 0);
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[0], 1);
}

static void test_a_node_by_another_name_is_found(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_RENAMED, 0);
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[0], 1);
}

static void test_who_holds_nothing_is_not_found(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_NOTHING, 0);
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[0] + f->found[1] + f->found[2], 0);
}

static void test_a_descriptor_that_only_names_the_node_holds_nothing(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_PATH, 0);
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[0], 0);
}

static void test_an_excepted_process_is_passed_over(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_OPEN, 0);
        assert_int_equal(walk(f, &f->holder, 1), 0);
        assert_int_equal(f->found[0], 0);
}

static void test_a_gpu_without_a_minor_is_not_looked_for(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_OPEN, 0);
        f->gpus[0].minor = UNKNOWN_U32;
        assert_int_equal(walk(f, NULL, 0), 0);
        assert_int_equal(f->found[0], 0);
}

static void test_an_error_of_the_callee_ends_the_walk(void **state) {
        Fixture *f = *state;

        hold(f, HOLD_OPEN, 0);
        f->answer = -ENOMEM;
        assert_int_equal(walk(f, NULL, 0), -ENOMEM);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH_FIXTURE(test_an_open_node_is_found),
                WITH_FIXTURE(test_a_mapped_node_is_found),
                WITH_FIXTURE(test_a_node_open_twice_is_found_once),
                WITH_FIXTURE(test_a_node_by_another_name_is_found),
                WITH_FIXTURE(test_who_holds_nothing_is_not_found),
                WITH_FIXTURE(test_a_descriptor_that_only_names_the_node_holds_nothing),
                WITH_FIXTURE(test_an_excepted_process_is_passed_over),
                WITH_FIXTURE(test_a_gpu_without_a_minor_is_not_looked_for),
                WITH_FIXTURE(test_an_error_of_the_callee_ends_the_walk),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
