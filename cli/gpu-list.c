/* SPDX-License-Identifier: MIT */
#include "cli/gpu-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/text.h"

/* "GPU-", and the start of a UUID: at least one hex digit. */
static bool is_uuid_prefix(const char *s) {
        const char *digits = startswith(s, "GPU-");

        return digits && digits[0] != '\0' &&
                        strlen(s) < strlen("GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") &&
                        strspn(digits, "0123456789abcdefABCDEF-") == strlen(digits);
}

static int id_check(const char *id, Failure *failure) {
        GpuId parsed;

        if (gpu_id_parse(id, &parsed) >= 0 || is_uuid_prefix(id))
                return 0;
        return failure_set(failure, CLI_USAGE,
                        "'%s' is no GPU; give an index, a UUID or its beginning, or a PCI bus id", id);
}

int gpu_list_parse(const char *text, char ***ret, Failure *failure) {
        CLEANUP(strv_free_ptr) char **ids = NULL;
        int r;

        r = list_parse(text, &ids);
        if (r == -EINVAL)
                return failure_set(failure, CLI_USAGE, "'%s' is no list of GPUs, such as 0,1,2,3", text);
        if (r < 0)
                return failure_errno(failure, r, "cannot read the list of GPUs");

        STRV_FOREACH (id, ids) {
                r = id_check(*id, failure);
                if (r < 0)
                        return r;
        }

        *ret = take_ptr(&ids);
        return 0;
}

bool gpu_list_has_prefix(char *const *ids) {
        for (; ids && *ids; ids++)
                if (is_uuid_prefix(*ids))
                        return true;
        return false;
}

static int find_by_prefix(const Tray *tray, const char *prefix, const GpuView **ret, Failure *failure) {
        const GpuView *found = NULL;

        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];

                if (strncasecmp(gpu->uuid, prefix, strlen(prefix)) != 0)
                        continue;
                if (found)
                        return failure_set(failure, CLI_USAGE, "'%s' is the beginning of more than one UUID",
                                        prefix);
                found = gpu;
        }
        if (!found)
                return failure_set(failure, CLI_NO_GPU, "no GPU has a UUID that begins with '%s'", prefix);

        *ret = found;
        return 0;
}

static bool gpu_has_id(const GpuView *gpu, const GpuId *id) {
        switch (id->kind) {
        case GPU_ID_INDEX: return gpu->index == id->index;
        case GPU_ID_UUID: return streq(gpu->uuid, id->uuid);
        case GPU_ID_BUS_ID: return streq(gpu->bus_id, id->bus_id);
        }
        return false;
}

int gpu_list_find(const Tray *tray, const char *id, const GpuView **ret, Failure *failure) {
        GpuId parsed;
        int r;

        r = id_check(id, failure);
        if (r < 0)
                return r;
        if (is_uuid_prefix(id))
                return find_by_prefix(tray, id, ret, failure);

        (void) gpu_id_parse(id, &parsed); /* id_check() has seen that it is one */
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (gpu_has_id(&tray->gpus[i], &parsed)) {
                        *ret = &tray->gpus[i];
                        return 0;
                }
        return failure_set(failure, CLI_NO_GPU, "there is no GPU %s", id);
}

int gpu_list_complete(char **ids, const Tray *tray, Failure *failure) {
        STRV_FOREACH (id, ids) {
                const GpuView *gpu = NULL;
                char *uuid;
                int r;

                if (!is_uuid_prefix(*id))
                        continue;
                r = find_by_prefix(tray, *id, &gpu, failure);
                if (r < 0)
                        return r;
                uuid = strdup(gpu->uuid);
                if (!uuid)
                        return failure_errno(failure, -ENOMEM, "cannot read the list of GPUs");
                free(*id);
                *id = uuid;
        }
        return 0;
}

int gpu_list_for_agent(Client *client, const char *text, char ***ret, Failure *failure) {
        CLEANUP(strv_free_ptr) char **ids = NULL;
        CLEANUP(tray_done) Tray tray = {};
        int r;

        if (text) {
                r = gpu_list_parse(text, &ids, failure);
                if (r < 0)
                        return r;
        }
        if (gpu_list_has_prefix(ids)) {
                r = tray_read(client, &tray, failure);
                if (r >= 0)
                        r = gpu_list_complete(ids, &tray, failure);
                if (r < 0)
                        return r;
        }

        *ret = take_ptr(&ids);
        return 0;
}
