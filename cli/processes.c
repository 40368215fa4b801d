/* SPDX-License-Identifier: MIT */
#include "cli/processes.h"

#include <stdlib.h>

#include "agent/base/array.h"

void process_list_done(ProcessList *list) {
        free(list->processes);
        (void) sd_bus_message_unref(list->reply);
        *list = (ProcessList){};
}

static int list_append(ProcessList *list, const Tray *tray) {
        ProcessView process;
        int r;

        r = sd_bus_message_read(list->reply, "(ouussst)", &process.path, &process.pid, &process.uid,
                        &process.user, &process.command, &process.where, &process.used_bytes);
        if (r <= 0)
                return r;
        process.gpu = tray_gpu_by_path(tray, process.path);

        r = array_reserve(&list->processes, list->n_processes, 1);
        if (r < 0)
                return r;
        list->processes[list->n_processes++] = process;
        return 1;
}

int process_list_read(Client *client, const Tray *tray, char **ids, const Options *options, ProcessList *ret,
                Failure *failure) {
        CLEANUP(process_list_done) ProcessList list = {};
        int r;

        r = client_call_for_gpus(client, "ListProcesses", ids, options, request_timeout(options),
                        &list.reply, failure);
        if (r < 0)
                return r;

        r = sd_bus_message_enter_container(list.reply, 'a', "(ouussst)");
        while (r > 0)
                r = list_append(&list, tray);
        if (r < 0)
                return failure_errno(failure, r, "cannot read what gpuagentd says");

        *ret = list;
        list = (ProcessList){};
        return 0;
}
