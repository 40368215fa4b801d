/* SPDX-License-Identifier: MIT */
/* Which GPU is where, as the last probe saw it. Probes and resets find a GPU by its PCI bus id, since a
 * look-up by UUID in NVML may attach other GPUs. */
#pragma once

#include "agent/base/sample.h"

typedef struct GpuEntry {
        char uuid[GPU_UUID_SIZE];
        char bus_id[GPU_BUS_ID_SIZE];
        uint32_t index;
        uint32_t minor;
        bool mig;
} GpuEntry;

/* {} is an empty one. Sorted by UUID. */
typedef struct GpuTable {
        GpuEntry *entries;
        size_t n;
} GpuTable;

/* Makes the table that of a probe of all GPUs. 0 · -ENOMEM, and the table is as it was. */
int table_replace(GpuTable *table, const GpuSample *samples, size_t n);

/* Takes over what a probe of some GPUs found about those that are in the table. */
void table_update(GpuTable *table, const GpuSample *samples, size_t n);

/* NULL if there is none. */
const GpuEntry* table_find(const GpuTable *table, const char *uuid);

void table_done(GpuTable *table);
