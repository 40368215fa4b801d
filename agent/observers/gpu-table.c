/* SPDX-License-Identifier: MIT */
#include "agent/observers/gpu-table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"

/* The place of the first entry whose GPU is not below this one. */
static size_t table_place(const GpuTable *table, const Gpu *gpu) {
        size_t from = 0, to = table->n;

        while (from < to) {
                size_t middle = from + (to - from) / 2;
                const Gpu *const *entry =
                                (const void *) ((const char *) table->entries + middle * table->entry_size);

                if ((uintptr_t) *entry < (uintptr_t) gpu)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

const void* gpu_table_find(const GpuTable *table, const Gpu *gpu) {
        size_t place = table_place(table, gpu);
        const Gpu *const *entry;

        if (place == table->n)
                return NULL;
        entry = (const void *) ((const char *) table->entries + place * table->entry_size);
        return *entry == gpu ? entry : NULL;
}

void* gpu_table_get(GpuTable *table, const Gpu *gpu) {
        size_t place = table_place(table, gpu);
        char *larger, *entry;

        if (gpu_table_find(table, gpu))
                return (char *) table->entries + place * table->entry_size;

        larger = array_grow(table->entries, table->n, 1, table->entry_size);
        if (!larger)
                return NULL;
        entry = larger + place * table->entry_size;
        memmove(entry + table->entry_size, entry, (table->n - place) * table->entry_size);
        memset(entry, 0, table->entry_size);
        memcpy(entry, &gpu, sizeof gpu);
        table->entries = larger;
        table->n++;
        return entry;
}

void gpu_table_remove(GpuTable *table, const Gpu *gpu) {
        size_t place = table_place(table, gpu);
        char *entry = (char *) table->entries + place * table->entry_size;

        if (!gpu_table_find(table, gpu))
                return;
        table->n--;
        memmove(entry, entry + table->entry_size, (table->n - place) * table->entry_size);
}

void gpu_table_done(GpuTable *table) {
        free(table->entries);
        table->entries = NULL;
        table->n = 0;
}
