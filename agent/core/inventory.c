/* SPDX-License-Identifier: MIT */
#include "agent/core/inventory.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/array.h"
#include "agent/base/text.h"

void inventory_done(Inventory *inventory) {
        for (size_t i = 0; i < inventory->n; i++)
                (void) gpu_free(inventory->by_uuid[i]);
        free(inventory->by_uuid);
        free(inventory->by_index);
        *inventory = (Inventory){};
}

static int compare_uuid(const void *a, const void *b) {
        const Gpu *const *x = a, *const *y = b;

        return strcmp((*x)->sample.uuid, (*y)->sample.uuid);
}

/* Where two have the same index, the present one comes first. */
static int compare_index(const void *a, const void *b) {
        const Gpu *const *x = a, *const *y = b;

        if ((*x)->sample.index != (*y)->sample.index)
                return (*x)->sample.index < (*y)->sample.index ? -1 : 1;
        if ((*x)->present != (*y)->present)
                return (*x)->present ? -1 : 1;
        return compare_uuid(a, b);
}

void inventory_sort(Inventory *inventory) {
        if (inventory->n > 0)
                qsort(inventory->by_index, inventory->n, sizeof(Gpu *), compare_index);
}

int inventory_add(Inventory *inventory, Gpu *gpu) {
        size_t i = inventory->n;
        int r;

        r = array_reserve(&inventory->by_uuid, inventory->n, 1);
        if (r >= 0)
                r = array_reserve(&inventory->by_index, inventory->n, 1);
        if (r < 0)
                return r;

        for (; i > 0 && compare_uuid(&gpu, &inventory->by_uuid[i - 1]) < 0; i--)
                inventory->by_uuid[i] = inventory->by_uuid[i - 1];
        inventory->by_uuid[i] = gpu;
        inventory->by_index[inventory->n++] = gpu; /* inventory_sort() puts it in its place */
        return 0;
}

static void take_out(Gpu **gpus, size_t n, const Gpu *gpu) {
        size_t i = 0;

        while (i < n && gpus[i] != gpu)
                i++;
        if (i < n)
                memmove(gpus + i, gpus + i + 1, (n - i - 1) * sizeof *gpus);
}

void inventory_remove(Inventory *inventory, Gpu *gpu) {
        take_out(inventory->by_uuid, inventory->n, gpu);
        take_out(inventory->by_index, inventory->n, gpu);
        inventory->n--;
}

Gpu* inventory_by_uuid(const Inventory *inventory, const char *uuid) {
        size_t low = 0, high = inventory->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(uuid, inventory->by_uuid[middle]->sample.uuid);

                if (order == 0)
                        return inventory->by_uuid[middle];
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

static Gpu* inventory_by_index(const Inventory *inventory, uint32_t index) {
        size_t low = 0, high = inventory->n;

        /* the first of those with this index: the present one */
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (inventory->by_index[middle]->sample.index < index)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < inventory->n && inventory->by_index[low]->sample.index == index
                        ? inventory->by_index[low]
                        : NULL;
}

static Gpu* inventory_by_bus_id(const Inventory *inventory, const char *bus_id) {
        Gpu *found = NULL;

        /* a GPU that is gone has the slot still, until another is in it */
        for (size_t i = 0; i < inventory->n && !(found && found->present); i++)
                if (streq(inventory->by_index[i]->sample.bus_id, bus_id) &&
                                (!found || inventory->by_index[i]->present))
                        found = inventory->by_index[i];
        return found;
}

int inventory_find(const Inventory *inventory, const char *id, Gpu **ret) {
        Gpu *gpu = NULL;
        GpuId parsed;
        int r;

        r = gpu_id_parse(id, &parsed);
        if (r < 0)
                return r;

        switch (parsed.kind) {
        case GPU_ID_INDEX: gpu = inventory_by_index(inventory, parsed.index); break;
        case GPU_ID_UUID: gpu = inventory_by_uuid(inventory, parsed.uuid); break;
        case GPU_ID_BUS_ID: gpu = inventory_by_bus_id(inventory, parsed.bus_id); break;
        }
        if (!gpu)
                return -ENOENT;

        *ret = gpu;
        return 0;
}
