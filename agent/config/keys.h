/* SPDX-License-Identifier: MIT */
/* The key tables: what there is to configure, of which type, within which limits, and what holds without a
 * file. */
#pragma once

#include "agent/config/value.h"

#define CONFIG_KEYS_MAX 64

/* One kind of configuration: its keys and their sections. One of its sections may be a map, which has
 * subsections of names that the file gives, each an object of its own with keys of its own. */
typedef struct ConfigSchema {
        const char *manual;  /* where a person finds the keys */
        const char *example; /* a section at the top */
        const char *root;    /* the section that keys at the top are in: "", but for the entry of a map */
        const ConfigKey *keys;
        size_t n_keys;
        const char *map; /* NULL for none */
        const struct ConfigSchema *entry_schema;
        /* The entry of this name, made if need be. 0 · -ENOMEM · -EINVAL and *ret_problem, as
         * config_key_set. */
        int (*entry_get)(void *object, const char *name, void **ret_entry, char **ret_problem);
} ConfigSchema;

extern const ConfigSchema config_schema;        /* of a Config */
extern const ConfigSchema client_config_schema; /* of a ClientConfig */
extern const ConfigSchema client_bmc_schema;    /* of a ClientBmc */

/* The place of a key in the table. -ENOENT no such key in this section. */
int schema_key_find(const ConfigSchema *schema, const char *section, const char *name);

/* The place of the first key of a section, or of one below it. -ENOENT no such section. */
int schema_section_find(const ConfigSchema *schema, const char *section);

/* Gives every field its default; `object` is all zeroes before. 0 · -ENOMEM. */
int schema_init(const ConfigSchema *schema, void *object);

/* Frees what the fields hold, but for the entries of a map. */
void schema_done(const ConfigSchema *schema, void *object);

/* entry_get of client_config_schema. */
int client_bmc_get(void *object, const char *name, void **ret_entry, char **ret_problem);
