/* SPDX-License-Identifier: MIT */
/* The tray as nvidia-smi finds it: its GPUs, those that were asked for, and their processes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/text.h"
#include "cli/nvidia-smi.h"

static int smi_select(Smi *smi, const char *ids) {
        CLEANUP(strv_free_ptr) char **list = NULL;
        uint32_t n = smi->tray.header->n_gpus;

        smi->selected = calloc(n + 1, sizeof(bool));
        if (!smi->selected)
                return SMI_FAILED;
        if (!ids) {
                memset(smi->selected, true, n * sizeof(bool));
                return SMI_OK;
        }

        if (list_parse(ids, &list) < 0) {
                (void) printf("Invalid argument for the switch \"--id\": %s\n", ids);
                return SMI_INVALID;
        }
        STRV_FOREACH (item, list) {
                const TrayGpu *gpu;
                GpuId id = {};

                if (gpu_id_parse(*item, &id) < 0 && bus_id_scan(*item, id.bus_id) >= 0)
                        id.kind = GPU_ID_BUS_ID;
                else if (gpu_id_parse(*item, &id) < 0)
                        id = (GpuId){ .kind = GPU_ID_INDEX, .index = UINT32_MAX };
                gpu = tray_find_gpu(&smi->tray, &id);
                if (!gpu) {
                        (void) printf("No devices were found\n");
                        return SMI_NOT_FOUND;
                }
                smi->selected[gpu->index] = true;
        }
        return SMI_OK;
}

static void set_timestamp(Smi *smi) {
        struct timespec now;
        struct tm local;
        char date[32];

        (void) clock_gettime(CLOCK_REALTIME, &now);
        (void) localtime_r(&now.tv_sec, &local);
        (void) strftime(date, sizeof date, "%Y/%m/%d %H:%M:%S", &local);
        (void) snprintf(smi->timestamp, sizeof smi->timestamp, "%s.%03ld", date, now.tv_nsec / 1000000);
}

static int driver_failed(NvmlReturn error) {
        if (error == NVML_DRIVER_NOT_LOADED)
                (void) printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
                              "driver. Make sure that "
                              "the latest NVIDIA driver is installed and running.\n\n");
        else
                (void) printf("Failed to initialize NVML: %s\n", nvml_error_text(error));
        return error > 0 && error < 255 ? error : SMI_FAILED;
}

int smi_open(const SmiOptions *options, Smi *ret) {
        CLEANUP(smi_done) Smi smi = { .tray = TRAY_INIT };
        int r;

        r = tray_open(&smi.tray);
        if (r < 0)
                return driver_failed(NVML_DRIVER_NOT_LOADED);
        if (smi.tray.header->hang != HANG_OFF) {
                tray_hang(&smi.tray);
                tray_done(&smi.tray);
                if (tray_open(&smi.tray) < 0)
                        return driver_failed(NVML_DRIVER_NOT_LOADED);
        }
        if (smi.tray.header->init_error != NVML_OK)
                return driver_failed(smi.tray.header->init_error);

        smi.dialect = smi.tray.header->dialect;
        smi.now = now_monotonic_usec();
        set_timestamp(&smi);
        if (clients_read(smi.tray.header, smi.now, &smi.clients) < 0)
                return SMI_FAILED;
        r = smi_select(&smi, options->ids);
        if (r != SMI_OK)
                return r;

        *ret = smi;
        smi = (Smi){ .tray = TRAY_INIT };
        return SMI_OK;
}

void smi_done(Smi *smi) {
        tray_done(&smi->tray);
        clients_done(&smi->clients);
        free(smi->processes);
        free(smi->selected);
}

static void add_process(Smi *smi, pid_t pid, uint32_t gpu, uint64_t used_bytes) {
        SmiProcess *process = &smi->processes[smi->n_processes];

        for (size_t i = 0; i < smi->n_processes; i++)
                if (smi->processes[i].pid == pid && smi->processes[i].gpu == gpu)
                        return;
        process->pid = pid;
        process->gpu = gpu;
        process->used_bytes = used_bytes;
        smi->n_processes++;
}

void smi_process_name(const SmiProcess *process, char ret[static SMI_VALUE_SIZE]) {
        if (process_name(process->pid, ret, SMI_VALUE_SIZE) < 0)
                (void) snprintf(ret, SMI_VALUE_SIZE, "[Not Found]"); /* it has just ended */
}

static int compare_processes(const void *a, const void *b) {
        const SmiProcess *x = a, *y = b;

        if (x->gpu != y->gpu)
                return x->gpu < y->gpu ? -1 : 1;
        return x->pid == y->pid ? 0 : x->pid < y->pid ? -1 : 1;
}

int smi_find_processes(Smi *smi) {
        CLEANUP(holders_done) Holders holders = {};
        int r;

        r = holders_find(&smi->tray, smi->selected, &holders);
        if (r < 0)
                return r;
        smi->processes = calloc(smi->clients.n + holders.n + 1, sizeof(SmiProcess));
        if (!smi->processes)
                return -ENOMEM;

        for (size_t i = 0; i < smi->clients.n; i++) {
                const Client *client = &smi->clients.items[i];

                if (client->alive && smi->selected[client->record.gpu])
                        add_process(smi, client->record.pid, client->record.gpu, client->record.used_bytes);
        }
        for (size_t i = 0; i < holders.n; i++)
                if (!holders.items[i].nvml)
                        add_process(smi, holders.items[i].pid, holders.items[i].gpu, PROCESS_CONTEXT_BYTES);
        if (smi->n_processes > 0)
                qsort(smi->processes, smi->n_processes, sizeof(SmiProcess), compare_processes);
        return 0;
}

/* A process that has not said what it uses still has its context there. */
static uint64_t unregistered_bytes(const Smi *smi, uint32_t gpu) {
        uint64_t sum = 0;

        for (size_t i = 0; i < smi->n_processes; i++)
                if (smi->processes[i].gpu == gpu && !clients_find(&smi->clients, smi->processes[i].pid, gpu))
                        sum += smi->processes[i].used_bytes;
        return sum;
}

void smi_gpu_read(const Smi *smi, uint32_t index, SmiGpu *ret) {
        SmiGpu gpu = { .smi = smi, .header = smi->tray.header, .gpu = smi->tray.gpus[index] };
        uint64_t room = gpu.header->model.memory_total - gpu.header->model.memory_reserved;
        char *rest;

        tray_gpu_at(gpu.header, &gpu.gpu, smi->now);
        gpu.recovery_action = tray_gpu_recovery_action(&smi->tray, &gpu.gpu);
        telemetry_read(gpu.header, &gpu.gpu, &smi->clients, smi->now, &gpu.telemetry);
        gpu.telemetry.used_bytes += unregistered_bytes(smi, index);
        if (gpu.telemetry.used_bytes > room)
                gpu.telemetry.used_bytes = room;

        gpu.domain = (uint32_t) strtoul(gpu.gpu.bus_id, &rest, 16);
        gpu.bus = (uint32_t) strtoul(rest + 1, &rest, 16);
        gpu.device = (uint32_t) strtoul(rest + 1, NULL, 16);
        if (gpu.gpu.lost)
                gpu.error = NVML_GPU_IS_LOST;
        else if (tray_gpu_is_resetting(&gpu.gpu, smi->now))
                gpu.error = NVML_RESET_REQUIRED;
        *ret = gpu;
}
