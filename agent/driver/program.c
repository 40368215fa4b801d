/* SPDX-License-Identifier: MIT */
#include "agent/driver/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/record.h"

/* What a child's ends are. */
typedef struct Ends {
        int go_fd; /* a byte comes when the program was recorded */
        int output_fd;
        int error_fd; /* the errno of a failed exec; closed by a good one */
} Ends;

static _Noreturn void exec_program(const char *root, char *const *argv, const Ends *ends) {
        static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    locale[] = "LC_ALL=C";
        static char *environment[] = { path, locale, NULL };
        int error, null_fd;
        char go;

        (void) setpgid(0, 0);
        if (read(ends->go_fd, &go, 1) != 1)
                _exit(EXIT_FAILURE);

        null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null_fd >= 0)
                (void) dup2(null_fd, STDIN_FILENO);
        if (dup2(ends->output_fd, STDOUT_FILENO) >= 0 && dup2(ends->output_fd, STDERR_FILENO) >= 0 &&
                        (streq(root, "/") || (chroot(root) >= 0 && chdir("/") >= 0))) {
                /* execvpe looks into this process's own PATH. */
                (void) putenv(path);
                (void) execvpe(argv[0], argv, environment);
        }

        error = errno;
        (void) fd_write_all(ends->error_fd, &error, sizeof error);
        _exit(EXIT_FAILURE);
}

static int poll_timeout_msec(usec_t deadline_usec) {
        usec_t now_usec = now_monotonic_usec(), left_usec;

        if (now_usec >= deadline_usec)
                return 0;
        left_usec = deadline_usec - now_usec;
        return left_usec > 3600 * USEC_PER_SEC ? 3600 * 1000 : (int) (left_usec / USEC_PER_MSEC + 1);
}

/* Collects output up to its end, dropping what is too much. 0 · -ETIMEDOUT · -errno. */
static int read_output(int fd, usec_t deadline_usec, char **ret) {
        CLEANUP(free_ptr) char *output = NULL;
        char rest[4096];
        size_t size = 0;

        output = malloc(PROGRAM_OUTPUT_MAX + 1);
        if (!output)
                return -ENOMEM;

        for (;;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                size_t room = PROGRAM_OUTPUT_MAX - size;
                ssize_t n;
                int r;

                r = poll(&poll_fd, 1, poll_timeout_msec(deadline_usec));
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r == 0)
                        return -ETIMEDOUT;
                n = room > 0 ? read(fd, output + size, room) : read(fd, rest, sizeof rest);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        break;
                if (n > 0 && room > 0)
                        size += (size_t) n;
        }

        output[size] = '\0';
        *ret = take_ptr(&output);
        return 0;
}

/* Waits for a process. 0 · -ETIMEDOUT: it is not gone · -errno. */
static int process_wait(const ProcessId *id, usec_t deadline_usec, int *ret_status) {
        CLEANUP(fd_close) int pidfd = -1;
        int r;

        r = process_open(id, &pidfd);
        if (r < 0 && r != -ESRCH)
                return r;
        if (r >= 0) {
                struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

                if (poll(&poll_fd, 1, poll_timeout_msec(deadline_usec)) == 0)
                        return -ETIMEDOUT;
        }
        return waitpid(id->pid, ret_status, 0) < 0 ? -errno : 0;
}

/* The whole group: a query may be a script. If the driver does not let it go, the service sees it in the
 * record. */
static void program_kill(const ProcessId *id) {
        int status;

        (void) kill(-id->pid, SIGKILL);
        (void) kill(id->pid, SIGKILL);
        (void) process_wait(id, now_monotonic_usec() + USEC_PER_SEC, &status);
}

/* Follows a program that was let go. */
static int program_follow(
                const ProcessId *id, int output_fd, int error_fd, usec_t deadline_usec, ProgramResult *ret) {
        CLEANUP(free_ptr) char *output = NULL;
        int r, error, status;

        r = read_output(output_fd, deadline_usec, &output);
        if (r >= 0)
                r = process_wait(id, deadline_usec, &status);
        if (r < 0) {
                program_kill(id);
                return r;
        }
        if (read(error_fd, &error, sizeof error) == (ssize_t) sizeof error)
                return error > 0 ? -error : -EIO;

        ret->status = status;
        ret->output = take_ptr(&output);
        return 0;
}

int program_run(const Task *task, const char *root, char *const *argv, usec_t deadline_usec,
                ProgramResult *ret) {
        CLEANUP(fd_close)
        int go_read = -1, go_write = -1, output_read = -1, output_write = -1, error_read = -1,
            error_write = -1;
        ProcessId id = {};
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        go_read = fds[0], go_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        output_read = fds[0], output_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        error_read = fds[0], error_write = fds[1];

        id.pid = fork();
        if (id.pid < 0)
                return -errno;
        if (id.pid == 0) {
                fd_close(&go_write); /* else its own end would keep it waiting when we die */
                exec_program(root, argv, &(Ends){ go_read, output_write, error_write });
        }
        (void) setpgid(id.pid, id.pid); /* on both sides, so that it is done whoever is first */
        fd_close(&output_write);
        fd_close(&error_write);
        output_write = error_write = -1;

        r = process_id_read(id.pid, &id);
        if (r >= 0)
                r = record_append(task->record, &id);
        if (r >= 0 && write(go_write, "", 1) != 1)
                r = -errno;
        if (r < 0) {
                (void) kill(id.pid, SIGKILL);
                (void) waitpid(id.pid, NULL, 0); /* it waits for our word, in no driver */
                return r;
        }
        return program_follow(&id, output_read, error_read, deadline_usec, ret);
}
