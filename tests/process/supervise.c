/* SPDX-License-Identifier: MIT */
/* Runs one service as systemd would, where there is no systemd: it hands over a listening socket and starts
 * the program at the first connection, takes its notifications, and starts it again when it dies.
 *
 *     supervise --name NAME [--user USER] [--listen PATH --owner USER] [--notify] [--watchdog-usec N] --
 * PROGRAM ARG...
 *
 * It returns once the service is ready, and stays in the background until SIGTERM, which it passes on. In
 * /run/tray: NAME.pid is the supervisor, NAME.main-pid the service, NAME.log its output, NAME.notify-log
 * what it told. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/io.h"

#define FOLDER           "/run/tray"
#define RESTART_USEC     (100 * USEC_PER_MSEC)
#define FIRST_PASSED_FD  3
#define NOTIFICATION_MAX 4096
#define EXIT_EXEC        203 /* as systemd has it; there is no use in another start */

typedef struct Service {
        const char *name;
        const char *user;
        const char *listen_path;
        const char *listen_owner;
        const char *watchdog_usec;
        bool notify;
        char **argv;

        int listen_fd;
        int notify_fd;
        int signal_fd;
        int ready_fd; /* the caller waits at the other end */
        pid_t pid;    /* 0: not running */
        bool stopping;
} Service;

static void die(const char *format, ...) PRINTF_FORMAT(1, 2) __attribute__((noreturn));
static void die(const char *format, ...) {
        va_list arguments;
        int error = errno;

        (void) fputs("supervise: ", stderr);
        va_start(arguments, format);
        (void) vfprintf(stderr, format, arguments);
        va_end(arguments);
        (void) fprintf(stderr, ": %s\n", strerror(error));
        _exit(1);
}

static void write_file(const Service *service, const char *suffix, const char *text, int flags) {
        CLEANUP(fd_close) int fd = -1;
        char path[256];

        (void) snprintf(path, sizeof path, FOLDER "/%s.%s", service->name, suffix);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
        if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
                die("Cannot write %s", path);
}

static void write_pid(const Service *service, const char *suffix, pid_t pid) {
        char text[16];

        (void) snprintf(text, sizeof text, "%d\n", (int) pid);
        write_file(service, suffix, text, O_TRUNC);
}

static int bind_socket(const char *path, int type, mode_t mode, const char *owner) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        if (strlen(path) >= sizeof address.sun_path) {
                errno = ENAMETOOLONG;
                die("%s", path);
        }
        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        (void) unlink(path); /* of a run before this one */

        fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) < 0 || chmod(path, mode) < 0)
                die("Cannot bind %s", path);
        if (owner) {
                const struct passwd *user = getpwnam(owner);

                if (!user || chown(path, user->pw_uid, user->pw_gid) < 0)
                        die("Cannot give %s to %s", path, owner);
        }
        if (type == SOCK_STREAM && listen(fd, SOMAXCONN) < 0)
                die("Cannot listen on %s", path);
        return fd;
}

static void notify_path(const Service *service, char *ret, size_t size) {
        (void) snprintf(ret, size, FOLDER "/%s.notify", service->name);
}

static void become_user(const char *name) {
        const struct passwd *user = getpwnam(name);

        if (!user || initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
                        setuid(user->pw_uid) < 0)
                die("Cannot become %s", name);
}

/* Becomes the program, with what systemd would give it. */
static void run_program(const Service *service) __attribute__((noreturn));
static void run_program(const Service *service) {
        char text[256];
        sigset_t none;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);

        if (service->listen_fd >= 0) {
                /* dup2() makes a descriptor that stays open over exec, but not onto itself. */
                if (service->listen_fd == FIRST_PASSED_FD ? fcntl(FIRST_PASSED_FD, F_SETFD, 0) < 0
                                                          : dup2(service->listen_fd, FIRST_PASSED_FD) < 0)
                        die("Cannot pass the socket on");
                (void) snprintf(text, sizeof text, "%d", (int) getpid());
                (void) setenv("LISTEN_PID", text, 1);
                (void) setenv("LISTEN_FDS", "1", 1);
        }
        if (service->notify) {
                notify_path(service, text, sizeof text);
                (void) setenv("NOTIFY_SOCKET", text, 1);
        }
        if (service->watchdog_usec) {
                (void) snprintf(text, sizeof text, "%d", (int) getpid());
                (void) setenv("WATCHDOG_PID", text, 1);
                (void) setenv("WATCHDOG_USEC", service->watchdog_usec, 1);
        }
        if (service->user)
                become_user(service->user);

        (void) execv(service->argv[0], service->argv);
        (void) fprintf(stderr, "supervise: Cannot execute %s: %m\n", service->argv[0]);
        _exit(EXIT_EXEC);
}

static void service_start(Service *service) {
        service->pid = fork();
        if (service->pid < 0)
                die("Cannot fork");
        if (service->pid == 0)
                run_program(service);
        write_pid(service, "main-pid", service->pid);
}

static void service_ready(Service *service) {
        if (service->ready_fd < 0)
                return;
        (void) fd_write_all(service->ready_fd, "1", 1); /* nobody there to hear it: no harm */
        fd_close(&service->ready_fd);
        service->ready_fd = -1;
}

