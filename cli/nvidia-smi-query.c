/* SPDX-License-Identifier: MIT */
/* --query-gpu and --query-compute-apps as CSV. */
#include <errno.h>
#include <stdlib.h>

#include "agent/base/text.h"
#include "cli/nvidia-smi.h"

#define FIELDS_MAX 512

/* What is not a value stands in brackets, except where the vendor's tool leaves them out. */
static void print_value(FILE *out, const SmiField *field, const char *value, bool units) {
        bool fabric = startswith(field->name, "fabric.");

        if (!fabric && (streq(value, SMI_NA) || streq(value, SMI_DEPRECATED)))
                (void) fprintf(out, "[%s]", value);
        else if (units && field->unit && !streq(value, SMI_NA))
                (void) fprintf(out, "%s %s", value, field->unit);
        else
                (void) fputs(value, out);
}

static void print_gpu(const Smi *smi, const SmiField *const *fields, size_t n, uint32_t index, bool units) {
        SmiGpu gpu;

        smi_gpu_read(smi, index, &gpu);
        for (size_t i = 0; i < n; i++) {
                char value[SMI_VALUE_SIZE];

                if (i > 0)
                        (void) fputs(", ", smi->out);
                smi_field_read(fields[i], &gpu, value);
                if (gpu.error != NVML_OK && streq(value, nvml_error_text(gpu.error)))
                        (void) fprintf(smi->out, "[%s]", value);
                else
                        print_value(smi->out, fields[i], value, units);
        }
        (void) fputc('\n', smi->out);
}

static const char* header_name(const Smi *smi, const char *asked) {
        return smi->dialect == DIALECT_AI_LAB && streq(asked, "fabric.cliqueId") ? "fabric.clique_id"
                                                                                 : asked;
}

int smi_query_gpu(Smi *smi, const SmiOptions *options) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        const SmiField *fields[FIELDS_MAX];
        bool memory = false;
        size_t n = 0;

        if (list_parse(options->fields, &names) < 0 || strv_length(names) > FIELDS_MAX) {
                (void) printf("Field \"%s\" is not a valid field to query.\n\n", options->fields);
                return SMI_INVALID;
        }
        STRV_FOREACH (name, names) {
                const char *asked = text_strip(*name);

                fields[n] = smi_field_find(asked);
                if (!fields[n] && streq(asked, "fabric.clique_id"))
                        fields[n] = smi_field_find("fabric.cliqueId");
                if (!fields[n]) {
                        (void) printf("Field \"%s\" is not a valid field to query.\n\n", asked);
                        return SMI_INVALID;
                }
                memory = memory || streq(fields[n]->name, "memory.used") ||
                                streq(fields[n]->name, "memory.free");
                n++;
        }

        if (memory && smi_find_processes(smi) < 0)
                return SMI_FAILED;
        if (options->header) {
                for (size_t i = 0; i < n; i++)
                        (void) fprintf(smi->out, options->units && fields[i]->unit ? "%s%s [%s]" : "%s%s",
                                        i > 0 ? ", " : "", header_name(smi, text_strip(names[i])),
                                        fields[i]->unit);
                (void) fputc('\n', smi->out);
        }
        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++)
                if (smi->selected[i])
                        print_gpu(smi, fields, n, i, options->units);
        return SMI_OK;
}

typedef enum AppField {
        APP_TIMESTAMP,
        APP_GPU_NAME,
        APP_GPU_BUS_ID,
        APP_GPU_SERIAL,
        APP_GPU_UUID,
        APP_PID,
        APP_NAME,
        APP_MEMORY,
} AppField;

