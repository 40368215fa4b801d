/* SPDX-License-Identifier: MIT */
/* gpuagentctl list: one line a GPU. */
#include "agent/base/text.h"
#include "cli/client.h"
#include "cli/gpu-table.h"
#include "cli/options.h"
#include "cli/watch.h"

static int list_once(Client *client, const Options *options, Failure *failure) {
        CLEANUP(tray_done) Tray tray = {};
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = tray_read(client, &tray, failure);
        if (r < 0)
                return r;
        if (options->watch)
                return 0;

        r = gpu_table_new(options, GPU_COLUMNS_LIST, &table);
        if (r >= 0) {
                gpu_table_add(table, GPU_COLUMNS_LIST, &tray);
                r = table_print(table);
        }
        if (r < 0)
                return failure_errno(failure, r, "cannot print the list");
        /* What was printed may be old then, and a person should know. */
        if (!streq(tray.driver_state, "ok") && !options->quiet)
                print_complaint("the driver is %s%s%s", tray.driver_state, tray.driver_error[0] ? ": " : "",
                                tray.driver_error);
        return 0;
}

int verb_list(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        if (options->watch && options->output == OUTPUT_JSON_PRETTY)
                return fail_with(CLI_USAGE, "--watch prints a line a change; use --json=short");

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = list_once(client, options, &failure);
        if (r >= 0 && options->watch) {
                client = client_free(client);
                r = watch_gpus(options, &failure);
        }
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
