/* SPDX-License-Identifier: MIT */
#include "cli/lease.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/parse.h"
#include "agent/base/text.h"

/* The next name of the text: a tenant has neither a comma nor a space in it. Its length, 0 at the end. */
static size_t next_name(const char **text) {
        *text += strspn(*text, ", ");
        return strcspn(*text, ", ");
}

bool lease_names(const char *text, const char *tenant) {
        for (size_t n; (n = next_name(&text)) > 0; text += n)
                if (strlen(tenant) == n && strncmp(text, tenant, n) == 0)
                        return true;
        return false;
}

size_t lease_gpus(const Tray *tray, const char *tenant, char **ret_names) {
        CLEANUP(free_ptr) char *names = NULL;
        size_t n = 0;

        for (size_t i = 0; i < tray->n_gpus; i++) {
                char name[GPU_UUID_SIZE], *longer;

                if (!lease_names(tray->gpus[i].tenant, tenant))
                        continue;
                gpu_view_format(&tray->gpus[i], name, sizeof name);
                if (asprintf(&longer, "%s%s%s", names ?: "", names ? "," : "", name) < 0)
                        return 0;
                free(names);
                names = longer;
                n++;
        }

        *ret_names = take_ptr(&names);
        return n;
}

void lease_find_restart(const Tray *tray, char tenant[static TENANT_MAX + 1]) {
        size_t length = (size_t) (strrchr(tenant, '.') - tenant) + 1; /* with the dot */
        char found[TENANT_MAX + 1] = "";

        for (size_t i = 0; i < tray->n_gpus; i++) {
                const char *text = tray->gpus[i].tenant;

                for (size_t n; (n = next_name(&text)) > 0; text += n) {
                        char name[TENANT_MAX + 1];

                        if (n >= sizeof name || n <= length || strncmp(text, tenant, length) != 0)
                                continue;
                        (void) snprintf(name, sizeof name, "%.*s", (int) n, text);
                        if (found[0] && !streq(found, name))
                                return;
                        (void) memcpy(found, name, sizeof found);
                }
        }

        if (found[0])
                (void) memcpy(tenant, found, sizeof found);
}

static bool has_gpus(const Tray *tray, const char *tenant) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (lease_names(tray->gpus[i].tenant, tenant))
                        return true;
        return false;
}

void lease_find_ended_run(const Tray *tray, char tenant[static TENANT_MAX + 1]) {
        const char *dot = strrchr(tenant, '.');
        char earlier[TENANT_MAX + 1];
        uint32_t restarts;

        if (!dot || parse_u32(dot + 1, UINT32_MAX, &restarts) < 0 || restarts == 0 || has_gpus(tray, tenant))
                return;
        (void) snprintf(earlier, sizeof earlier, "%.*s.%u", (int) (dot - tenant), tenant, restarts - 1);
        if (has_gpus(tray, earlier))
                (void) memcpy(tenant, earlier, sizeof earlier);
}
