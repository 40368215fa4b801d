/* SPDX-License-Identifier: MIT */
#include "agent/config/value.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/parse.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"

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

static void* key_field(const ConfigKey *key, void *object) {
        return (char *) object + key->offset;
}

bool config_key_is_list(const ConfigKey *key) {
        switch (key->type) {
        case CONFIG_UNITS:
        case CONFIG_HOSTS:
        case CONFIG_LABELS:
        case CONFIG_NUMBERS: return true;
        case CONFIG_TEXT:
        case CONFIG_PATH:
        case CONFIG_NAME:
        case CONFIG_URL:
        case CONFIG_BOOLEAN:
        case CONFIG_DURATION:
        case CONFIG_NUMBER:
        case CONFIG_CHOICE: return false;
        }
        return false;
}

void config_key_clear(const ConfigKey *key, void *object) {
        void *field = key_field(key, object);

        switch (key->type) {
        case CONFIG_TEXT:
        case CONFIG_PATH:
        case CONFIG_NAME:
        case CONFIG_URL:
                free(*(char **) field);
                *(char **) field = NULL;
                return;
        case CONFIG_UNITS:
        case CONFIG_HOSTS:
        case CONFIG_LABELS: *(char ***) field = strv_free(*(char ***) field); return;
        case CONFIG_NUMBERS: *(NumberList *) field = (NumberList){}; return;
        case CONFIG_BOOLEAN:
        case CONFIG_DURATION:
        case CONFIG_NUMBER:
        case CONFIG_CHOICE: return;
        }
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

static int add_once(char ***field, const ConfigKey *key, const char *value, const char *what,
                char **ret_problem) {
        if (strv_contains(*field, value))
                return refuse(ret_problem, "names %s twice; keep one of them", value);
        if (strv_length(*field) >= key->max)
                return refuse(ret_problem, "names more than %llu %s", (unsigned long long) key->max, what);
        return strv_append(field, value);
}

static int add_label(char ***field, const ConfigKey *key, const char *value, char **ret_problem) {
        if (value[0] == '\0' || strlen(value) > 63 ||
                        strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(value))
                return refuse(ret_problem, "must name namespaces as Kubernetes does, such as kube-system");
        return add_once(field, key, value, "namespaces", ret_problem);
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
        return add_once(field, key, value, "units", ret_problem);
}

static int add_host(char ***field, const ConfigKey *key, const char *value, char **ret_problem) {
        if (!host_is_valid(value))
                return refuse(ret_problem, "must name trays as ssh does, such as tray1 or admin@tray1");
        return add_once(field, key, value, "trays", ret_problem);
}

static int add_number(NumberList *field, const ConfigKey *key, const char *value, bool quoted,
                char **ret_problem) {
        uint32_t number;

        if (quoted || parse_u32(value, (uint32_t) key->max, &number) < 0 || number < key->min)
                return refuse(ret_problem, "must have numbers from %llu to %llu, without quotes",
                                (unsigned long long) key->min, (unsigned long long) key->max);
        if (field->n >= ELEMENTSOF(field->values))
                return refuse(ret_problem, "has more than %zu numbers", ELEMENTSOF(field->values));
        field->values[field->n++] = number;
        return 0;
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
        if (key->type == CONFIG_PATH && length > 0 && *value != '/')
                return refuse(ret_problem, "must be an absolute path");
        if (key->type == CONFIG_NAME && !is_name(value))
                return refuse(ret_problem, "must be a name of letters, digits, '_' and '-'");

        if (key->type == CONFIG_URL && length > 0 && !startswith(value, "http://") &&
                        !startswith(value, "https://"))
                return refuse(ret_problem, "must start with https:// or http://");

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

int config_key_set(const ConfigKey *key, void *object, const char *value, bool quoted, char **ret_problem) {
        void *field = key_field(key, object);
        static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

        if (!quoted)
                for (size_t i = 0; i < ELEMENTSOF(nulls); i++)
                        if (streq(value, nulls[i]))
                                return refuse(ret_problem,
                                                "has no value; leave the line out for the default (%s)",
                                                key->info.fallback);

        switch (key->type) {
        case CONFIG_TEXT:
        case CONFIG_PATH:
        case CONFIG_NAME:
        case CONFIG_URL: return set_text(field, key, value, ret_problem);
        case CONFIG_BOOLEAN: return set_boolean(field, value, quoted, ret_problem);
        case CONFIG_DURATION: return set_duration(field, key, value, ret_problem);
        case CONFIG_NUMBER: return set_number(field, key, value, quoted, ret_problem);
        case CONFIG_CHOICE: return set_choice(field, key, value, ret_problem);
        case CONFIG_UNITS: return add_unit(field, key, value, ret_problem);
        case CONFIG_HOSTS: return add_host(field, key, value, ret_problem);
        case CONFIG_LABELS: return add_label(field, key, value, ret_problem);
        case CONFIG_NUMBERS: return add_number(field, key, value, quoted, ret_problem);
        }
        return -EINVAL;
}
