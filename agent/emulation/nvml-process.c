/* SPDX-License-Identifier: MIT */
/* Processes on a GPU: those that hold its node or have registered. Clients of NVML alone are in no list, as
 * with the real driver. A caller who may not look into other users' processes sees the registered ones of
 * them. */
#include <stdlib.h>

#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-values.h"
#include "agent/emulation/process.h"

typedef struct Processes {
        NvmlProcessInfo *items;
        unsigned n;
} Processes;

static void processes_done(Processes *processes) {
        free(processes->items);
}

static void processes_add(Processes *processes, pid_t pid, uint64_t used_bytes) {
        for (unsigned i = 0; i < processes->n; i++)
                if (processes->items[i].pid == (uint32_t) pid)
                        return;
        processes->items[processes->n++] = (NvmlProcessInfo){
                .pid = (uint32_t) pid,
                .used_bytes = used_bytes,
                .gpu_instance = UINT32_MAX,
                .compute_instance = UINT32_MAX,
        };
}

static NvmlReturn processes_read(const View *view, Processes *ret) {
        CLEANUP(clients_done) Clients clients = {};
        CLEANUP(holders_done) Holders holders = {};
        NvmlReturn r;

        r = session_holders(&holders);
        if (r != NVML_OK)
                return r;
        if (clients_read(&view->header, view->now, &clients) < 0)
                return NVML_NO_MEMORY;
        ret->items = calloc(clients.n + holders.n + 1, sizeof(NvmlProcessInfo));
        if (!ret->items)
                return NVML_NO_MEMORY;

        for (size_t i = 0; i < clients.n; i++)
                if (clients.items[i].alive && clients.items[i].record.gpu == view->gpu.index)
                        processes_add(ret, clients.items[i].record.pid, clients.items[i].record.used_bytes);
        for (size_t i = 0; i < holders.n; i++)
                if (holders.items[i].gpu == view->gpu.index && !holders.items[i].nvml)
                        processes_add(ret, holders.items[i].pid, PROCESS_CONTEXT_BYTES);
        return NVML_OK;
}

/* `size` is that of the caller's struct: the old one is the beginning of the new. */
static NvmlReturn list_processes(
                NvmlDevice device, unsigned *count, void *infos, size_t size, bool compute) {
        CLEANUP(processes_done) Processes processes = {};
        NvmlReturn r;
        View view;

        r = view_open(device, count && (infos || *count == 0), &view);
        if (r != VIEW_READY)
                return r;
        if (compute) {
                r = processes_read(&view, &processes);
                if (r != NVML_OK)
                        return r;
        }

        if (processes.n + view.gpu.phantoms * (*count > 0) > *count) {
                *count = processes.n + view.gpu.phantoms * (*count > 0);
                return NVML_INSUFFICIENT_SIZE;
        }
        for (unsigned i = 0; i < processes.n; i++)
                __builtin_memcpy((char *) infos + i * size, &processes.items[i], size);
        *count = processes.n;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(
                NvmlDevice device, unsigned *count, NvmlProcessInfo *infos) {
        return list_processes(device, count, infos, sizeof *infos, true);
}

EXPORT NvmlReturn nvmlDeviceGetGraphicsRunningProcesses_v3(
                NvmlDevice device, unsigned *count, NvmlProcessInfo *infos) {
        return list_processes(device, count, infos, sizeof *infos, false);
}

EXPORT NvmlReturn nvmlDeviceGetMPSComputeRunningProcesses_v3(
                NvmlDevice device, unsigned *count, NvmlProcessInfo *infos) {
        return list_processes(device, count, infos, sizeof *infos, false);
}

EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses_v2(
                NvmlDevice device, unsigned *count, NvmlProcessInfo *infos) {
        return list_processes(device, count, infos, sizeof *infos, true);
}

EXPORT NvmlReturn nvmlDeviceGetGraphicsRunningProcesses_v2(
                NvmlDevice device, unsigned *count, NvmlProcessInfo *infos) {
        return list_processes(device, count, infos, sizeof *infos, false);
}

EXPORT NvmlReturn nvmlDeviceGetComputeRunningProcesses(
                NvmlDevice device, unsigned *count, NvmlProcessInfoV1 *infos) {
        return list_processes(device, count, infos, sizeof *infos, true);
}

EXPORT NvmlReturn nvmlDeviceGetGraphicsRunningProcesses(
                NvmlDevice device, unsigned *count, NvmlProcessInfoV1 *infos) {
        return list_processes(device, count, infos, sizeof *infos, false);
}

EXPORT NvmlReturn nvmlDeviceGetProcessUtilization(NvmlDevice device, NvmlProcessUtilization *samples,
                unsigned *count, unsigned long long since_usec) {
        CLEANUP(clients_done) Clients clients = {};
        unsigned n = 0, room;
        NvmlReturn r;
        View view;

        r = view_open(device, count != NULL, &view);
        if (r != VIEW_READY)
                return r;
        if (clients_read(&view.header, view.now, &clients) < 0)
                return NVML_NO_MEMORY;

        room = samples ? *count : 0;
        for (size_t i = 0; i < clients.n; i++) {
                const Client *client = &clients.items[i];

                if (!client->alive || client->record.gpu != view.gpu.index || client->record.load == 0)
                        continue;
                if (n < room)
                        samples[n] = (NvmlProcessUtilization){
                                .pid = (uint32_t) client->record.pid,
                                .timestamp_usec = now_realtime_usec(),
                                .gpu = client->record.load,
                                .memory = client->record.load / 3,
                        };
                n++;
        }

        *count = n;
        if (n == 0)
                return NVML_NOT_FOUND;
        return n > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}
