/* SPDX-License-Identifier: MIT */
#include "agent/driver/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"

static int compare_entries(const void *a, const void *b) {
        return strcmp(((const GpuEntry *) a)->uuid, ((const GpuEntry *) b)->uuid);
}

static int compare_uuid(const void *uuid, const void *entry) {
        return strcmp(uuid, ((const GpuEntry *) entry)->uuid);
}

static void entry_set(GpuEntry *entry, const GpuSample *sample) {
        memcpy(entry->uuid, sample->uuid, sizeof entry->uuid);
        memcpy(entry->bus_id, sample->bus_id, sizeof entry->bus_id);
        entry->index = sample->index;
        entry->minor = sample->minor;
        entry->mig = sample->mig;
}

int table_replace(GpuTable *table, const GpuSample *samples, size_t n) {
        CLEANUP(free_ptr) GpuEntry *entries = NULL;

        entries = calloc(n + 1, sizeof *entries);
        if (!entries)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                entry_set(&entries[i], &samples[i]);
        qsort(entries, n, sizeof *entries, compare_entries);

        free(table->entries);
        table->entries = take_ptr(&entries);
        table->n = n;
        return 0;
}

void table_update(GpuTable *table, const GpuSample *samples, size_t n) {
        for (size_t i = 0; i < n; i++) {
                GpuEntry *entry = (GpuEntry *) table_find(table, samples[i].uuid);

                /* A GPU that did not answer tells nothing new. */
                if (entry && samples[i].error[0] == '\0')
                        entry_set(entry, &samples[i]);
        }
}

const GpuEntry* table_find(const GpuTable *table, const char *uuid) {
        if (table->n == 0)
                return NULL;
        return bsearch(uuid, table->entries, table->n, sizeof *table->entries, compare_uuid);
}

void table_done(GpuTable *table) {
        free(table->entries);
        *table = (GpuTable){};
}