/* Returns whether there was one. */
static bool on_notification(Service *service) {
        char text[NOTIFICATION_MAX], control[CMSG_SPACE(sizeof(int) * 8)];
        struct iovec part = { .iov_base = text, .iov_len = sizeof text - 2 };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
        };
        ssize_t n = recvmsg(service->notify_fd, &message, MSG_CMSG_CLOEXEC);

        if (n < 0)
                return false;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                        size_t n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                        int fd;

                        for (size_t i = 0; i < n_fds; i++) {
                                memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
                                (void) close(fd);
                        }
                }

        text[n] = '\n';
        text[n + 1] = '\0';
        write_file(service, "notify-log", text, O_APPEND);
        if (strstr(text, "READY=1"))
                service_ready(service);
        return true;
}

/* Returns whether the service is to be started again. */
static bool on_death(Service *service) {
        int status;

        if (service->pid == 0 || waitpid(service->pid, &status, WNOHANG) != service->pid)
                return false;
        service->pid = 0;
        while (service->notify && on_notification(service))
                ; /* its last words */
        (void) fprintf(stderr, "supervise: %s ended with %s %d\n", service->name,
                        WIFSIGNALED(status) ? "signal" : "code",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));

        if (service->stopping || (status == 0 && service->listen_fd < 0))
                exit(0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_EXEC)
                exit(1);
        (void) usleep(RESTART_USEC);
        return service->listen_fd < 0;
}

static void on_signal(Service *service, bool *ret_start) {
        struct signalfd_siginfo info;

        if (read(service->signal_fd, &info, sizeof info) != sizeof info)
                return;
        if (info.ssi_signo == SIGCHLD) {
                *ret_start = on_death(service);
                return;
        }
        service->stopping = true;
        if (service->pid == 0)
                exit(0);
        (void) kill(service->pid, SIGTERM);
}

static void supervise(Service *service) __attribute__((noreturn));
static void supervise(Service *service) {
        bool start = service->listen_fd < 0;

        if (!start)
                service_ready(service); /* whoever connects is served */
        for (;;) {
                struct pollfd fds[] = {
                        { .fd = service->signal_fd, .events = POLLIN },
                        { .fd = service->notify_fd, .events = POLLIN },
                        { .fd = service->pid == 0 ? service->listen_fd : -1, .events = POLLIN },
                };

                if (start) {
                        service_start(service);
                        start = false;
                        if (!service->notify)
                                service_ready(service);
                        continue;
                }
                if (poll(fds, ELEMENTSOF(fds), -1) < 0)
                        continue;
                if (fds[1].revents & POLLIN)
                        (void) on_notification(service);
                if (fds[0].revents & POLLIN)
                        on_signal(service, &start);
                else if (fds[2].revents & POLLIN && !service->stopping)
                        start = true;
        }
}

static void parse_arguments(int argc, char **argv, Service *service) {
        static const struct option options[] = {
                { "name", required_argument, NULL, 'n' },
                { "user", required_argument, NULL, 'u' },
                { "listen", required_argument, NULL, 'l' },
                { "owner", required_argument, NULL, 'o' },
                { "watchdog-usec", required_argument, NULL, 'w' },
                { "notify", no_argument, NULL, 'y' },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0)
                switch (c) {
                case 'n': service->name = optarg; break;
                case 'u': service->user = optarg; break;
                case 'l': service->listen_path = optarg; break;
                case 'o': service->listen_owner = optarg; break;
                case 'w': service->watchdog_usec = optarg; break;
                case 'y': service->notify = true; break;
                default: exit(2);
                }
        service->argv = argv + optind;
        if (!service->name || !service->argv[0]) {
                (void) fputs("supervise: --name and a program are needed\n", stderr);
                exit(2);
        }
}

/* Leaves the caller waiting at a pipe: it goes on when a byte comes, and fails when there is none. */
static void go_to_background(Service *service) {
        int ends[2], log;
        char path[256], byte;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                die("Cannot make a pipe");
        pid = fork();
        if (pid < 0)
                die("Cannot fork");
        if (pid > 0) {
                (void) close(ends[1]);
                _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
        }

        (void) close(ends[0]);
        (void) setsid();
        service->ready_fd = ends[1];
        (void) snprintf(path, sizeof path, FOLDER "/%s.log", service->name);
        log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
                die("Cannot open %s", path);
        (void) close(log);
        log = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (log < 0 || dup2(log, STDIN_FILENO) < 0)
                die("Cannot open /dev/null");
        (void) close(log);
}

int main(int argc, char **argv) {
        Service service = { .listen_fd = -1, .notify_fd = -1, .signal_fd = -1, .ready_fd = -1 };
        char path[256];
        sigset_t signals;

        parse_arguments(argc, argv, &service);
        if (service.listen_path)
                service.listen_fd =
                                bind_socket(service.listen_path, SOCK_STREAM, 0600, service.listen_owner);
        if (service.notify) {
                notify_path(&service, path, sizeof path);
                service.notify_fd = bind_socket(path, SOCK_DGRAM, 0666, NULL);
        }
        go_to_background(&service);
        write_pid(&service, "pid", getpid());

        (void) signal(SIGPIPE, SIG_IGN);
        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGCHLD);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        service.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
        if (service.signal_fd < 0)
                die("Cannot take signals");
        supervise(&service);
}
