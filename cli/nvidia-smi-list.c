/* SPDX-License-Identifier: MIT */
/* -L, topo -m, nvlink -s, -pm. */
#include <unistd.h>

#include "cli/nvidia-smi.h"

static int print_lost(const Smi *smi, const SmiGpu *gpu) {
        (void) fprintf(smi->out,
                        "Unable to determine the device handle for GPU%u: %s: %s.  Reboot the system to "
                        "recover this GPU\n",
                        gpu->gpu.index, gpu->gpu.bus_id, nvml_error_text(gpu->error));
        return SMI_GPU_IS_LOST;
}

int smi_list(const Smi *smi) {
        int result = SMI_OK;

        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++) {
                SmiGpu gpu;

                if (!smi->selected[i])
                        continue;
                smi_gpu_read(smi, i, &gpu);
                if (gpu.gpu.lost)
                        result = print_lost(smi, &gpu);
                else
                        (void) fprintf(smi->out, "GPU %u: %s (UUID: %s)\n", i, gpu.header->model.name,
                                        gpu.gpu.uuid);
        }
        return result;
}

static uint32_t active_links(const SmiGpu *gpu) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < gpu->header->model.n_links; i++)
                n += gpu->gpu.links_up >> i & 1;
        return n;
}

/* Two GPUs have as many links between them as the one with fewer. */
static void print_connection(const Smi *smi, const SmiGpu *a, const SmiGpu *b) {
        uint32_t links = active_links(a) < active_links(b) ? active_links(a) : active_links(b);

        if (a->gpu.index == b->gpu.index)
                (void) fputs("\t X ", smi->out);
        else if (links > 0)
                (void) fprintf(smi->out, "\tNV%u", links);
        else
                (void) fputs(a->gpu.index / 2 == b->gpu.index / 2 ? "\tNODE" : "\tSYS", smi->out);
}

int smi_topology(const Smi *smi) {
        uint32_t n = smi->tray.header->n_gpus;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        (void) fprintf(smi->out, "\t\033[4m");
        for (uint32_t i = 0; i < n; i++)
                (void) fprintf(smi->out, "GPU%u\t", i);
        (void) fprintf(smi->out, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n");

        for (uint32_t i = 0; i < n; i++) {
                SmiGpu row;

                smi_gpu_read(smi, i, &row);
                (void) fprintf(smi->out, "GPU%u", i);
                for (uint32_t k = 0; k < n; k++) {
                        SmiGpu column;

                        smi_gpu_read(smi, k, &column);
                        print_connection(smi, &row, &column);
                }
                (void) fprintf(smi->out, "\t0-%ld\t0\t\tN/A\n", cpus > 1 ? cpus - 1 : 0);
        }

        (void) fprintf(smi->out,
                        "\nLegend:\n\n"
                        "  X    = Self\n"
                        "  SYS  = Connection across NUMA nodes\n"
                        "  NODE = Connection within a NUMA node\n"
                        "  NV#  = Connection over # NVLinks\n");
        return SMI_OK;
}

int smi_nvlink(const Smi *smi) {
        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++) {
                const GpuModel *model = &smi->tray.header->model;
                SmiGpu gpu;

                if (!smi->selected[i])
                        continue;
                smi_gpu_read(smi, i, &gpu);
                (void) fprintf(smi->out, "GPU %u: %s (UUID: %s)\n", i, model->name, gpu.gpu.uuid);
                for (uint32_t k = 0; k < model->n_links; k++)
                        if (gpu.gpu.links_up >> k & 1)
                                (void) fprintf(smi->out, "\t Link %u: %u.%03u GB/s\n", k,
                                                model->link_mbps / 1000, model->link_mbps % 1000);
                        else
                                (void) fprintf(smi->out, "\t Link %u: <inactive>\n", k);
        }
        return SMI_OK;
}

int smi_persistence(const Smi *smi, bool on) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;

        if (geteuid() != 0) {
                (void) printf("Unable to set persistence mode: Insufficient Permissions\nTerminating early "
                              "due to previous "
                              "errors.\n");
                return SMI_NO_PERMISSION;
        }
        if (tray_edit(&tray) < 0)
                return SMI_FAILED;
        for (uint32_t i = 0; i < tray.header->n_gpus && i < smi->tray.header->n_gpus; i++) {
                if (!smi->selected[i])
                        continue;
                (void) printf(tray.gpus[i].persistence == on ? "Persistence mode is already %s for GPU %s.\n"
                                                             : "%s persistence mode for GPU %s.\n",
                                on ? "Enabled" : "Disabled", tray.gpus[i].bus_id);
                tray.gpus[i].persistence = on;
        }
        if (tray_commit(&tray) < 0)
                return SMI_FAILED;
        (void) printf("All done.\n");
        return SMI_OK;
}
