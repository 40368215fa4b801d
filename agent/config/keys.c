/* SPDX-License-Identifier: MIT */
#include "agent/config/keys.h"

#include <errno.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/config/client-config.h"

#define TEXT_MAX 1024
#define HOUR     (3600 * USEC_PER_SEC)
#define MINUTE   (60 * USEC_PER_SEC)
#define TENTH    (USEC_PER_SEC / 10)

#define ROW(section, name, fallback, type, object, field, ...) \
        { { section, name, fallback }, type, offsetof(object, field), __VA_ARGS__ }
#define KEY(section, name, fallback, type, field, ...) \
        ROW(section, name, fallback, type, Config, field, __VA_ARGS__)
#define CLIENT_KEY(section, name, fallback, type, field, ...) \
        ROW(section, name, fallback, type, ClientConfig, field, __VA_ARGS__)
#define BMC_KEY(section, name, fallback, type, field, ...) \
        ROW(section, name, fallback, type, ClientBmc, field, __VA_ARGS__)

static const ConfigKey key_table[] = {
        KEY("", "mode", "enforce", CONFIG_CHOICE, mode, 0, 0, { "enforce", "observe" }),
        KEY("driver", "root", "/", CONFIG_PATH, driver.root, 1, TEXT_MAX),
        KEY("driver", "devices", "/dev", CONFIG_PATH, driver.devices, 1, TEXT_MAX),
        KEY("driver", "module", "nvidia", CONFIG_NAME, driver.module, 0, 64),
        KEY("driver", "library", "libnvidia-ml.so.1", CONFIG_TEXT, driver.library, 1, TEXT_MAX),
        KEY("driver", "smi", "nvidia-smi", CONFIG_TEXT, driver.smi, 1, TEXT_MAX),
        KEY("driver", "reset-id", "bus-id", CONFIG_CHOICE, driver.reset_id, 0, 0,
                        { "bus-id", "uuid", "index" }),
        KEY("driver", "poll-interval", "15s", CONFIG_DURATION, driver.poll_interval_usec, TENTH, HOUR),
        KEY("driver", "probe-timeout", "60s", CONFIG_DURATION, driver.probe_timeout_usec, TENTH, HOUR),
        KEY("driver", "reset-timeout", "120s", CONFIG_DURATION, driver.reset_timeout_usec, TENTH, HOUR),
        KEY("driver", "fabric-timeout", "60s", CONFIG_DURATION, driver.fabric_timeout_usec, 0, HOUR),
        KEY("handover", "reset", "true", CONFIG_BOOLEAN, handover.reset),
        KEY("handover", "boot-reset", "true", CONFIG_BOOLEAN, handover.boot_reset),
        KEY("handover", "acquire-timeout", "300s", CONFIG_DURATION, handover.acquire_timeout_usec,
                        USEC_PER_SEC, HOUR),
        KEY("handover", "busy-grace", "15s", CONFIG_DURATION, handover.busy_grace_usec, 0, HOUR),
        KEY("handover", "leftovers", "kill", CONFIG_CHOICE, handover.leftovers, 0, 0, { "kill", "refuse" }),
        KEY("handover", "kill-grace", "5s", CONFIG_DURATION, handover.kill_grace_usec, 0, MINUTE),
        KEY("handover", "mig", "refuse", CONFIG_CHOICE, handover.mig, 0, 0, { "refuse", "skip" }),
        KEY("handover", "shared", "refuse", CONFIG_CHOICE, handover.shared, 0, 0, { "refuse", "count" }),
        KEY("handover", "expected-nvlinks", "0", CONFIG_NUMBER, handover.expected_nvlinks, 0, 36),
        KEY("handover", "checks-directory", "/etc/gpuagent/checks.d", CONFIG_PATH, handover.checks_directory,
                        1, TEXT_MAX),
        KEY("handover", "check-timeout", "30s", CONFIG_DURATION, handover.check_timeout_usec, TENTH, HOUR),
        KEY("quiesce", "units", "[]", CONFIG_UNITS, quiesce.units, 0, 32),
        KEY("quiesce", "command", "\"\"", CONFIG_TEXT, quiesce.command, 0, TEXT_MAX),
        KEY("slurm", "gpu-index", "auto", CONFIG_CHOICE, slurm.gpu_index, 0, 0,
                        { "auto", "index", "minor" }),
        KEY("slurm", "drain", "true", CONFIG_BOOLEAN, slurm.drain),
        KEY("slurm", "resume", "false", CONFIG_BOOLEAN, slurm.resume),
        KEY("oci", "observers", "[]", CONFIG_LABELS, oci.observers, 0, 64),
        KEY("oci", "nvidia-runtime", "false", CONFIG_BOOLEAN, oci.nvidia_runtime),
        KEY("oci", "timeout", "90s", CONFIG_DURATION, oci.timeout_usec, USEC_PER_SEC, HOUR),
        KEY("fabric", "query", "\"\"", CONFIG_TEXT, fabric.query, 0, TEXT_MAX),
        KEY("access", "group", "gpuagent-admin", CONFIG_TEXT, access.group, 0, 256),
        KEY("access", "processes", "all", CONFIG_CHOICE, access.processes, 0, 0, { "all", "own" }),
        KEY("metrics", "nvlink", "true", CONFIG_BOOLEAN, metrics.nvlink),
};

