/* SPDX-License-Identifier: MIT */
/* The parsers of base, over each line of the input. What one accepts must survive a second reading
 * unchanged. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

static void parse_gpu_ids(const char *line) {
        char bus_id[GPU_BUS_ID_SIZE], uuid[GPU_UUID_SIZE], again[GPU_UUID_SIZE];
        GpuId id;

        if (gpu_id_parse(line, &id) < 0)
                return;
        if (id.kind == GPU_ID_BUS_ID) {
                assert(bus_id_parse(id.bus_id, bus_id) == 0);
                assert(streq(bus_id, id.bus_id));
        }
        if (gpu_uuid_parse(line, uuid) == 0) {
                assert(id.kind == GPU_ID_UUID);
                assert(gpu_uuid_parse(uuid, again) == 0 && streq(uuid, again));
        }
}

static void parse_list(const char *line) {
        CLEANUP(strv_free_ptr) char **list = NULL;

        if (list_parse(line, &list) < 0)
                return;
        assert(strv_length(list) > 0);
        STRV_FOREACH (item, list) {
                assert(**item != '\0');
                parse_gpu_ids(*item);
        }
}

static void parse_line(const char *line) {
        char escaped[64];
        uint32_t small;
        uint64_t large;
        usec_t usec;
        bool value;

        parse_gpu_ids(line);
        parse_list(line);
        if (parse_u32(line, 1000, &small) == 0)
                assert(small <= 1000);
        (void) parse_u64(line, UINT64_MAX, &large);
        if (parse_duration(line, &usec) == 0)
                assert(usec != USEC_INFINITY);
        (void) parse_boolean(line, &value);
        if (tenant_is_valid(line))
                assert(strchr(line, '/') && strlen(line) <= TENANT_MAX);
        if (identifier_is_valid(line))
                assert(strlen(line) <= 64);

        text_escape(line, escaped, sizeof escaped);
        for (const char *p = escaped; *p; p++)
                assert(*p >= ' ' && *p <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(free_ptr) char *text = strndup((const char *) data, size);
        char *line, *rest = text;

        if (!text)
                return 0;
        while ((line = strsep(&rest, "\n")))
                parse_line(line);
        return 0;
}
