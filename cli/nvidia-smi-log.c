/* SPDX-License-Identifier: MIT */
#include "cli/nvidia-smi-log.h"

#include <string.h>
#include <time.h>

#include "agent/base/text.h"

/* The column of the colon: that of the reference lab's tool, and of driver 590. */
#define LAB_COLUMN     42
#define COLUMN         55
#define PROCESS_COLUMN 42

static const struct {
        const char *name;
        unsigned display;
} displays[] = {
        { "MEMORY", DISPLAY_MEMORY },
        { "UTILIZATION", DISPLAY_UTILIZATION },
        { "ECC", DISPLAY_ECC },
        { "TEMPERATURE", DISPLAY_TEMPERATURE },
        { "POWER", DISPLAY_POWER },
        { "CLOCK", DISPLAY_CLOCK },
        { "COMPUTE", DISPLAY_COMPUTE },
        { "PIDS", DISPLAY_PIDS },
        { "PERFORMANCE", DISPLAY_PERFORMANCE },
        { "SUPPORTED_CLOCKS", 0 },
        { "PAGE_RETIREMENT", DISPLAY_PAGE_RETIREMENT },
        { "ACCOUNTING", DISPLAY_ACCOUNTING },
        { "ENCODER_STATS", DISPLAY_ENCODER_STATS },
        { "SUPPORTED_GPU_TARGET_TEMP", 0 },
        { "VOLTAGE", 0 },
        { "FBC_STATS", DISPLAY_FBC_STATS },
        { "ROW_REMAPPER", DISPLAY_ROW_REMAPPER },
        { "GSP_FIRMWARE_VERSION", DISPLAY_GSP_FIRMWARE },
        { "POWER_SMOOTHING", DISPLAY_POWER },
        { "POWER_PROFILES", DISPLAY_POWER },
};

/* The words of -d as bits; all without. SMI_OK · SMI_INVALID, said. */
static int read_displays(const char *text, unsigned *ret) {
        CLEANUP(strv_free_ptr) char **words = NULL;
        unsigned result = 0;

        if (!text) {
                *ret = UINT32_MAX;
                return SMI_OK;
        }
        if (list_parse(text, &words) >= 0)
                STRV_FOREACH (word, words) {
                        size_t i = 0;

                        while (i < ELEMENTSOF(displays) && strcasecmp(displays[i].name, *word) != 0)
                                i++;
                        if (i == ELEMENTSOF(displays)) {
                                (void) printf("Display flag: %s not recognized\n", *word);
                                return SMI_INVALID;
                        }
                        result |= displays[i].display;
                }
        *ret = result;
        return SMI_OK;
}

static void print_line(FILE *out, unsigned depth, const char *label, const char *value, int column) {
        if (value)
                (void) fprintf(out, "%*s%-*s: %s\n", (int) depth * 4, "", column - (int) depth * 4, label,
                                value);
        else
                (void) fprintf(out, "%*s%s\n", (int) depth * 4, "", label);
}

static void print_processes(const Smi *smi, uint32_t gpu, int column) {
        size_t n = 0;

        for (size_t i = 0; i < smi->n_processes; i++)
                n += smi->processes[i].gpu == gpu;
        print_line(smi->out, 1, "Processes", n == 0 ? "None" : NULL, column);

        for (size_t i = 0; i < smi->n_processes; i++) {
                const SmiProcess *process = &smi->processes[i];
                char number[32], name[SMI_VALUE_SIZE];

                if (process->gpu != gpu)
                        continue;
                smi_process_name(process, name);
                print_line(smi->out, 2, "GPU instance ID", SMI_NA, PROCESS_COLUMN);
                print_line(smi->out, 2, "Compute instance ID", SMI_NA, PROCESS_COLUMN);
                (void) snprintf(number, sizeof number, "%d", (int) process->pid);
                print_line(smi->out, 2, "Process ID", number, PROCESS_COLUMN);
                print_line(smi->out, 3, "Type", "C", PROCESS_COLUMN);
                print_line(smi->out, 3, "Name", name, PROCESS_COLUMN);
                (void) snprintf(number, sizeof number, "%llu MiB",
                                (unsigned long long) (process->used_bytes >> 20));
                print_line(smi->out, 3, "Used GPU Memory", number, PROCESS_COLUMN);
        }
}

