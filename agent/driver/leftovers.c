/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/owner.h"
#include "agent/driver/process.h"
#include "agent/driver/vendor.h"

/* After SIGKILL a process that is not stuck in a driver is gone in no time. */
#define KILL_WAIT_USEC (2 * USEC_PER_SEC)

/* A process that is to end. */
typedef struct Leftover {
        const GpuHolder *holder; /* one of its GPUs */
        int pidfd;
} Leftover;

typedef struct Leftovers {
        Leftover *items;
        size_t n;
} Leftovers;

static void leftovers_done(Leftovers *leftovers) {
        for (size_t i = 0; i < leftovers->n; i++)
                fd_close(&leftovers->items[i].pidfd);
        free(leftovers->items);
}

static const char* tenant_of(const Task *task, const char *uuid) {
        for (size_t i = 0; task->uuids[i]; i++)
                if (streq(task->uuids[i], uuid))
                        return task->tenants[i];
        return "";
}

/* A descriptor of the holder if it is proven to be what its GPU's tenant left behind. 0 · -EPERM it is not ·
 * -ESRCH it is gone · -errno. */
static int leftover_open(const Task *task, const GpuHolder *holder, int *ret_pidfd) {
        const ProcessId id = { .pid = holder->pid, .start_time = holder->start_time };
        CLEANUP(fd_close) int pidfd = -1, process_fd = -1;
        char path[sizeof "/proc/" + 11];
        struct pollfd poll_fd;
        OwnerTenant tenant;
        uid_t uid;
        int r;

        if (owner_tenant_parse(tenant_of(task, holder->uuid), &tenant) < 0)
                return -EPERM;

        /* From here on the pid is that of this very process, as long as it has not ended: what is read
         * after the descriptor was opened, and before it is looked at once more, is about it and nobody
         * else. */
        r = process_open(&id, &pidfd);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof path, "/proc/%d", (int) id.pid);
        process_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (process_fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        r = process_uid_read(id.pid, &uid);
        if (r < 0)
                return r;
        if (!owner_is_tenant(process_fd, uid, &tenant))
                return -EPERM;
        poll_fd = (struct pollfd){ .fd = pidfd, .events = POLLIN };
        if (poll(&poll_fd, 1, 0) != 0)
                return -ESRCH;

        *ret_pidfd = take_fd(&pidfd);
        return 0;
}

/* 0 · -ENOMEM. */
static int leftovers_find(const Task *task, const Answer *found, Leftovers *leftovers) {
        leftovers->items = calloc(found->n + 1, sizeof *leftovers->items);
        if (!leftovers->items)
                return -ENOMEM;

        /* By process: one that holds several GPUs is there several times in a row. The proof for one GPU
         * will do. */
        for (size_t i = 0; i < found->n; i++) {
                const GpuHolder *holder = &found->holders[i];
                int pidfd = -1;

                if (leftovers->n > 0 && leftovers->items[leftovers->n - 1].holder->pid == holder->pid)
                        continue;
                if (leftover_open(task, holder, &pidfd) >= 0)
                        leftovers->items[leftovers->n++] = (Leftover){ .holder = holder, .pidfd = pidfd };
        }
        return 0;
}

static void leftovers_signal(const Leftovers *leftovers, int number) {
        for (size_t i = 0; i < leftovers->n; i++)
                (void) syscall(SYS_pidfd_send_signal, leftovers->items[i].pidfd, number, NULL, 0);
}

/* Waits until all of them are gone, or the time is up. 1 they are · 0. */
static int leftovers_wait(const Leftovers *leftovers, usec_t deadline_usec) {
        for (size_t i = 0; i < leftovers->n;) {
                struct pollfd poll_fd = { .fd = leftovers->items[i].pidfd, .events = POLLIN };
                usec_t now_usec = now_monotonic_usec();
                int msec = now_usec < deadline_usec ? (int) ((deadline_usec - now_usec) / USEC_PER_MSEC + 1)
                                                    : 0;
                int r = poll(&poll_fd, 1, msec);

                if (r > 0)
                        i++;
                else if (r == 0)
                        return 0;
                else if (errno != EINTR)
                        return 0;
        }
        return 1;
}

/* For the log: who was told to end. */
static void leftovers_tell(const Leftovers *leftovers, const Task *task, bool killed, Answer *answer) {
        char names[1024], one[256];
        size_t n = 0;

        for (size_t i = 0; i < leftovers->n && n < sizeof names; i++) {
                const GpuHolder *holder = leftovers->items[i].holder;

                gpu_holder_format(holder, one, sizeof one);
                n += (size_t) snprintf(names + n, sizeof names - n, "%s%s of %s", i > 0 ? ", " : "", one,
                                tenant_of(task, holder->uuid));
        }
        answer_warn(answer, "%zu left behind %s: %s", leftovers->n, killed ? "had to be killed" : "ended",
                        names);
}

/* As long as the site wants them to have, and as there is time for SIGKILL and a second search. */
static usec_t grace_end(const Task *task) {
        usec_t now_usec = now_monotonic_usec(), grace_usec = task->config->handover.kill_grace_usec,
               half_usec;

        half_usec = task->deadline_usec > now_usec ? (task->deadline_usec - now_usec) / 2 : 0;
        return now_usec + (grace_usec < half_usec ? grace_usec : half_usec);
}

/* 1 some were told to end · 0 there are none · -errno. */
static int leftovers_end(const Task *task, Answer *answer) {
        CLEANUP(leftovers_done) Leftovers leftovers = {};
        bool killed;
        int r;

        r = leftovers_find(task, answer, &leftovers);
        if (r < 0 || leftovers.n == 0)
                return r;

        leftovers_signal(&leftovers, SIGTERM);
        leftovers_signal(&leftovers, SIGCONT); /* one that was stopped has to wake up for it */
        killed = !leftovers_wait(&leftovers, grace_end(task));
        if (killed) {
                leftovers_signal(&leftovers, SIGKILL);
                (void) leftovers_wait(&leftovers, now_monotonic_usec() + KILL_WAIT_USEC);
        }
        leftovers_tell(&leftovers, task, killed, answer);
        return 1;
}

void leftovers_run(const Task *task, Answer *answer) {
        int r;

        holders_run(task, answer);
        if (answer->error != ANSWER_OK || task->config->handover.leftovers == LEFTOVERS_REFUSE)
                return;

        r = leftovers_end(task, answer);
        if (r < 0)
                answer_fail(answer, ANSWER_FAILED, "cannot look for leftovers: %s", strerror(-r));
        if (r > 0) {
                answer_done(answer);
                holders_run(task, answer); /* who is left? */
        }
}
