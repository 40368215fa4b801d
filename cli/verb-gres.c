/* SPDX-License-Identifier: MIT */
/* gpuagentctl gres: Slurm's gres.conf for the trays. Those that are alike share their lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "cli/gres.h"
#include "cli/node-list.h"
#include "cli/trays.h"

/* The lines of each tray, NULL for those that are printed or have none. */
static char** lines_free(char **lines, size_t n) {
        for (size_t i = 0; lines && i < n; i++)
                free(lines[i]);
        free(lines);
        return NULL;
}

/* "NodeName=… " before each line. */
static void print_group(const char *nodes, const char *lines) {
        while (*lines != '\0') {
                size_t n = strcspn(lines, "\n") + 1;

                (void) printf("NodeName=%s %.*s", nodes, (int) n, lines);
                lines += n;
        }
}

static int append_node(char ***names, const HostTray *tray) {
        char name[HOST_NAME_MAX + 1];

        host_tray_node(tray, name);
        return strv_append(names, name);
}

/* The trays whose lines are those of the first that has some left. 0 · -ENOMEM. */
static int print_next(const HostTrays *trays, char **lines, size_t first) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        CLEANUP(free_ptr) char *nodes = NULL, *text = take_ptr(&lines[first]);
        int r;

        r = append_node(&names, &trays->trays[first]);
        for (size_t i = first + 1; r >= 0 && i < trays->n_trays; i++)
                if (lines[i] && streq(lines[i], text)) {
                        r = append_node(&names, &trays->trays[i]);
                        free(take_ptr(&lines[i]));
                }
        if (r >= 0)
                r = node_list_format(names, &nodes);
        if (r >= 0)
                print_group(nodes, text);
        return r;
}

/* Prints the lines, and names the trays that have none. 0 and *ret_exit, of a single tray its own · negative
 * errno. */
static int print_trays(HostTrays *trays, CliExit *ret_exit) {
        char **lines = calloc(trays->n_trays + 1, sizeof *lines);
        CliExit exit_code = CLI_DONE;
        int r = lines ? 0 : -ENOMEM;

        for (size_t i = 0; lines && i < trays->n_trays; i++) {
                HostTray *tray = &trays->trays[i];

                if (host_tray_is_there(tray))
                        (void) gres_format(&tray->tray, &lines[i], &tray->failure);
                if (!lines[i]) {
                        host_tray_report(tray);
                        exit_code = trays->n_trays == 1 ? tray->failure.exit_code : CLI_FAILED;
                }
        }
        for (size_t i = 0; r >= 0 && i < trays->n_trays; i++)
                if (lines[i])
                        r = print_next(trays, lines, i);
        lines = lines_free(lines, trays->n_trays);
        if (r < 0)
                return r;

        *ret_exit = exit_code;
        return 0;
}

int verb_gres(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(strv_free_ptr) char **hosts = NULL;
        CLEANUP(host_trays_done) HostTrays trays = {};
        CliExit exit_code;
        int r;

        r = host_trays_named(options, NULL, &config, &hosts, &failure);
        if (r < 0)
                return failure_report(&failure);
        r = host_trays_read(options, hosts, &trays);
        if (r >= 0)
                r = print_trays(&trays, &exit_code);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot ask the trays: %s", strerror(-r));
        return exit_code;
}
