/* SPDX-License-Identifier: MIT */
/* Who holds GPUs, as ListProcesses answers it. */
#pragma once

#include "cli/gpu.h"

typedef struct ProcessView {
        const GpuView *gpu; /* NULL for one that the tray does not have (any more) */
        const char *path;
        uint32_t pid, uid;
        const char *user, *command, *where;
        uint64_t used_bytes;
} ProcessView;

typedef struct ProcessList {
        sd_bus_message *reply; /* the strings are borrowed from it */
        ProcessView *processes;
        size_t n_processes;
} ProcessList;

void process_list_done(ProcessList *list);

/* Has the agent look for the processes on the GPUs that `ids` (a strv, empty: all) names. `tray` is
 * borrowed.
 * 0 and *ret (to be given to process_list_done) · negative, and *failure says why. */
int process_list_read(Client *client, const Tray *tray, char **ids, const Options *options, ProcessList *ret,
                Failure *failure);
