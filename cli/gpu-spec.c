/* SPDX-License-Identifier: MIT */
#include "cli/gpu-spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"

void gpu_spec_done(GpuSpec *spec) {
        free(spec->indexes);
        *spec = (GpuSpec){};
}

/* "3" or "0-1", and marks them. 0 · -EINVAL. */
static int mark_range(char *text, bool marked[static GPU_SPEC_INDEX_MAX + 1]) {
        char *to = text, *from = strsep(&to, "-");
        uint32_t first, last;

        if (parse_u32(from, GPU_SPEC_INDEX_MAX, &first) < 0)
                return -EINVAL;
        last = first;
        if (to && (parse_u32(to, GPU_SPEC_INDEX_MAX, &last) < 0 || last < first))
                return -EINVAL;
        for (uint32_t i = first; i <= last; i++)
                marked[i] = true;
        return 0;
}

static int parse_indexes(const char *text, GpuSpec *spec) {
        CLEANUP(strv_free_ptr) char **items = NULL;
        bool marked[GPU_SPEC_INDEX_MAX + 1] = {};
        int r;

        r = list_parse(text, &items);
        STRV_FOREACH (item, items)
                if (r >= 0)
                        r = mark_range(*item, marked);
        if (r < 0)
                return r;

        spec->indexes = calloc(ELEMENTSOF(marked), sizeof *spec->indexes);
        if (!spec->indexes)
                return -ENOMEM;
        for (uint32_t i = 0; i < ELEMENTSOF(marked); i++)
                if (marked[i])
                        spec->indexes[spec->n_indexes++] = i;
        return 0;
}

int gpu_spec_parse(const char *text, GpuSpec *ret) {
        CLEANUP(gpu_spec_done) GpuSpec spec = {};
        size_t n = strcspn(text, ":");
        int r;

        if (n >= sizeof spec.tray)
                return -EINVAL;
        memcpy(spec.tray, text, n);
        if (!host_is_valid(spec.tray))
                return -EINVAL;
        r = text[n] == ':' ? parse_indexes(text + n + 1, &spec) : 0;
        if (r < 0)
                return r;

        *ret = spec;
        spec = (GpuSpec){};
        return 0;
}

int gpu_spec_find(const GpuSpec *spec, char *const *hosts, size_t *ret) {
        size_t n = strv_length(hosts);
        uint32_t slot;

        for (size_t i = 0; i < n; i++)
                if (streq(host_name(hosts[i]), host_name(spec->tray))) {
                        *ret = i;
                        return 0;
                }
        if (parse_u32(spec->tray, UINT32_MAX, &slot) < 0 || slot == 0 || slot > n)
                return -ENOENT;
        *ret = slot - 1;
        return 0;
}
