/* SPDX-License-Identifier: MIT */
/* What a subscriber of the core remembers of each GPU: one entry a GPU, found by its address in O(log n). */
#pragma once

#include <stddef.h>

#include "agent/core/gpu.h"

/* Maps a Gpu (by address) to an entry of `entry_size` bytes, which begins with a `const Gpu *`. */
typedef struct GpuTable {
        size_t entry_size;
        void *entries;
        size_t n;
} GpuTable;

/* The GPU's entry, all zero after the address when it is new; NULL without memory. Good until the next
 * call. */
void* gpu_table_get(GpuTable *table, const Gpu *gpu);

/* The GPU's entry, or NULL if it has none. */
const void* gpu_table_find(const GpuTable *table, const Gpu *gpu);

/* The GPU is about to be freed: another may come to its address. */
void gpu_table_remove(GpuTable *table, const Gpu *gpu);

void gpu_table_done(GpuTable *table);