static void print_gpu(const Smi *smi, uint32_t index, unsigned display, int column) {
        SmiGpu gpu;

        smi_gpu_read(smi, index, &gpu);
        (void) fprintf(smi->out, "GPU %s\n", gpu.gpu.bus_id);
        for (size_t i = 0; i < n_log_lines; i++) {
                const LogLine *line = &log_lines[i];
                char value[SMI_VALUE_SIZE];

                if (!line->label || (display != UINT32_MAX && !(line->display & display)))
                        continue;
                if (line->kind == LOG_PROCESSES) {
                        print_processes(smi, index, column);
                } else if (line->kind == LOG_GROUP) {
                        print_line(smi->out, line->depth, line->label, NULL, column);
                } else {
                        log_line_read(line, &gpu, value);
                        print_line(smi->out, line->depth, line->label, value, column);
                }
        }
        (void) fputc('\n', smi->out);
}

static void read_date(char *ret, size_t size) {
        time_t now = time(NULL);
        struct tm local;

        (void) localtime_r(&now, &local);
        (void) strftime(ret, size, "%a %b %e %H:%M:%S %Y", &local);
}

int smi_log_text(Smi *smi, const SmiOptions *options) {
        const TrayHeader *header = smi->tray.header;
        int column = smi->dialect == DIALECT_AI_LAB ? LAB_COLUMN : COLUMN;
        unsigned cuda = driver_cuda_version(header->driver_version), display;
        char text[64];
        int r;

        r = read_displays(options->display, &display);
        if (r != SMI_OK)
                return r;
        if (smi_find_processes(smi) < 0)
                return SMI_FAILED;

        (void) fprintf(smi->out, "\n==============NVSMI LOG==============\n\n");
        read_date(text, sizeof text);
        print_line(smi->out, 0, "Timestamp", text, column);
        print_line(smi->out, 0, "Driver Version", header->driver_version, column);
        (void) snprintf(text, sizeof text, "%u.%u", cuda / 1000, cuda % 1000 / 10);
        print_line(smi->out, 0, "CUDA Version", text, column);
        (void) snprintf(text, sizeof text, "%u", header->n_gpus);
        (void) fputc('\n', smi->out);
        print_line(smi->out, 0, "Attached GPUs", text, column);
        for (uint32_t i = 0; i < header->n_gpus; i++)
                if (smi->selected[i])
                        print_gpu(smi, i, display, column);
        return SMI_OK;
}

/* What a process calls itself may hold anything; process_name() has left only printable characters. */
static void print_escaped(FILE *out, const char *text) {
        for (; *text != '\0'; text++)
                if (*text == '&')
                        (void) fputs("&amp;", out);
                else if (*text == '<')
                        (void) fputs("&lt;", out);
                else if (*text == '>')
                        (void) fputs("&gt;", out);
                else
                        (void) fputc(*text, out);
}

static void print_tabs(FILE *out, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                (void) fputc('\t', out);
}

static void print_element(FILE *out, unsigned depth, const char *element, const char *value) {
        print_tabs(out, depth + 1);
        (void) fprintf(out, "<%s>", element);
        print_escaped(out, value);
        (void) fprintf(out, "</%s>\n", element);
}

static void print_process_elements(const Smi *smi, uint32_t gpu) {
        (void) fprintf(smi->out, "\t\t<processes>\n");
        for (size_t i = 0; i < smi->n_processes; i++) {
                const SmiProcess *process = &smi->processes[i];
                char number[32], name[SMI_VALUE_SIZE];

                if (process->gpu != gpu)
                        continue;
                smi_process_name(process, name);
                (void) fprintf(smi->out, "\t\t\t<process_info>\n");
                print_element(smi->out, 3, "gpu_instance_id", SMI_NA);
                print_element(smi->out, 3, "compute_instance_id", SMI_NA);
                (void) snprintf(number, sizeof number, "%d", (int) process->pid);
                print_element(smi->out, 3, "pid", number);
                print_element(smi->out, 3, "type", "C");
                print_element(smi->out, 3, "process_name", name);
                (void) snprintf(number, sizeof number, "%llu MiB",
                                (unsigned long long) (process->used_bytes >> 20));
                print_element(smi->out, 3, "used_memory", number);
                (void) fprintf(smi->out, "\t\t\t</process_info>\n");
        }
        (void) fprintf(smi->out, "\t\t</processes>\n");
}

