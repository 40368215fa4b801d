/* SPDX-License-Identifier: MIT */
/* The table that nvidia-smi shows without arguments, and its help. */
#include <string.h>
#include <time.h>

#include "cli/nvidia-smi.h"

#define RULE "+-----------------------------------------------------------------------------------------+\n"
#define COLUMNS_RULE \
        "+-----------------------------------------+------------------------+----------------------+\n"

static void print_head(const Smi *smi) {
        const char *driver = smi->tray.header->driver_version;
        unsigned cuda = driver_cuda_version(driver);
        time_t now = time(NULL);
        char date[40], version[16];
        struct tm local;

        (void) localtime_r(&now, &local);
        (void) strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y", &local);
        (void) snprintf(version, sizeof version, "%u.%u", cuda / 1000, cuda % 1000 / 10);
        (void) fprintf(smi->out, "%s       \n" RULE, date);
        (void) fprintf(smi->out,
                        "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n" COLUMNS_RULE,
                        driver, driver, version);
        (void) fprintf(smi->out,
                        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile "
                        "Uncorr. ECC |\n"
                        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  "
                        "Compute M. |\n"
                        "|                                         |                        |               "
                        "MIG M. |\n"
                        "|=========================================+========================+==============="
                        "=======|\n");
}

static void print_gpu(const Smi *smi, uint32_t index) {
        const GpuModel *model = &smi->tray.header->model;
        char memory[40], ecc[24];
        SmiGpu gpu;

        smi_gpu_read(smi, index, &gpu);
        (void) snprintf(ecc, sizeof ecc, "%llu", (unsigned long long) gpu.gpu.ecc_uncorrected);
        if (gpu.error != NVML_OK) {
                (void) fprintf(smi->out, "| %3u  %-25.25s %7s  |   %s Off | %20.20s |\n", index, model->name,
                                "ERR!", gpu.gpu.bus_id, nvml_error_text(gpu.error));
                (void) fprintf(smi->out,
                                "| ERR!  ERR! ERR!            ERR! / ERR!  |          ERR! /   ERR! |   "
                                "ERR!     "
                                "   ERR! |\n" COLUMNS_RULE);
                return;
        }

        (void) snprintf(memory, sizeof memory, "%lluMiB / %6lluMiB",
                        (unsigned long long) (gpu.telemetry.used_bytes >> 20),
                        (unsigned long long) (model->memory_total >> 20));
        (void) fprintf(smi->out, "| %3u  %-25.25s %7s  |   %s Off | %20s |\n", index, model->name,
                        gpu.gpu.persistence ? "On" : "Off", gpu.gpu.bus_id, ecc);
        (void) fprintf(smi->out, "| N/A %4dC    P0           %4uW / %4uW | %22s | %6u%%      Default |\n",
                        gpu.telemetry.celsius, gpu.telemetry.power_mw / 1000, model->power_limit_mw / 1000,
                        memory, gpu.telemetry.load);
        (void) fprintf(smi->out,
                        "|                                         |                        | %20s "
                        "|\n" COLUMNS_RULE,
                        gpu.gpu.mig ? "Enabled" : "Disabled");
}

static void print_processes(const Smi *smi) {
        (void) fprintf(smi->out,
                        "\n" RULE "| Processes:                                                             "
                        "                 |\n"
                        "|  GPU   GI   CI              PID   Type   Process name                        GPU "
                        "Memory |\n"
                        "|        ID   ID                                                               "
                        "Usage      |\n"
                        "|=================================================================================="
                        "=======|\n");
        for (size_t i = 0; i < smi->n_processes; i++) {
                const SmiProcess *process = &smi->processes[i];
                char memory[24], full[SMI_VALUE_SIZE], name[40];
                size_t length;

                smi_process_name(process, full);
                length = strlen(full);

                /* Of a name that is too long the end says more. */
                if (length > 35)
                        (void) snprintf(name, sizeof name, "...%s", full + length - 32);
                else
                        (void) snprintf(name, sizeof name, "%.35s", full);
                (void) snprintf(memory, sizeof memory, "%lluMiB",
                                (unsigned long long) (process->used_bytes >> 20));
                (void) fprintf(smi->out, "| %4u   N/A  N/A %15d      C   %-35s %10s |\n", process->gpu,
                                (int) process->pid, name, memory);
        }
        if (smi->n_processes == 0)
                (void) fprintf(smi->out,
                                "|  No running processes found                                              "
                                "   "
                                "            |\n");
        (void) fputs(RULE, smi->out);
}

int smi_table(Smi *smi) {
        if (smi_find_processes(smi) < 0)
                return SMI_FAILED;
        print_head(smi);
        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++)
                if (smi->selected[i])
                        print_gpu(smi, i);
        print_processes(smi);
        return SMI_OK;
}

int smi_help(void) {
        (void) printf("nvidia-smi of gpuagent's emulated driver, version " VERSION "\n\n"
                      "nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n\n"
                      "    -h,   --help                Print usage information and exit.\n"
                      "          --version             Print version information and exit.\n"
                      "    -L,   --list-gpus           List the GPUs.\n"
                      "    <no arguments>              Show a summary of the GPUs.\n"
                      "    -q,   --query               Show all there is to know.\n"
                      "    -x,   --xml-format          With -q: as XML.\n"
                      "    -d,   --display=            With -q: only MEMORY, UTILIZATION, ECC, TEMPERATURE, "
                      "POWER, CLOCK,\n"
                      "                                COMPUTE, PIDS, PERFORMANCE, PAGE_RETIREMENT, "
                      "ACCOUNTING,\n"
                      "                                ENCODER_STATS, FBC_STATS, ROW_REMAPPER, "
                      "GSP_FIRMWARE_VERSION.\n"
                      "          --query-gpu=          Properties of GPUs, see --help-query-gpu.\n"
                      "          --query-compute-apps= Processes, see --help-query-compute-apps.\n"
                      "          --format=             With a query: csv[,noheader][,nounits].\n"
                      "    -r    --gpu-reset           Reset the GPUs.\n"
                      "    -pm,  --persistence-mode=   0/DISABLED or 1/ENABLED.\n"
                      "    -i,   --id=                 Only these GPUs: indices, UUIDs or PCI bus ids, with "
                      "commas.\n"
                      "    -f,   --filename=           Write to a file.\n"
                      "    -l,   --loop=               Repeat after so many seconds.\n"
                      "    -lms, --loop-ms=            Repeat after so many milliseconds.\n"
                      "    topo -m                     Show how GPUs are connected.\n"
                      "    nvlink -s                   Show the NVLinks.\n");
        return SMI_OK;
}
