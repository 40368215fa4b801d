/* SPDX-License-Identifier: MIT */
#include "agent/config/keys.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/parse.h"
#include "agent/base/text.h"

#define TEXT_MAX 1024
#define HOUR     (3600 * USEC_PER_SEC)
#define MINUTE   (60 * USEC_PER_SEC)
#define TENTH    (USEC_PER_SEC / 10)

#define KEY(section, name, fallback, type, field, ...) \
        { { section, name, fallback }, type, offsetof(Config, field), __VA_ARGS__ }

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
        KEY("fabric", "query", "\"\"", CONFIG_TEXT, fabric.query, 0, TEXT_MAX),
        KEY("access", "group", "gpuagent-admin", CONFIG_TEXT, access.group, 0, 256),
        KEY("access", "processes", "all", CONFIG_CHOICE, access.processes, 0, 0, { "all", "own" }),
        KEY("metrics", "nvlink", "true", CONFIG_BOOLEAN, metrics.nvlink),
};

_Static_assert(ELEMENTSOF(key_table) <= CONFIG_KEYS_MAX, "the reader keeps one line number a key");

const ConfigKeyInfo* config_key_info(size_t i) {
        return i < ELEMENTSOF(key_table) ? &key_table[i].info : NULL;
}

int config_key_find(const char *section, const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(key_table); i++)
                if (streq(key_table[i].info.section, section) && streq(key_table[i].info.name, name))
                        return (int) i;
        return -ENOENT;
}

int config_section_find(const char *section) {
        for (size_t i = 0; i < ELEMENTSOF(key_table); i++)
                if (streq(key_table[i].info.section, section))
                        return (int) i;
        return -ENOENT;
}

static int refuse(char **ret_problem, const char *format, ...) PRINTF_FORMAT(2, 3);
static int refuse(char **ret_problem, const char *format, ...) {
        char *problem = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&problem, format, arguments) < 0)
                problem = NULL;
        va_end(arguments);
        *ret_problem = problem;
        return -EINVAL;
}

bool config_key_is_list(int key) {
        return key_table[key].type == CONFIG_UNITS;
}

void config_key_empty(Config *config, int key) {
        char ***list = (char ***) ((char *) config + key_table[key].offset);

        *list = strv_free(*list);
}

void config_key_format(const char *section, const char *name, char *ret, size_t size) {
        (void) snprintf(ret, size, "%s%s%s", section, *section ? "." : "", name);
}

static bool is_one_line(const char *s) {
        for (; *s; s++)
                if ((unsigned char) *s < 0x20 || *s == 0x7f)
                        return false;
        return true;
}

static bool is_name(const char *s) {
        return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(s);
}

/* A unit that can be stopped and started again, by the name that systemd knows it by. */
static bool is_unit(const char *s) {
        static const char *const suffixes[] = { ".service", ".socket", ".timer", ".path", ".target" };
        const char *suffix = strrchr(s, '.');

        if (!suffix || suffix == s || suffix[-1] == '@' || strlen(s) > 255 ||
                        strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.\\@-") !=
                                        strlen(s))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (streq(suffix, suffixes[i]))
                        return true;
        return false;
}

static int add_unit(char ***field, const ConfigKey *key, const char *value, char **ret_problem) {
        /* Who stops one of these for a reset stops the reset, or the jobs. */
        static const char *const refused[] = { "gpuagentd.service", "gpuagent-driver.service",
                "gpuagent-driver.socket", "gpuagent-boot-reset.service", "slurmd.service", "dbus.service",
                "dbus.socket" };

        if (!is_unit(value))
                return refuse(ret_problem,
                                "must name units as systemd does, such as nvidia-dcgm.service: a service, "
                                "socket, timer, path or target");
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                if (streq(value, refused[i]))
                        return refuse(ret_problem, "must not name %s: a handover needs it", value);
        if (strv_contains(*field, value))
                return refuse(ret_problem, "names %s twice; keep one of them", value);
        if (strv_length(*field) >= key->max)
                return refuse(ret_problem, "names more than %llu units", (unsigned long long) key->max);
        return strv_append(field, value);
}

