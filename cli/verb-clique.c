/* SPDX-License-Identifier: MIT */
/* gpuagentctl clique: the cliques and their GPUs. */
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "cli/gpu.h"
#include "cli/table.h"

/* The next ao of the message, as the indexes of the GPUs. 0, *ret (to be freed) and *ret_n · negative
 * errno. */
static int read_indexes(sd_bus_message *message, const Tray *tray, uint32_t **ret, size_t *ret_n) {
        CLEANUP(free_ptr) uint32_t *indexes = NULL;
        const char *path;
        size_t n = 0;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "o");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(message, 'o', &path)) > 0) {
                const GpuView *gpu = tray_gpu_by_path(tray, path);

                r = array_reserve(&indexes, n, 1);
                if (r < 0)
                        return r;
                indexes[n++] = gpu ? gpu->index : UNKNOWN_U32;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(message);
        if (r < 0)
                return r;

        *ret = take_ptr(&indexes);
        *ret_n = n;
        return 0;
}

static int add_clique(sd_bus_message *message, const Tray *tray, Table *table) {
        CLEANUP(free_ptr) uint32_t *indexes = NULL;
        const char *name;
        uint32_t number;
        size_t n;
        int r;

        r = sd_bus_message_read(message, "su", &name, &number);
        if (r >= 0)
                r = read_indexes(message, tray, &indexes, &n);
        if (r >= 0)
                r = sd_bus_message_exit_container(message);
        if (r < 0)
                return r;

        table_add_string(table, name);
        table_add_u32(table, number);
        table_add_list(table, indexes, n);
        return 0;
}

static int add_cliques(sd_bus_message *message, const Tray *tray, Table *table) {
        int r;

        r = sd_bus_message_enter_container(message, 'a', "(suao)");
        while (r >= 0) {
                r = sd_bus_message_enter_container(message, 'r', "suao");
                if (r <= 0)
                        break;
                r = add_clique(message, tray, table);
        }
        return r;
}

int verb_clique(const Options *options, int argc, char **argv) {
        static const char *const columns[] = { "CLUSTER", "CLIQUE", "GPUS" };
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = tray_read(client, &tray, &failure);
        if (r >= 0)
                r = client_call_manager(client, "ListCliques", 0, &reply, &failure, "");
        if (r < 0)
                return failure_report(&failure);

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        if (r >= 0)
                r = add_cliques(reply, &tray, table);
        if (r >= 0)
                r = table_print(table);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot print what gpuagentd says: %s", strerror(-r));
        return CLI_DONE;
}
