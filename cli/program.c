/* SPDX-License-Identifier: MIT */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/text-stream.h"

#define OUTPUT_MAX (256 << 10)

/* How long a killed child may take to be reaped. One in uninterruptible sleep stays, for slurmd to reap. */
#define REAP_USEC (200 * USEC_PER_MSEC)

/* How soon it is seen that the child has ended while something else keeps its output open. */
#define LOOK_MSEC 100

/* In the child: nothing of ours but its output. slurmd hands down a mask with SIGPIPE blocked. */
static void child_detach(int output) {
        sigset_t none;
        int null;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
                        dup2(output, STDERR_FILENO) < 0)
                _exit(127);
        (void) close_range(STDERR_FILENO + 1, UINT_MAX, 0); /* what slurmd may have left open in us */
}

static _Noreturn void child_exec(char *const argv[], int output) {
        char slurm_conf[512];
        char *environment[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "LC_ALL=C", NULL,
                NULL };
        const char *conf = getenv("SLURM_CONF");

        if (conf && snprintf(slurm_conf, sizeof slurm_conf, "SLURM_CONF=%s", conf) < (int) sizeof slurm_conf)
                environment[2] = slurm_conf;
        child_detach(output);
        if (chdir("/") < 0)
                _exit(127);
        (void) execve(argv[0], argv, environment);
        _exit(127);
}

static _Noreturn void child_exec_as_we_are(char *const argv[], int output) {
        child_detach(output);
        (void) setpgid(0, 0);
        (void) execvp(argv[0], argv);
        (void) dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
}

static int time_left_msec(usec_t deadline_usec) {
        usec_t now = now_monotonic_usec();

        if (now >= deadline_usec)
                return 0;
        return (int) ((deadline_usec - now) / USEC_PER_MSEC) + 1;
}

/* child_reap() still finds it. */
static bool child_has_ended(pid_t pid) {
        siginfo_t info = {};

        return waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Collects until the other side is closed, or the child has ended: what it leaves behind (ssh's master
 * process) may never close it. 0 · -ETIMEDOUT · -errno. */
static int output_read(int fd, pid_t pid, usec_t deadline_usec, FILE *ret) {
        size_t total = 0;

        for (;;) {
                struct pollfd item = { .fd = fd, .events = POLLIN };
                int r, left_msec = time_left_msec(deadline_usec);
                bool ended = child_has_ended(pid);
                char part[4096];
                ssize_t n;

                if (left_msec == 0)
                        return -ETIMEDOUT;
                r = poll(&item, 1, ended ? 0 : left_msec < LOOK_MSEC ? left_msec : LOOK_MSEC);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r == 0 && ended)
                        return 0;
                if (r <= 0)
                        continue;
                n = read(fd, part, sizeof part);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0 || (ended && total >= OUTPUT_MAX))
                        return 0;
                /* More is dropped; it is read all the same, or the child would block. */
                if (n > 0 && total < OUTPUT_MAX) {
                        (void) fwrite(part, 1, (size_t) n, ret);
                        total += (size_t) n;
                }
        }
}

/* 0: it exited 0 · 1: it did not · -ETIMEDOUT. A deadline in the past looks once. */
static int child_reap(pid_t pid, usec_t deadline_usec) {
        for (;;) {
                int status;
                pid_t reaped = waitpid(pid, &status, WNOHANG);

                if (reaped == pid)
                        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
                if (reaped < 0 && errno != EINTR)
                        return -errno;
                if (now_monotonic_usec() >= deadline_usec)
                        return -ETIMEDOUT;
                (void) poll(NULL, 0, 1); /* its output is closed, so it is about to end */
        }
}

static int run(void (*exec)(char *const argv[], int output), char *const argv[], usec_t deadline_usec,
                char **ret_output) {
        CLEANUP(fd_close) int from = -1;
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        int pipe_fds[2], r;
        pid_t pid;

        if (!file)
                return -ENOMEM;
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        from = pipe_fds[0];

        pid = fork();
        if (pid == 0)
                exec(argv, pipe_fds[1]);
        (void) close(pipe_fds[1]);
        if (pid < 0)
                return -EAGAIN;

        r = output_read(from, pid, deadline_usec, file);
        if (r >= 0)
                r = child_reap(pid, deadline_usec);
        if (r < 0) {
                (void) kill(-pid, SIGKILL); /* its group, if it has one of its own */
                (void) kill(pid, SIGKILL);
                (void) child_reap(pid, now_monotonic_usec() + REAP_USEC);
                return r;
        }

        return text_stream_take(&stream, ret_output) < 0 ? -ENOMEM : r;
}

int program_run(char *const argv[], usec_t deadline_usec, char **ret_output) {
        if (access(argv[0], X_OK) < 0)
                return -errno;
        return run(child_exec, argv, deadline_usec, ret_output);
}

int program_run_as_we_are(char *const argv[], usec_t deadline_usec, char **ret_output) {
        return run(child_exec_as_we_are, argv, deadline_usec, ret_output);
}