static const struct {
        const char *name;
        AppField field;
        const char *help;
} app_fields[] = {
        { "timestamp", APP_TIMESTAMP, "when the query was made" },
        { "gpu_name", APP_GPU_NAME, "name of the product" },
        { "gpu_bus_id", APP_GPU_BUS_ID, "PCI address of the GPU" },
        { "gpu_serial", APP_GPU_SERIAL, "serial number of the board" },
        { "gpu_uuid", APP_GPU_UUID, "identifier of the GPU" },
        { "pid", APP_PID, "the process" },
        { "process_name", APP_NAME, "its name" },
        { "name", APP_NAME, "its name" },
        { "used_gpu_memory", APP_MEMORY, "memory of the GPU that it uses" },
        { "used_memory", APP_MEMORY, "memory of the GPU that it uses" },
};

static int find_app_field(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(app_fields); i++)
                if (streq(app_fields[i].name, name))
                        return (int) i;
        return -EINVAL;
}

static void print_app_value(const Smi *smi, const SmiProcess *process, AppField field, bool units) {
        const TrayGpu *gpu = &smi->tray.gpus[process->gpu];
        char name[SMI_VALUE_SIZE];

        switch (field) {
        case APP_TIMESTAMP: (void) fputs(smi->timestamp, smi->out); return;
        case APP_GPU_NAME: (void) fputs(smi->tray.header->model.name, smi->out); return;
        case APP_GPU_BUS_ID: (void) fputs(gpu->bus_id, smi->out); return;
        case APP_GPU_SERIAL: (void) fputs(gpu->serial, smi->out); return;
        case APP_GPU_UUID: (void) fputs(gpu->uuid, smi->out); return;
        case APP_PID: (void) fprintf(smi->out, "%d", (int) process->pid); return;
        case APP_NAME:
                smi_process_name(process, name);
                (void) fputs(name, smi->out);
                return;
        case APP_MEMORY:
                (void) fprintf(smi->out, "%llu%s", (unsigned long long) (process->used_bytes >> 20),
                                units ? " MiB" : "");
                return;
        }
}

int smi_query_apps(Smi *smi, const SmiOptions *options) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        AppField fields[FIELDS_MAX];
        size_t n = 0;

        if (list_parse(options->fields, &names) < 0 || strv_length(names) > FIELDS_MAX) {
                (void) printf("Field \"%s\" is not a valid field to query.\n\n", options->fields);
                return SMI_INVALID;
        }
        STRV_FOREACH (name, names) {
                int found = find_app_field(text_strip(*name));

                if (found < 0) {
                        (void) printf("Field \"%s\" is not a valid field to query.\n\n", text_strip(*name));
                        return SMI_INVALID;
                }
                fields[n++] = app_fields[found].field;
        }

        if (smi_find_processes(smi) < 0)
                return SMI_FAILED;
        if (options->header) {
                for (size_t i = 0; i < n; i++)
                        (void) fprintf(smi->out, "%s%s%s", i > 0 ? ", " : "", text_strip(names[i]),
                                        fields[i] == APP_MEMORY && options->units ? " [MiB]" : "");
                (void) fputc('\n', smi->out);
        }
        for (size_t i = 0; i < smi->n_processes; i++) {
                for (size_t k = 0; k < n; k++) {
                        if (k > 0)
                                (void) fputs(", ", smi->out);
                        print_app_value(smi, &smi->processes[i], fields[k], options->units);
                }
                (void) fputc('\n', smi->out);
        }
        return SMI_OK;
}

int smi_help_query_gpu(void) {
        (void) printf("List of valid properties to query for the switch \"--query-gpu\":\n\n");
        for (size_t i = 0; i < smi_n_fields; i++) {
                (void) printf("\"%s\"", smi_fields[i].name);
                if (smi_fields[i].alias)
                        (void) printf(" or \"%s\"", smi_fields[i].alias);
                (void) printf("\n%s.\n\n", smi_fields[i].help);
        }
        return SMI_OK;
}

int smi_help_query_apps(void) {
        (void) printf("List of valid properties to query for the switch \"--query-compute-apps\":\n\n");
        for (size_t i = 0; i < ELEMENTSOF(app_fields); i++)
                (void) printf("\"%s\"\n%s.\n\n", app_fields[i].name, app_fields[i].help);
        return SMI_OK;
}
