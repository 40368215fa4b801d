/* SPDX-License-Identifier: MIT */
/* One key of a configuration: its type, its limits, and how its field is set from a file. */
#pragma once

#include "agent/config/config.h"

typedef enum ConfigType {
        CONFIG_TEXT,     /* char*; min and max are lengths */
        CONFIG_PATH,     /* char*; absolute, or nothing where min is 0 */
        CONFIG_NAME,     /* char*; letters, digits, '_' and '-', or nothing: safe as a file name */
        CONFIG_URL,      /* char*; of http or https, or nothing where min is 0 */
        CONFIG_BOOLEAN,  /* bool */
        CONFIG_DURATION, /* usec_t; min and max are microseconds */
        CONFIG_NUMBER,   /* uint32_t */
        CONFIG_CHOICE,   /* int; the place in `choices` */
        CONFIG_UNITS,    /* char**, a list of systemd units; max is their number */
        CONFIG_HOSTS,    /* char**, a list of [USER@]HOST; max is their number */
        CONFIG_LABELS,   /* char**, a list of Kubernetes' names of namespaces; max is their number */
        CONFIG_NUMBERS,  /* NumberList; min and max are of each number */
} ConfigType;

typedef struct ConfigKey {
        ConfigKeyInfo info;
        ConfigType type;
        size_t offset; /* in the object that is configured */
        uint64_t min, max;
        const char *choices[4];
} ConfigKey;

/* Whether the key takes a list. Such a key is cleared first, and then given each item by
 * config_key_set(). */
bool config_key_is_list(const ConfigKey *key);

/* Frees what the key's field holds; a list is empty then. */
void config_key_clear(const ConfigKey *key, void *object);

/* Sets the key's field in `object`, or adds to its list, from the scalar as it stands in a file; `quoted`
 * says that it had quotes. 0 · -ENOMEM · -EINVAL and *ret_problem (to be freed, may be NULL), what the key
 * wants: "must be true or false". */
int config_key_set(const ConfigKey *key, void *object, const char *value, bool quoted, char **ret_problem);
