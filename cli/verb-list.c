/* SPDX-License-Identifier: MIT */
/* gpuagentctl list: one line a GPU. */
#include <unistd.h>

#include "agent/base/text.h"
#include "cli/client.h"
#include "cli/gpu.h"
#include "cli/options.h"
#include "cli/table.h"

/* Changes often come several at a time; the list is read once for them. */
#define REDRAW_DELAY_USEC (100 * USEC_PER_MSEC)

static const char *const columns[] = {
        "TRAY",
        "GPU",
        "UUID",
        "PARTITION",
        "CLIQUE",
        "RESET",
        "NVLINKS",
        "HEALTH",
        "STATE",
        "TENANT",
};

static int print_gpus(const Tray *tray, const Options *options) {
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];

                table_add_string(table, tray->node_name);
                table_add_u32(table, gpu->index);
                table_add_string(table, gpu->uuid);
                table_add_u32(table, gpu->partition);
                table_add_u32(table, gpu->clique_id);
                table_add_string(table, gpu->reset_pending ? "pending" : NULL);
                table_add_u32(table, gpu->n_links_active);
                table_add_string(table, gpu->health);
                table_add_string(table, gpu->state);
                table_add_string(table, gpu->tenant);
        }
        return table_print(table);
}

static int list_once(Client *client, const Options *options, char **trays, Failure *failure) {
        CLEANUP(tray_done) Tray tray = {};
        int r;

        r = tray_read(client, &tray, failure);
        if (r < 0)
                return r;
        STRV_FOREACH (name, trays)
                if (!streq(*name, tray.node_name))
                        return failure_set(failure, CLI_NO_GPU, "no tray '%s' here: this is %s", *name,
                                        tray.node_name);

        r = print_gpus(&tray, options);
        if (r < 0)
                return failure_errno(failure, r, "cannot print the list");
        /* What was printed may be old then, and a person should know. */
        if (!streq(tray.driver_state, "ok") && !options->quiet)
                print_line(stderr, "gpuagentctl: the driver is %s%s%s", tray.driver_state,
                                tray.driver_error[0] ? ": " : "", tray.driver_error);
        return 0;
}

static int on_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        bool *changed = userdata;

        *changed = true;
        return 0;
}

static int watch(Client *client, const Options *options, char **trays, Failure *failure) {
        bool changed = false;
        int r;

        r = client_subscribe(client, on_signal, &changed, NULL);
        if (r < 0)
                return failure_errno(failure, r, "cannot subscribe to changes");
        for (;;) {
                usec_t settled;

                if (isatty(STDOUT_FILENO))
                        (void) fputs("\033[H\033[2J", stdout);
                r = list_once(client, options, trays, failure);
                if (r < 0)
                        return r;
                (void) fflush(stdout);

                for (changed = false; !changed;) {
                        r = client_wait(client, USEC_INFINITY, failure);
                        if (r < 0)
                                return r;
                }
                settled = now_monotonic_usec() + REDRAW_DELAY_USEC;
                do {
                        r = client_wait(client, settled, failure);
                        if (r < 0)
                                return r;
                } while (r > 0);
        }
}

int verb_list(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = options->watch ? watch(client, options, argv + 1, &failure)
                                   : list_once(client, options, argv + 1, &failure);
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
