/* SPDX-License-Identifier: MIT */
/* Which tray says that it has a GPU. Two that have the same are one tray by two names, or a copy of it. */
#pragma once

#include <stddef.h>

typedef struct GpuOwner {
        const char *uuid, *tray; /* borrowed */
} GpuOwner;

/* Sorts them, and finds a GPU that two trays have: one of them, and *ret_other, the other. NULL: there is
 * none. */
const GpuOwner* gpu_owner_find_double(GpuOwner *owners, size_t n, const char **ret_other);

/* What is said of it: printf's format for the tray, the other tray, and the UUID. */
#define GPU_OWNER_DOUBLE "%s and %s both say that they have %s: one tray by two names? name it once"
