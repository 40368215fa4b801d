/* SPDX-License-Identifier: MIT */
#include "cli/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
                uint32_t *larger = reallocarray(indexes, n + 1, sizeof *larger);

                if (!larger)
                        return -ENOMEM;
                indexes = larger;
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

static int add_group(sd_bus_message *message, GroupLayout layout, const Tray *tray, Table *table) {
        CLEANUP(free_ptr) uint32_t *indexes = NULL;
        const char *name;
        uint32_t number;
        size_t n;
        int r;

        if (layout == GROUP_NAME_NUMBER)
                r = sd_bus_message_read(message, "su", &name, &number);
        else
                r = sd_bus_message_read(message, "us", &number, &name);
        if (r >= 0)
                r = read_indexes(message, tray, &indexes, &n);
        if (r >= 0)
                r = sd_bus_message_exit_container(message);
        if (r < 0)
                return r;

        if (layout == GROUP_NAME_NUMBER)
                table_add_string(table, name);
        table_add_u32(table, number);
        if (layout == GROUP_NUMBER_NAME)
                table_add_string(table, name);
        table_add_list(table, indexes, n);
        return 0;
}

static int add_groups(sd_bus_message *message, GroupLayout layout, const Tray *tray, Table *table) {
        const char *contents = layout == GROUP_NAME_NUMBER ? "suao" : "usao";
        int r;

        r = sd_bus_message_enter_container(message, 'a', layout == GROUP_NAME_NUMBER ? "(suao)" : "(usao)");
        while (r >= 0) {
                r = sd_bus_message_enter_container(message, 'r', contents);
                if (r <= 0)
                        break;
                r = add_group(message, layout, tray, table);
        }
        return r;
}

int groups_print(const Options *options, const char *member, GroupLayout layout,
                const char *const columns[static 3]) {
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
                r = client_call_manager(client, member, &reply, &failure);
        if (r < 0)
                return failure_report(&failure);

        r = table_new(options, columns, 3, &table);
        if (r >= 0)
                r = add_groups(reply, layout, &tray, table);
        if (r >= 0)
                r = table_print(table);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot print what gpuagentd says: %s", strerror(-r));
        return CLI_DONE;
}
