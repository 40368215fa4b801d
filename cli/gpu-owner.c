/* SPDX-License-Identifier: MIT */
#include "cli/gpu-owner.h"

#include <stdlib.h>

#include "agent/base/text.h"

static int compare_owner(const void *a, const void *b) {
        const GpuOwner *x = a, *y = b;
        int r = strcmp(x->uuid, y->uuid);

        return r != 0 ? r : strcmp(x->tray, y->tray);
}

const GpuOwner* gpu_owner_find_double(GpuOwner *owners, size_t n, const char **ret_other) {
        qsort(owners, n, sizeof *owners, compare_owner);
        for (size_t i = 1; i < n; i++)
                if (streq(owners[i - 1].uuid, owners[i].uuid) &&
                                !streq(owners[i - 1].tray, owners[i].tray)) {
                        *ret_other = owners[i].tray;
                        return &owners[i - 1];
                }
        return NULL;
}
