/* SPDX-License-Identifier: MIT */
/* The key table: what there is to configure, of which type, within which limits, and what holds without a
 * file. */
#pragma once

#include "agent/config/config.h"

#define CONFIG_KEYS_MAX 64

typedef enum ConfigType {
        CONFIG_TEXT,     /* char*; min and max are lengths */
        CONFIG_PATH,     /* char*; absolute */
        CONFIG_NAME,     /* char*; letters, digits, '_' and '-', or nothing: safe as a file name */
        CONFIG_BOOLEAN,  /* bool */
        CONFIG_DURATION, /* usec_t; min and max are microseconds */
        CONFIG_NUMBER,   /* uint32_t */
        CONFIG_CHOICE,   /* int; the place in `choices` */
        CONFIG_UNITS,    /* char**, a list of systemd units; max is their number */
} ConfigType;

typedef struct ConfigKey {
        ConfigKeyInfo info;
        ConfigType type;
        size_t offset; /* in Config */
        uint64_t min, max;
        const char *choices[4];
} ConfigKey;

/* The place of a key in the table; the section is "" for a key at the top. -ENOENT no such key in this
 * section. */
int config_key_find(const char *section, const char *name);

/* Whether the key takes a list. Such a key is emptied first, and then given each item by
 * config_key_set(). */
bool config_key_is_list(int key);
void config_key_empty(Config *config, int key);

/* "driver.smi" in the words of messages: just "mode" for a key that is in no section. */
void config_key_format(const char *section, const char *name, char *ret, size_t size);

/* The place of the first key of a section. -ENOENT no such section. */
int config_section_find(const char *section);

/* Sets one key, or adds to its list, by its place in the table, from the scalar as it stands in a file;
 * `quoted` says that it had quotes. 0 · -ENOMEM · -EINVAL and *ret_problem (to be freed, may be NULL),
 * what the key wants:
 * "must be true or false". */
int config_key_set(Config *config, int key, const char *value, bool quoted, char **ret_problem);
