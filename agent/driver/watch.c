/* SPDX-License-Identifier: MIT */
#include "agent/driver/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/base/io.h"

struct Watched {
        WatchSet *set;
        ProcessId id;
        int pidfd;
        sd_event_source *source;
};

static Watched* watched_free(Watched *watched) {
        if (!watched)
                return NULL;
        (void) sd_event_source_disable_unref(watched->source);
        fd_close(&watched->pidfd);
        free(watched);
        return NULL;
}

DEFINE_CLEANUP(Watched, watched_free_ptr, watched_free)

static int on_gone(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        CLEANUP(watched_free_ptr) Watched *watched = userdata;
        WatchSet *set = watched->set;
        size_t i = 0;

        while (set->watched[i] != watched)
                i++;
        memmove(&set->watched[i], &set->watched[i + 1], (set->n - i - 1) * sizeof set->watched[0]);
        set->n--;
        set->gone(&watched->id, fd, set->userdata);
        return 0;
}

int watch_add(WatchSet *set, const ProcessId *id, int pidfd) {
        CLEANUP(watched_free_ptr) Watched *watched = NULL;
        CLEANUP(fd_close) int fd = pidfd;
        int r;

        if (set->n == ELEMENTSOF(set->watched))
                return -ENOBUFS;
        watched = calloc(1, sizeof *watched);
        if (!watched)
                return -ENOMEM;
        watched->set = set;
        watched->id = *id;
        watched->pidfd = take_fd(&fd);
        r = sd_event_add_io(set->event, &watched->source, watched->pidfd, EPOLLIN, on_gone, watched);
        if (r < 0)
                return r;

        set->watched[set->n++] = take_ptr(&watched);
        return 0;
}

static bool watch_has(const WatchSet *set, const ProcessId *id) {
        for (size_t i = 0; i < set->n; i++)
                if (set->watched[i]->id.pid == id->pid)
                        return true;
        return false;
}

int watch_add_recorded(WatchSet *set, const Record *record) {
        int result = 0;

        for (size_t i = 0; i < record->n_processes; i++) {
                int pidfd, r;

                if (watch_has(set, &record->processes[i]))
                        continue;
                r = process_open(&record->processes[i], &pidfd);
                if (r >= 0)
                        r = watch_add(set, &record->processes[i], pidfd);
                if (r < 0 && r != -ESRCH && result == 0)
                        result = r;
        }
        return result;
}

void watch_kill(const WatchSet *set) {
        for (size_t i = 0; i < set->n; i++) {
                pid_t pid = set->watched[i]->id.pid;

                /* While the process that a pidfd of ours stands for is there, its number is nobody
                 * else's. */
                (void) kill(-pid, SIGKILL);
                (void) kill(pid, SIGKILL);
        }
}

pid_t watch_first(const WatchSet *set) {
        return set->n > 0 ? set->watched[0]->id.pid : 0;
}

void watch_done(WatchSet *set) {
        while (set->n > 0)
                (void) watched_free(set->watched[--set->n]);
}