static const ConfigKey client_key_table[] = {
        CLIENT_KEY("client", "trays", "[]", CONFIG_HOSTS, trays, 0, CLIENT_TRAYS_MAX),
        CLIENT_KEY("client", "fabric-assign", "\"\"", CONFIG_TEXT, fabric_assign, 0, TEXT_MAX),
        CLIENT_KEY("client.topology", "format", "block-sizes", CONFIG_CHOICE, topology.format, 0, 0,
                        { "block-sizes", "block-levels", "yaml", "features" }),
        CLIENT_KEY("client.topology", "block-sizes", "[]", CONFIG_NUMBERS, topology.block_sizes, 1, 65535),
};

static const ConfigKey bmc_key_table[] = {
        BMC_KEY("client.bmc.TRAY", "url", "\"\"", CONFIG_URL, url, 0, TEXT_MAX),
        BMC_KEY("client.bmc.TRAY", "user", "\"\"", CONFIG_TEXT, user, 0, 256),
        BMC_KEY("client.bmc.TRAY", "password-file", "\"\"", CONFIG_PATH, password_file, 0, TEXT_MAX),
        BMC_KEY("client.bmc.TRAY", "ca-file", "\"\"", CONFIG_PATH, ca_file, 0, TEXT_MAX),
        BMC_KEY("client.bmc.TRAY", "verify", "true", CONFIG_BOOLEAN, verify, 0, 0),
};

_Static_assert(ELEMENTSOF(key_table) < CONFIG_KEYS_MAX, "the reader keeps one line number a key");

const ConfigSchema config_schema = {
        .manual = "gpuagentd.yaml(5)",
        .example = "driver",
        .root = "",
        .keys = key_table,
        .n_keys = ELEMENTSOF(key_table),
};

const ConfigSchema client_bmc_schema = {
        .manual = "gpuagentctl.yaml(5)",
        .root = "client.bmc.TRAY",
        .keys = bmc_key_table,
        .n_keys = ELEMENTSOF(bmc_key_table),
};

const ConfigSchema client_config_schema = {
        .manual = "gpuagentctl.yaml(5)",
        .example = "client",
        .root = "",
        .keys = client_key_table,
        .n_keys = ELEMENTSOF(client_key_table),
        .map = "client.bmc",
        .entry_schema = &client_bmc_schema,
        .entry_get = client_bmc_get,
};

const ConfigKeyInfo* config_key_info(size_t i) {
        return i < ELEMENTSOF(key_table) ? &key_table[i].info : NULL;
}

const ConfigKeyInfo* client_config_key_info(size_t i) {
        if (i < ELEMENTSOF(client_key_table))
                return &client_key_table[i].info;
        i -= ELEMENTSOF(client_key_table);
        return i < ELEMENTSOF(bmc_key_table) ? &bmc_key_table[i].info : NULL;
}

int schema_key_find(const ConfigSchema *schema, const char *section, const char *name) {
        for (size_t i = 0; i < schema->n_keys; i++)
                if (streq(schema->keys[i].info.section, section) && streq(schema->keys[i].info.name, name))
                        return (int) i;
        return -ENOENT;
}

int schema_section_find(const ConfigSchema *schema, const char *section) {
        for (size_t i = 0; i < schema->n_keys; i++) {
                const char *rest = startswith(schema->keys[i].info.section, section);

                if (rest && (*rest == '\0' || *rest == '.'))
                        return (int) i;
        }
        return -ENOENT;
}

int schema_init(const ConfigSchema *schema, void *object) {
        for (size_t i = 0; i < schema->n_keys; i++) {
                CLEANUP(free_ptr) char *problem = NULL;
                const ConfigKey *key = &schema->keys[i];
                bool empty = streq(key->info.fallback, "\"\"");
                int r;

                if (config_key_is_list(key))
                        continue; /* empty */
                r = config_key_set(key, object, empty ? "" : key->info.fallback, empty, &problem);
                if (r < 0)
                        return r;
        }
        return 0;
}

void schema_done(const ConfigSchema *schema, void *object) {
        for (size_t i = 0; i < schema->n_keys; i++)
                config_key_clear(&schema->keys[i], object);
}
