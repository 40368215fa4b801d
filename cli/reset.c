/* SPDX-License-Identifier: MIT */
#include "cli/reset.h"

#include <unistd.h>

#include "cli/gpu-list.h"
#include "cli/lease.h"
#include "cli/progress.h"

/* After a success all that were asked for; after a failure those that did get through. */
static void print_result(const Progress *progress, const Options *options, bool ok) {
        CLEANUP(free_ptr) char *list = NULL;

        if (options->quiet || progress_list(progress, !ok, &list) < 0)
                return;
        if (list[0] == '\0' && ok)
                print_line(stdout, "no GPU was reset: MIG mode is on");
        else if (list[0] != '\0')
                print_line(stdout, options->wait ? "GPUs %s reset" : "GPUs %s will be reset", list);
}

int reset_gpus(Client *client, const Options *options, char **ids, Failure *failure) {
        CLEANUP(progress_free_ptr) Progress *progress = NULL;
        CLEANUP(tray_done) Tray tray = {};
        bool show = !options->quiet && options->wait && isatty(STDOUT_FILENO);
        Options request = *options;
        int r;

        r = tray_read(client, &tray, failure);
        if (r >= 0)
                r = gpu_list_complete(ids, &tray, failure);
        if (r < 0)
                return r;
        if (request.any_restart)
                lease_find_restart(&tray, request.tenant);

        r = progress_new(client, &tray, ids, show ? stdout : NULL, &progress);
        if (r < 0)
                return failure_errno(failure, r, "cannot follow the reset");

        r = client_call_for_gpus(client, "Reset", ids, &request, request_timeout(options), NULL, failure);
        print_result(progress, options, r >= 0);
        return r;
}
