/* SPDX-License-Identifier: MIT */
#include "cli/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"
#include "cli/hosts-report.h"

/* At a time. Each has a process and an ssh, and a tray that does not answer keeps its place for some
 * seconds. */
#define RUNNING_MAX 64

typedef struct HostRun {
        pid_t pid;
        int fd; /* its output; -1: it has ended, or not begun */
} HostRun;

typedef struct Runs {
        const Verb *verb;
        const Options *options;
        char **hosts;
        HostRun *runs;
        size_t n, n_started, n_running;
        bool failed;
} Runs;

int hosts_check(char **hosts, Failure *failure) {
        STRV_FOREACH (host, hosts)
                if (!host_is_valid(*host))
                        return failure_set(failure, CLI_USAGE,
                                        "'%s' is no tray, such as sched-worker1 or operator@sched-worker1",
                                        *host);
        return 0;
}

int hosts_parse(const char *text, char ***ret, Failure *failure) {
        CLEANUP(strv_free_ptr) char **all = NULL, **hosts = NULL;
        int r;

        r = list_parse(text, &all);
        if (r == -EINVAL)
                return failure_set(failure, CLI_USAGE, "'%s' is no list of trays", text);
        STRV_FOREACH (host, all)
                if (r >= 0 && !strv_contains(hosts, *host))
                        r = strv_append(&hosts, *host);
        if (r < 0)
                return failure_errno(failure, r, "cannot read the list of trays");
        r = hosts_check(hosts, failure);
        if (r < 0)
                return r;

        *ret = take_ptr(&hosts);
        return 0;
}

void host_name_local(char *ret, size_t size) {
        if (gethostname(ret, size) < 0)
                ret[0] = '\0';
        ret[size - 1] = '\0';
        ret[strcspn(ret, ".")] = '\0';
}

bool host_is_local(const char *host) {
        char name[256];

        host_name_local(name, sizeof name);
        return streq(host, name);
}

static int run_for(const Verb *verb, const Options *options, const char *host, int argc, char **argv) {
        Options one = *options;

        if (!host_is_local(host))
                one.host = host;
        print_set_tray(host_name(host));
        return verb->run(&one, argc, argv);
}

/* 1: this is the tray's own process now · 0: it runs · negative errno. */
static int start(Runs *runs) {
        HostRun *run = &runs->runs[runs->n_started];
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        run->pid = fork();
        if (run->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
                if (dup2(fds[1], STDOUT_FILENO) < 0)
                        _exit(CLI_FAILED);
                (void) close(fds[0]);
                if (fds[1] != STDOUT_FILENO) /* there may have been none */
                        (void) close(fds[1]);
                return 1;
        }
        r = run->pid < 0 ? -errno : 0;
        (void) close(fds[1]);
        if (r < 0) {
                (void) close(fds[0]);
                return r;
        }
        run->fd = fds[0];
        runs->n_started++;
        runs->n_running++;
        return 0;
}

static void end(Runs *runs, size_t i) {
        HostRun *run = &runs->runs[i];
        int status;

        fd_close(&run->fd);
        run->fd = -1;
        runs->n_running--;
        while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
                continue;
        if (WIFSIGNALED(status))
                print_complaint("%s: ended by signal %d", host_name(runs->hosts[i]), WTERMSIG(status));
        if (!WIFEXITED(status) || WEXITSTATUS(status) != CLI_DONE)
                runs->failed = true;
}

static int read_run(Runs *runs, size_t i, Report *report) {
        char part[16 << 10];
        ssize_t n;

        n = read(runs->runs[i].fd, part, sizeof part);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n > 0)
                return report_add(report, i, part, (size_t) n);
        end(runs, i);
        return report_end(report, i);
}

/* One round of those that run. 0 · negative errno. */
static int turn(Runs *runs, Report *report) {
        struct pollfd items[RUNNING_MAX];
        size_t which[RUNNING_MAX], n = 0;
        usec_t now = now_monotonic_usec(), due = report_due_usec(report);
        int r, timeout_msec = -1;

        for (size_t i = 0; i < runs->n_started; i++)
                if (runs->runs[i].fd >= 0) {
                        which[n] = i;
                        items[n++] = (struct pollfd){ .fd = runs->runs[i].fd, .events = POLLIN };
                }
        if (due != USEC_INFINITY)
                timeout_msec = due > now ? (int) ((due - now) / USEC_PER_MSEC) + 1 : 0;
        r = poll(items, n, timeout_msec);
        if (r < 0 && errno != EINTR)
                return -errno;

        for (size_t i = 0; r > 0 && i < n; i++)
                if (items[i].revents != 0) {
                        int q;

                        q = read_run(runs, which[i], report);
                        if (q < 0)
                                return q;
                }
        return report_turn(report);
}

static int run_many(Runs *runs, int argc, char **argv) {
        CLEANUP(report_free_ptr) Report *report = NULL;
        Options each = *runs->options;
        int r;

        each.batch = true;
        r = report_new(runs->verb, runs->options, runs->hosts, &report);
        if (r >= 0)
                each.output = report_output(report);
        while (r >= 0 && (runs->n_started < runs->n || runs->n_running > 0)) {
                if (runs->n_started < runs->n && runs->n_running < RUNNING_MAX) {
                        r = start(runs);
                        if (r > 0)
                                return run_for(runs->verb, &each, runs->hosts[runs->n_started], argc, argv);
                } else {
                        r = turn(runs, report);
                }
        }
        if (r >= 0)
                r = report_finish(report);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot ask the trays: %s", strerror(-r));
        return runs->failed ? CLI_FAILED : CLI_DONE;
}

int hosts_run(const Verb *verb, const Options *options, char **hosts, int argc, char **argv) {
        CLEANUP(free_ptr) HostRun *runs = NULL;
        size_t n = strv_length(hosts);

        if (n == 1)
                return run_for(verb, options, hosts[0], argc, argv);
        runs = calloc(n, sizeof *runs);
        if (!runs)
                return fail_with(CLI_FAILED, "out of memory");
        for (size_t i = 0; i < n; i++)
                runs[i].fd = -1;
        return run_many(&(Runs){ .verb = verb, .options = options, .hosts = hosts, .runs = runs, .n = n },
                        argc, argv);
}
