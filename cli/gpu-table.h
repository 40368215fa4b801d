/* SPDX-License-Identifier: MIT */
/* The list of GPUs, a row each: all of its columns, or some of them. */
#pragma once

#include "cli/gpu.h"
#include "cli/table.h"

/* One bit a column. */
typedef enum GpuColumn {
        GPU_COLUMN_TRAY = 1 << 0,
        GPU_COLUMN_GPU = 1 << 1,
        GPU_COLUMN_UUID = 1 << 2,
        GPU_COLUMN_PARTITION = 1 << 3,
        GPU_COLUMN_CLIQUE = 1 << 4,
        GPU_COLUMN_RESET = 1 << 5,
        GPU_COLUMN_NVLINKS = 1 << 6,
        GPU_COLUMN_HEALTH = 1 << 7,
        GPU_COLUMN_STATE = 1 << 8,
        GPU_COLUMN_TENANT = 1 << 9,
        GPU_COLUMN_UTIL = 1 << 10,
        GPU_COLUMN_MEMORY = 1 << 11,
        GPU_COLUMN_POWER = 1 << 12,
        GPU_COLUMN_TEMP = 1 << 13,
} GpuColumn;

#define GPU_COLUMNS_LIST ((uint32_t) GPU_COLUMN_UTIL - 1) /* what the list always has */
#define GPU_COLUMNS_LIVE ((uint32_t) GPU_COLUMN_TEMP * 2 - 1)

/* A table of these columns without rows. It must not outlive the options. 0 and *ret · -ENOMEM. */
int gpu_table_new(const Options *options, uint32_t columns, Table **ret);

/* A row for each of the tray's GPUs, into a table that was made for these columns. */
void gpu_table_add(Table *table, uint32_t columns, const Tray *tray);