/* From the highest down in steps of 7.5 MHz. */
static void print_clock_elements(const Smi *smi) {
        const GpuModel *model = &smi->tray.header->model;

        (void) fprintf(smi->out,
                        "\t\t<supported_clocks>\n\t\t\t<supported_mem_clock>\n\t\t\t\t<value>%u "
                        "MHz</value>\n",
                        model->memory_clock);
        for (unsigned i = (model->graphics_clock_max - 120) * 2 / 15 + 1; i-- > 0;)
                (void) fprintf(smi->out,
                                "\t\t\t\t<supported_graphics_clock>%u MHz</supported_graphics_clock>\n",
                                120 + i * 15 / 2);
        (void) fprintf(smi->out, "\t\t\t</supported_mem_clock>\n\t\t</supported_clocks>\n");
}

/* Closes the groups that a line of that depth is not in. */
static void close_groups(FILE *out, const char *groups[static 8], unsigned *depth, unsigned to) {
        while (*depth > to) {
                (*depth)--;
                print_tabs(out, *depth + 2);
                (void) fprintf(out, "</%s>\n", groups[*depth]);
        }
}

static void print_gpu_element(const Smi *smi, uint32_t index) {
        const char *groups[8] = {};
        unsigned depth = 0;
        SmiGpu gpu;

        smi_gpu_read(smi, index, &gpu);
        (void) fprintf(smi->out, "\t<gpu id=\"%s\">\n", gpu.gpu.bus_id);
        for (size_t i = 0; i < n_log_lines; i++) {
                const LogLine *line = &log_lines[i];
                char value[SMI_VALUE_SIZE];

                if (!line->element)
                        continue;
                close_groups(smi->out, groups, &depth, line->depth - 1U);
                if (line->kind == LOG_PROCESSES) {
                        print_process_elements(smi, index);
                } else if (line->kind == LOG_CLOCKS) {
                        print_clock_elements(smi);
                } else if (line->kind == LOG_GROUP) {
                        print_tabs(smi->out, line->depth + 1U);
                        (void) fprintf(smi->out, "<%s>\n", line->element);
                        groups[depth++] = line->element;
                } else {
                        log_line_read(line, &gpu, value);
                        print_element(smi->out, line->depth, line->element,
                                        line->bare && startswith(value, "0x") ? value + 2 : value);
                }
        }
        close_groups(smi->out, groups, &depth, 0);
        (void) fprintf(smi->out, "\t</gpu>\n\n");
}

int smi_log_xml(Smi *smi) {
        const TrayHeader *header = smi->tray.header;
        unsigned cuda = driver_cuda_version(header->driver_version);
        char text[64];

        if (smi_find_processes(smi) < 0)
                return SMI_FAILED;

        read_date(text, sizeof text);
        (void) fprintf(smi->out,
                        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "
                        "\"nvsmi_device_v13.dtd\">\n"
                        "<nvidia_smi_log>\n");
        print_element(smi->out, 0, "timestamp", text);
        print_element(smi->out, 0, "driver_version", header->driver_version);
        (void) snprintf(text, sizeof text, "%u.%u", cuda / 1000, cuda % 1000 / 10);
        print_element(smi->out, 0, "cuda_version", text);
        (void) snprintf(text, sizeof text, "%u", header->n_gpus);
        print_element(smi->out, 0, "attached_gpus", text);
        for (uint32_t i = 0; i < header->n_gpus; i++)
                if (smi->selected[i])
                        print_gpu_element(smi, i);
        (void) fprintf(smi->out, "</nvidia_smi_log>\n");
        return SMI_OK;
}
