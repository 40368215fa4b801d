/* SPDX-License-Identifier: MIT */
/* gpuagentctl metrics: the file that the agent keeps for Prometheus. There is one writer, so what is scraped
 * by the textfile collector and what is printed here cannot differ. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/ssh.h"

#define METRICS_PATH     "/run/gpuagent/metrics.prom"
#define METRICS_SIZE_MAX (64 << 20)

/* For ssh to get there, and for a file of a few kilobytes. */
#define REMOTE_TIMEOUT_USEC (25 * USEC_PER_SEC)

/* Collects what comes until the other side ends. 0 · -ETIMEDOUT · -errno. */
static int read_until_end(int fd, usec_t deadline_usec, FILE *ret) {
        for (;;) {
                usec_t now = now_monotonic_usec();
                struct pollfd item = { .fd = fd, .events = POLLIN };
                char part[16 << 10];
                ssize_t n;
                int r;

                if (now >= deadline_usec)
                        return -ETIMEDOUT;
                r = poll(&item, 1, (int) ((deadline_usec - now) / USEC_PER_MSEC) + 1);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r <= 0)
                        continue;
                n = read(fd, part, sizeof part);
                if (n == 0)
                        return 0;
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return -errno;
                if (n > 0)
                        (void) fwrite(part, 1, (size_t) n, ret);
        }
}

/* The file of another tray. 0 and *ret (to be freed) · negative, and *failure says why. */
static int read_remote(const Options *options, char **ret, Failure *failure) {
        usec_t timeout = options->timeout_usec > 0 ? options->timeout_usec : REMOTE_TIMEOUT_USEC;
        CLEANUP(fd_close) int fd = -1;
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        CLEANUP(ssh_done) Ssh ssh = {};
        int r;

        r = file ? ssh_start(options->host, "cat " METRICS_PATH, options->batch, &ssh, &fd) : -ENOMEM;
        if (r < 0)
                return failure_errno(failure, r, "cannot run ssh");
        (void) shutdown(fd, SHUT_WR); /* nothing comes from here */
        r = read_until_end(fd, usec_add(now_monotonic_usec(), timeout), file);
        if (r == -ETIMEDOUT)
                return failure_set(failure, CLI_NO_AGENT, "ssh does not bring " METRICS_PATH " in time");
        if (r < 0)
                return failure_errno(failure, r, "cannot read what ssh says");
        r = text_stream_end(&stream);
        if (r < 0)
                return failure_errno(failure, r, "cannot read what ssh says");
        if (stream.size == 0 || stream.text[stream.size - 1] != '\n')
                return ssh_failure(&ssh, "ssh does not bring " METRICS_PATH, failure);

        *ret = take_ptr(&stream.text);
        return 0;
}

int verb_metrics(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        if (options->host) {
                if (read_remote(options, &text, &failure) < 0)
                        return failure_report(&failure);
                (void) fputs(text, stdout);
                return CLI_DONE;
        }
        r = file_read(AT_FDCWD, METRICS_PATH, METRICS_SIZE_MAX, &text, NULL);
        if (r == -ENOENT)
                return fail_with(CLI_NO_AGENT,
                                "there is no " METRICS_PATH ": gpuagentd was not started in this boot; "
                                "start it with: systemctl start gpuagentd");
        if (r == -EACCES)
                return fail_with(CLI_DENIED, "cannot read " METRICS_PATH ": %s", strerror(-r));
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot read " METRICS_PATH ": %s", strerror(-r));
        (void) fputs(text, stdout);
        return CLI_DONE;
}
