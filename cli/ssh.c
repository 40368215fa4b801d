/* SPDX-License-Identifier: MIT */
#include "cli/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

#define ERRORS_MAX 4096

/* The child's files: the socket is its stdin and stdout, the pipe its stderr. `apart`: out of the reach of a
 * terminal's ^C, and of its keyboard. 0 · negative errno. */
static int spawn(char *const argv[], int socket, int errors, bool apart, pid_t *ret) {
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        sigset_t none, fatal;
        int r;

        r = posix_spawn_file_actions_init(&files);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r != 0) {
                (void) posix_spawn_file_actions_destroy(&files);
                return -r;
        }

        (void) sigemptyset(&none);
        (void) sigemptyset(&fatal);
        (void) sigaddset(&fatal, SIGPIPE);
        r = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
        if (r == 0)
                r = posix_spawnattr_setsigmask(&attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(&attributes, &fatal);
        if (r == 0)
                r = posix_spawnattr_setflags(&attributes,
                                (short) (POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                (apart ? POSIX_SPAWN_SETPGROUP : 0)));
        if (r == 0)
                r = posix_spawnp(ret, argv[0], &files, &attributes, argv, environ);
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&files);
        return -r;
}

int ssh_start(const char *host, const char *command, bool batch, Ssh *ret, int *ret_fd) {
        /* A tray that dies in the middle of a reset is noticed. What a person's configuration forwards is
         * not needed here, and would be in the way when it is done for many trays. A banner is no error. */
        const char *argv[] = { "ssh", "-xT", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", "-o",
                "ClearAllForwardings=yes", "-o", "LogLevel=ERROR", "-o",
                batch ? "BatchMode=yes" : "BatchMode=no", "--", host, command, NULL };
        CLEANUP(fd_close) int ours = -1, theirs = -1, errors = -1, their_errors = -1;
        int fds[2], r;
        pid_t pid;

        if (!host_is_valid(host))
                return -EINVAL;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        errors = fds[0];
        their_errors = fds[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0 || fcntl(errors, F_SETFL, O_NONBLOCK) < 0)
                return -errno;

        r = spawn((char *const *) argv, theirs, their_errors, batch, &pid);
        if (r < 0)
                return r;

        *ret = (Ssh){ .pid = pid, .errors = take_fd(&errors) };
        *ret_fd = take_fd(&ours);
        return 0;
}

void ssh_done(Ssh *ssh) {
        if (ssh->pid > 0) {
                /* It may take a moment to go, which nobody has to wait for. */
                (void) kill(ssh->pid, SIGTERM);
                (void) waitpid(ssh->pid, NULL, WNOHANG);
                fd_close(&ssh->errors);
        }
        *ssh = (Ssh){};
}

int ssh_failure(Ssh *ssh, const char *otherwise, Failure *failure) {
        char text[ERRORS_MAX];
        char *line = text, *end;
        ssize_t n;

        n = read(ssh->errors, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        line = text_strip(text);
        end = strrchr(line, '\n');
        if (end)
                line = text_strip(end);
        return failure_set(failure, CLI_NO_AGENT, "%s", line[0] ? line : otherwise);
}