static int set_text(char **field, const ConfigKey *key, const char *value, char **ret_problem) {
        size_t length = strlen(value);
        char *copy;

        if (length < key->min)
                return refuse(ret_problem, "must not be empty");
        if (length > key->max)
                return refuse(ret_problem, "is longer than %llu bytes", (unsigned long long) key->max);
        if (!is_one_line(value))
                return refuse(ret_problem, "must be one line of text");
        if (key->type == CONFIG_PATH && *value != '/')
                return refuse(ret_problem, "must be an absolute path");
        if (key->type == CONFIG_NAME && !is_name(value))
                return refuse(ret_problem, "must be a name of letters, digits, '_' and '-'");

        copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        free(*field);
        *field = copy;
        return 0;
}

static int set_boolean(bool *field, const char *value, bool quoted, char **ret_problem) {
        if (quoted || parse_boolean(value, field) < 0)
                return refuse(ret_problem, "must be true or false, without quotes");
        return 0;
}

static int set_duration(usec_t *field, const ConfigKey *key, const char *value, char **ret_problem) {
        usec_t usec;
        int r;

        r = parse_duration(value, &usec);
        if (r == -EINVAL)
                return refuse(ret_problem, "must be a time such as 90s, 1.5s, 200ms or 2min");
        if (r < 0 || usec < key->min || usec > key->max)
                return refuse(ret_problem, "must be a time from %gs to %gs",
                                (double) key->min / (double) USEC_PER_SEC,
                                (double) key->max / (double) USEC_PER_SEC);
        *field = usec;
        return 0;
}

static int set_number(
                uint32_t *field, const ConfigKey *key, const char *value, bool quoted, char **ret_problem) {
        uint32_t number;

        if (quoted || parse_u32(value, (uint32_t) key->max, &number) < 0 || number < key->min)
                return refuse(ret_problem, "must be a number from %llu to %llu, without quotes",
                                (unsigned long long) key->min, (unsigned long long) key->max);
        *field = number;
        return 0;
}

static int set_choice(int *field, const ConfigKey *key, const char *value, char **ret_problem) {
        char words[128];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(key->choices) && key->choices[i]; i++)
                if (streq(value, key->choices[i])) {
                        *field = (int) i;
                        return 0;
                }

        for (size_t i = 0; i < ELEMENTSOF(key->choices) && key->choices[i] && n < sizeof words; i++)
                n += (size_t) snprintf(
                                words + n, sizeof words - n, "%s%s", i > 0 ? " or " : "", key->choices[i]);
        return refuse(ret_problem, "must be %s", words);
}

int config_key_set(Config *config, int key, const char *value, bool quoted, char **ret_problem) {
        const ConfigKey *k = &key_table[key];
        void *field = (char *) config + k->offset;
        static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

        if (!quoted)
                for (size_t i = 0; i < ELEMENTSOF(nulls); i++)
                        if (streq(value, nulls[i]))
                                return refuse(ret_problem,
                                                "has no value; leave the line out for the default (%s)",
                                                k->info.fallback);

        switch (k->type) {
        case CONFIG_TEXT:
        case CONFIG_PATH:
        case CONFIG_NAME: return set_text(field, k, value, ret_problem);
        case CONFIG_BOOLEAN: return set_boolean(field, value, quoted, ret_problem);
        case CONFIG_DURATION: return set_duration(field, k, value, ret_problem);
        case CONFIG_NUMBER: return set_number(field, k, value, quoted, ret_problem);
        case CONFIG_CHOICE: return set_choice(field, k, value, ret_problem);
        case CONFIG_UNITS: return add_unit(field, k, value, ret_problem);
        }
        return -EINVAL;
}
