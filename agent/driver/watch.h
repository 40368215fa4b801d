/* SPDX-License-Identifier: MIT */
/* The processes that must be gone before another vendor operation may start. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/driver/record.h"

typedef struct Watched Watched;

/* Told about each one that is gone, and no longer in the set. `pidfd` is closed afterwards. */
typedef void (*WatchGone)(const ProcessId *id, int pidfd, void *userdata);

typedef struct WatchSet {
        sd_event *event; /* not owned */
        WatchGone gone;
        void *userdata;
        Watched *watched[RECORD_PROCESSES_MAX];
        size_t n;
} WatchSet;

/* Adds one; the pidfd is handed over in any case. 0 · -ENOBUFS · -errno. */
int watch_add(WatchSet *set, const ProcessId *id, int pidfd);

/* Adds what a record names, is still there and not in the set. 0 · -errno of the first that cannot be
 * watched. */
int watch_add_recorded(WatchSet *set, const Record *record);

/* SIGKILL to each and to the process group that it leads. */
void watch_kill(const WatchSet *set);

/* The pid of the first, or 0. */
pid_t watch_first(const WatchSet *set);

void watch_done(WatchSet *set);
