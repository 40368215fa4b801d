/* SPDX-License-Identifier: MIT */
/* gpuagentctl ps: who holds the GPUs. */
#include "agent/base/text.h"
#include "cli/gpu-list.h"
#include "cli/processes.h"
#include "cli/table.h"

static const char *const columns[] = { "GPU", "PID", "USER", "COMMAND", "WHERE", "MEMORY" };

static int print_processes(const ProcessList *list, const Options *options) {
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < list->n_processes; i++) {
                const ProcessView *process = &list->processes[i];
                char memory[32];

                (void) snprintf(memory, sizeof memory, "%llu MiB",
                                (unsigned long long) process->used_bytes >> 20);
                table_add_u32(table, process->gpu ? process->gpu->index : UNKNOWN_U32);
                table_add_u32(table, process->pid);
                table_add_string(table, process->user);
                table_add_string(table, process->command);
                table_add_string(table, process->where);
                table_add_u64_as(table, process->used_bytes, memory);
        }
        return table_print(table);
}

int verb_ps(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(strv_free_ptr) char **ids = NULL;
        CLEANUP(tray_done) Tray tray = {};
        CLEANUP(process_list_done) ProcessList list = {};
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = tray_read(client, &tray, &failure);
        if (r >= 0 && options->ids)
                r = gpu_list_parse(options->ids, &ids, &failure);
        if (r >= 0)
                r = gpu_list_complete(ids, &tray, &failure);
        if (r >= 0)
                r = process_list_read(client, &tray, ids, options, &list, &failure);
        if (r < 0)
                return failure_report(&failure);

        r = print_processes(&list, options);
        return r < 0 ? fail_with(CLI_FAILED, "cannot print the processes: %s", strerror(-r)) : CLI_DONE;
}
