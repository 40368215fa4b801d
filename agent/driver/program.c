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

#define BLANKS " \t"

/* What a child's ends are. */
typedef struct Ends {
        int go_fd; /* a byte comes when the program was recorded */
        int output_fd;
        int error_fd; /* the errno of a failed exec; closed by a good one */
} Ends;

/* PATH, LC_ALL and what else the program is to have. NULL without memory. */
static char** environment_new(char *const *more) {
        static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    locale[] = "LC_ALL=C";
        size_t n = strv_length(more);
        char **environment = calloc(n + 3, sizeof *environment);

        if (!environment)
                return NULL;
        environment[0] = path;
        environment[1] = locale;
        for (size_t i = 0; i < n; i++)
                environment[i + 2] = more[i];
        return environment;
}

static bool has_root(const Program *program) {
        return program->root && !streq(program->root, "/");
}

/* Standard input is nothing, the outputs go to the pipe. 0 · -errno. */
static int streams_set(const Program *program, int output_fd) {
        CLEANUP(fd_close) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null_fd >= 0)
                (void) dup2(null_fd, STDIN_FILENO);
        if (dup2(program->errors_only && null_fd >= 0 ? null_fd : output_fd, STDOUT_FILENO) < 0 ||
                        dup2(output_fd, STDERR_FILENO) < 0)
                return -errno;
        return 0;
}

static _Noreturn void exec_program(const Program *program, char *const *environment, const Ends *ends) {
        int error;
        char go;

        (void) setpgid(0, 0);
        if (read(ends->go_fd, &go, 1) != 1)
                _exit(EXIT_FAILURE);

        error = -streams_set(program, ends->output_fd);
        if (error == 0 && has_root(program) && chroot(program->root) < 0)
                error = errno;
        if (error == 0 && chdir("/") < 0)
                error = errno;
        if (error == 0) {
                /* execvpe looks into this process's own PATH. */
                (void) putenv(environment[0]);
                (void) execvpe(program->argv[0], program->argv, environment);
                error = errno;
        }

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

/* Collects output up to its end, or to that of the process and what is there then, dropping what is too
 * much: what the process has started may keep the pipe open for as long as it likes. 0 · -ETIMEDOUT ·
 * -errno. */
static int read_output(int fd, int pidfd, usec_t deadline_usec, char **ret) {
        CLEANUP(free_ptr) char *output = NULL;
        bool ended = pidfd < 0;
        char rest[4096];
        size_t size = 0;

        output = malloc(PROGRAM_OUTPUT_MAX + 1);
        if (!output)
                return -ENOMEM;

        for (;;) {
                struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
                size_t room = PROGRAM_OUTPUT_MAX - size;
                ssize_t n;
                int r;

                r = poll(fds, ended ? 1 : 2, ended ? 0 : poll_timeout_msec(deadline_usec));
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r == 0 && !ended)
                        return -ETIMEDOUT;
                if (r == 0)
                        break;
                if (r < 0)
                        continue;
                ended = ended || fds[1].revents != 0;
                if (fds[0].revents == 0)
                        continue;
                n = room > 0 ? read(fd, output + size, room) : read(fd, rest, sizeof rest);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        break;
                if (n > 0 && room > 0)
                        size += (size_t) n;
                if (now_monotonic_usec() >= deadline_usec)
                        return -ETIMEDOUT;
        }

        output[size] = '\0';
        *ret = take_ptr(&output);
        return 0;
}

/* Waits for a process, by its pidfd or, where it is -1, without asking how long. What it leaves in its
 * group is killed while its pid is still its own. 0 · -ETIMEDOUT: it is not gone · -errno. */
static int process_wait(pid_t pid, int pidfd, bool alone, usec_t deadline_usec, int *ret_status) {
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

        while (pidfd >= 0 && poll_fd.revents == 0) {
                int r = poll(&poll_fd, 1, poll_timeout_msec(deadline_usec));

                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r == 0)
                        return -ETIMEDOUT;
        }
        if (alone)
                (void) kill(-pid, SIGKILL);
        return waitpid(pid, ret_status, 0) < 0 ? -errno : 0;
}

/* The whole group: a query may be a script. If the driver does not let it go, the service sees it in the
 * record. */
static void program_kill(pid_t pid, int pidfd) {
        int status;

        (void) kill(-pid, SIGKILL);
        (void) kill(pid, SIGKILL);
        (void) process_wait(pid, pidfd, true, now_monotonic_usec() + USEC_PER_SEC, &status);
}

/* Follows a program that was let go. */
static int program_follow(const Program *program, const ProcessId *id, int output_fd, int error_fd,
                ProgramResult *ret) {
        CLEANUP(free_ptr) char *output = NULL;
        CLEANUP(fd_close) int pidfd = -1;
        int r, error, status;

        r = process_open(id, &pidfd);
        if (r < 0 && r != -ESRCH)
                return r;
        r = read_output(output_fd, pidfd, program->deadline_usec, &output);
        if (r >= 0)
                r = process_wait(id->pid, pidfd, program->alone, program->deadline_usec, &status);
        if (r < 0) {
                program_kill(id->pid, pidfd);
                return r;
        }
        if (read(error_fd, &error, sizeof error) == (ssize_t) sizeof error)
                return error > 0 ? -error : -EIO;

        ret->status = status;
        ret->output = take_ptr(&output);
        return 0;
}

int program_run(const Task *task, const Program *program, ProgramResult *ret) {
        CLEANUP(fd_close)
        int go_read = -1, go_write = -1, output_read = -1, output_write = -1, error_read = -1,
            error_write = -1;
        CLEANUP(free_ptr) char **environment = NULL;
        ProcessId id = {};
        int fds[2], r;

        environment = environment_new(program->environment);
        if (!environment)
                return -ENOMEM;
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
                exec_program(program, environment, &(Ends){ go_read, output_write, error_write });
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
        return program_follow(program, &id, output_read, error_read, ret);
}

const char* program_words(const ProgramResult *result) {
        const char *words = text_strip(result->output);

        return words[0] ? words : "it does not say why";
}

int command_split(const char *command, char ***ret) {
        CLEANUP(strv_free_ptr) char **argv = NULL;
        CLEANUP(free_ptr) char *copy = NULL;
        char *rest, *word;
        int r;

        copy = strdup(command);
        if (!copy)
                return -ENOMEM;
        rest = copy;
        while ((word = strtok_r(rest, BLANKS, &rest))) {
                r = strv_append(&argv, word);
                if (r < 0)
                        return r;
        }
        if (!argv)
                return -EINVAL;
        *ret = take_ptr(&argv);
        return 0;
}
