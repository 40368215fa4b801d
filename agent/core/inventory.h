/* SPDX-License-Identifier: MIT */
/* The GPUs of the tray: owned here, found by UUID, index or PCI bus id. One that is gone stays and is lost,
 * until somebody says that it will not come back. */
#pragma once

#include "agent/core/gpu.h"

typedef struct Inventory {
        Gpu **by_index; /* ascending; the GPUs without an index last */
        Gpu **by_uuid;  /* ascending */
        size_t n;
} Inventory;

/* Frees the GPUs too. */
void inventory_done(Inventory *inventory);

/* Takes the GPU over, into both orders. 0 · -ENOMEM, and it is the caller's still. */
int inventory_add(Inventory *inventory, Gpu *gpu);

/* Takes the GPU out; it is the caller's then. */
void inventory_remove(Inventory *inventory, Gpu *gpu);

/* Puts by_index in order again after indices changed or GPUs were added. */
void inventory_sort(Inventory *inventory);

/* O(log n); NULL if there is none. */
Gpu* inventory_by_uuid(const Inventory *inventory, const char *uuid);

/* A GPU id as gpu_id_parse() takes it. A GPU that is gone has its UUID still, and its index and bus id
 * unless another took them.
 * 0 and *ret · -EINVAL malformed · -ENOENT. */
int inventory_find(const Inventory *inventory, const char *id, Gpu **ret);
