/* SPDX-License-Identifier: MIT */
#include "cli/gpu-table.h"

#include <stdio.h>

typedef struct Column {
        const char *name;
        void (*add)(Table *table, const Tray *tray, const GpuView *gpu);
} Column;

static void add_tray(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_string(table, tray->node_name);
}

static void add_gpu(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_u32(table, gpu->index);
}

static void add_uuid(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_string(table, gpu->uuid);
}

static void add_partition(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_u32(table, gpu->partition);
}

static void add_clique(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_u32(table, gpu->clique_id);
}

static void add_reset(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_string(table, gpu->reset_pending ? "pending" : NULL);
}

static void add_links(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_u32(table, gpu->n_links_active);
}

static void add_health(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_string(table, gpu->health);
}

static void add_state(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_string(table, gpu->state);
}

static void add_tenant(Table *table, const Tray *tray, const GpuView *gpu) {
        table_add_string(table, gpu->tenant);
}

static void add_utilization(Table *table, const Tray *tray, const GpuView *gpu) {
        char text[16];

        (void) snprintf(text, sizeof text, "%u%%", gpu->utilization);
        table_add_string(table, gpu->utilization == UNKNOWN_U32 ? NULL : text);
}

/* Used and total, in GiB. */
static void add_memory(Table *table, const Tray *tray, const GpuView *gpu) {
        bool known = gpu->memory_used != UNKNOWN_U64 && gpu->memory_total != UNKNOWN_U64;
        char text[48];

        (void) snprintf(text, sizeof text, "%.1f/%.0fG", (double) gpu->memory_used / (1 << 30),
                        (double) gpu->memory_total / (1 << 30));
        table_add_string(table, known ? text : NULL);
}

static void add_power(Table *table, const Tray *tray, const GpuView *gpu) {
        char text[16];

        (void) snprintf(text, sizeof text, "%uW", gpu->power_mw / 1000);
        table_add_string(table, gpu->power_mw == UNKNOWN_U32 ? NULL : text);
}

static void add_temperature(Table *table, const Tray *tray, const GpuView *gpu) {
        char text[16];

        (void) snprintf(text, sizeof text, "%dC", gpu->temperature);
        table_add_string(table, gpu->temperature == UNKNOWN_I32 ? NULL : text);
}

/* In the order of their bits. */
static const Column all_columns[] = {
        { "TRAY", add_tray },
        { "GPU", add_gpu },
        { "UUID", add_uuid },
        { "PARTITION", add_partition },
        { "CLIQUE", add_clique },
        { "RESET", add_reset },
        { "NVLINKS", add_links },
        { "HEALTH", add_health },
        { "STATE", add_state },
        { "TENANT", add_tenant },
        { "UTIL", add_utilization },
        { "MEMORY", add_memory },
        { "POWER", add_power },
        { "TEMP", add_temperature },
};

int gpu_table_new(const Options *options, uint32_t columns, Table **ret) {
        const char *names[ELEMENTSOF(all_columns)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(all_columns); i++)
                if (columns & (UINT32_C(1) << i))
                        names[n++] = all_columns[i].name;
        return table_new(options, names, n, ret);
}

void gpu_table_add(Table *table, uint32_t columns, const Tray *tray) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                for (size_t j = 0; j < ELEMENTSOF(all_columns); j++)
                        if (columns & (UINT32_C(1) << j))
                                all_columns[j].add(table, tray, &tray->gpus[i]);
}
