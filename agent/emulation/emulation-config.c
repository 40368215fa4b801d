/* SPDX-License-Identifier: MIT */
#include "agent/emulation/emulation-config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "agent/base/io.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"
#include "agent/emulation/tray.h"

#define CONFIG_SIZE_MAX (1U << 20)

typedef enum KeyType {
        KEY_TEXT,
        KEY_NUMBER,
        KEY_MIB,
        KEY_DURATION,
        KEY_LIST,
} KeyType;

typedef struct Key {
        const char *name;
        KeyType type;
        size_t offset;
        uint64_t max;
} Key;

static const Key keys[] = {
        { "name", KEY_TEXT, offsetof(EmulationConfig, name), TRAY_NAME_SIZE - 1 },
        { "preset", KEY_TEXT, offsetof(EmulationConfig, preset), 15 },
        { "gpus", KEY_NUMBER, offsetof(EmulationConfig, gpus), TRAY_GPUS_MAX },
        { "model", KEY_TEXT, offsetof(EmulationConfig, model), 95 },
        { "memory", KEY_MIB, offsetof(EmulationConfig, memory_mib), UINT32_MAX },
        { "uuids", KEY_LIST, offsetof(EmulationConfig, uuids), 0 },
        { "bus-ids", KEY_LIST, offsetof(EmulationConfig, bus_ids), 0 },
        { "minors", KEY_LIST, offsetof(EmulationConfig, minors), 0 },
        { "serials", KEY_LIST, offsetof(EmulationConfig, serials), 0 },
        { "nvlinks", KEY_NUMBER, offsetof(EmulationConfig, nvlinks), 36 },
        { "cluster-uuid", KEY_TEXT, offsetof(EmulationConfig, cluster_uuid), 36 },
        { "partition", KEY_NUMBER, offsetof(EmulationConfig, partition), PARTITION_ID_MAX },
        { "partition-name", KEY_TEXT, offsetof(EmulationConfig, partition_name), TRAY_NAME_SIZE - 1 },
        { "clique", KEY_NUMBER, offsetof(EmulationConfig, clique), UINT32_MAX - 1 },
        { "reset-time", KEY_DURATION, offsetof(EmulationConfig, reset_usec), 0 },
        { "settle-time", KEY_DURATION, offsetof(EmulationConfig, settle_usec), 0 },
        { "dialect", KEY_TEXT, offsetof(EmulationConfig, dialect), 15 },
        { "driver-version", KEY_TEXT, offsetof(EmulationConfig, driver_version), 31 },
        { "devices", KEY_TEXT, offsetof(EmulationConfig, devices), 127 },
        { "bmc-listen", KEY_TEXT, offsetof(EmulationConfig, bmc_listen), 63 },
};

EmulationConfig* emulation_config_free(EmulationConfig *config) {
        if (!config)
                return NULL;

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                void *field = (char *) config + keys[i].offset;

                if (keys[i].type == KEY_TEXT)
                        free(*(char **) field);
                else if (keys[i].type == KEY_LIST)
                        (void) strv_free(*(char ***) field);
        }
        free(config);
        return NULL;
}

static void document_done(yaml_document_t **document) {
        if (*document)
                yaml_document_delete(*document);
}

static int set_text(char **field, const char *text) {
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        free(*field);
        *field = copy;
        return 0;
}

static int set_list(yaml_document_t *document, const yaml_node_t *node, char ***field) {
        CLEANUP(strv_free_ptr) char **list = NULL;

        for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
                const yaml_node_t *item = yaml_document_get_node(document, *i);
                int r;

                if (item->type != YAML_SCALAR_NODE)
                        return -EINVAL;
                r = strv_append(&list, (const char *) item->data.scalar.value);
                if (r < 0)
                        return r;
        }

        (void) strv_free(*field);
        *field = take_ptr(&list);
        return 0;
}

/* Spaces between a number of memory and its unit are allowed: "189471 MiB". */
static int parse_mib(const char *text, uint64_t max, uint64_t *ret) {
        char digits[24];
        size_t n = strspn(text, "0123456789");
        const char *unit = text + n;
        uint64_t value, scale = 1;
        int r;

        if (n == 0 || n >= sizeof digits)
                return -EINVAL;
        memcpy(digits, text, n);
        digits[n] = '\0';

        unit += strspn(unit, " ");
        if (streq(unit, "GiB"))
                scale = 1024;
        else if (*unit != '\0' && !streq(unit, "MiB"))
                return -EINVAL;

        r = parse_u64(digits, max, &value);
        if (r < 0)
                return r;
        if (__builtin_mul_overflow(value, scale, &value) || value > max)
                return -ERANGE;
        *ret = value;
        return 0;
}

static int set_key(EmulationConfig *config, const Key *key, yaml_document_t *document,
                const yaml_node_t *node) {
        void *field = (char *) config + key->offset;
        const char *text;

        if (key->type == KEY_LIST)
                return node->type == YAML_SEQUENCE_NODE ? set_list(document, node, field) : -EINVAL;
        if (node->type != YAML_SCALAR_NODE)
                return -EINVAL;

        text = (const char *) node->data.scalar.value;
        if (strlen(text) != node->data.scalar.length)
                return -EINVAL;
        if (key->type == KEY_NUMBER)
                return parse_u32(text, (uint32_t) key->max, field);
        if (key->type == KEY_MIB)
                return parse_mib(text, key->max, field);
        if (key->type == KEY_DURATION)
                return parse_duration(text, field);
        if (strlen(text) > key->max)
                return -ERANGE;
        return text_is_printable(text) ? set_text(field, text) : -EINVAL;
}

static const Key* find_key(const yaml_node_t *node) {
        if (node->type == YAML_SCALAR_NODE)
                for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                        if (streq(keys[i].name, (const char *) node->data.scalar.value))
                                return &keys[i];
        return NULL;
}

static int read_document(
                EmulationConfig *config, const char *path, yaml_document_t *document, char **ret_message) {
        const yaml_node_t *root = yaml_document_get_root_node(document);
        bool seen[ELEMENTSOF(keys)] = {};

        if (!root) /* an empty file */
                return 0;
        if (root->type != YAML_MAPPING_NODE)
                return emulation_refuse(-EINVAL, ret_message, "%s:%zu: expected \"key: value\" lines", path,
                                root->start_mark.line + 1);

        for (yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top;
                        pair++) {
                const yaml_node_t *name = yaml_document_get_node(document, pair->key);
                const yaml_node_t *value = yaml_document_get_node(document, pair->value);
                const Key *key = find_key(name);
                int r;

                if (!key || seen[key - keys])
                        return emulation_refuse(-EINVAL, ret_message, "%s:%zu: %s", path,
                                        name->start_mark.line + 1,
                                        key ? "this key is there twice" : "unknown key");

                seen[key - keys] = true;
                r = set_key(config, key, document, value);
                if (r < 0)
                        return emulation_refuse(r, ret_message, "%s:%zu: not a valid value of %s", path,
                                        value->start_mark.line + 1, key->name);
        }
        return 0;
}

/* The line of the first alias or anchor, which the document's reader would follow without a word; 0 for
 * none. */
static size_t find_alias(const char *text, size_t size) {
        yaml_parser_t parser;
        size_t line = 0;
        bool end = false;

        if (!yaml_parser_initialize(&parser))
                return 0;
        yaml_parser_set_input_string(&parser, (const unsigned char *) text, size);
        while (!end && line == 0) {
                yaml_event_t event;

                if (!yaml_parser_parse(&parser, &event))
                        break; /* the reader will say what is wrong */
                if (event.type == YAML_ALIAS_EVENT ||
                                (event.type == YAML_SCALAR_EVENT && event.data.scalar.anchor))
                        line = event.start_mark.line + 1;
                end = event.type == YAML_STREAM_END_EVENT;
                yaml_event_delete(&event);
        }
        yaml_parser_delete(&parser);
        return line;
}

static int read_text(EmulationConfig *config, const char *path, const char *text, size_t size,
                char **ret_message) {
        CLEANUP(document_done) yaml_document_t *loaded = NULL;
        size_t alias_line = find_alias(text, size);
        yaml_document_t document;
        yaml_parser_t parser;

        if (alias_line > 0)
                return emulation_refuse(
                                -EINVAL, ret_message, "%s:%zu: aliases are not taken", path, alias_line);
        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&parser, (const unsigned char *) text, size);
        if (!yaml_parser_load(&parser, &document)) {
                int r = emulation_refuse(-EINVAL, ret_message, "%s:%zu: %s", path,
                                parser.problem_mark.line + 1, parser.problem ?: "not valid YAML");

                yaml_parser_delete(&parser);
                return r;
        }
        yaml_parser_delete(&parser);
        loaded = &document;
        return read_document(config, path, loaded, ret_message);
}

static int set_defaults(EmulationConfig *config) {
        char host[TRAY_NAME_SIZE] = {};

        if (gethostname(host, sizeof host - 1) < 0 || host[0] == '\0')
                strcpy(host, "tray");

        config->partition = PARTITION_DEFAULT;
        config->clique = 1;
        config->reset_usec = 2 * USEC_PER_SEC;
        config->settle_usec = USEC_PER_SEC;
        config->nvlinks = UINT32_MAX; /* the preset's */
        if (set_text(&config->name, host) < 0 || set_text(&config->preset, "gb200") < 0 ||
                        set_text(&config->partition_name, "default") < 0 ||
                        set_text(&config->dialect, "nvidia") < 0 ||
                        set_text(&config->driver_version, "580.173.02") < 0 ||
                        set_text(&config->devices, "/dev") < 0 ||
                        set_text(&config->bmc_listen, "127.0.0.1:8470") < 0 ||
                        set_text(&config->cluster_uuid, "7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91") < 0)
                return -ENOMEM;
        return 0;
}

int emulation_refuse(int error, char **ret_message, const char *format, ...) {
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = vasprintf(ret_message, format, arguments);
        va_end(arguments);
        if (r < 0)
                *ret_message = NULL;
        return error;
}

int emulation_config_load(const char *path, EmulationConfig **ret, char **ret_message) {
        CLEANUP(emulation_config_free_ptr) EmulationConfig *config = NULL;
        CLEANUP(free_ptr) char *text = NULL;
        const char *file = path ?: TRAY_CONFIG_PATH;
        size_t size = 0;
        int r;

        *ret_message = NULL;
        config = calloc(1, sizeof *config);
        if (!config || set_defaults(config) < 0)
                return -ENOMEM;

        r = file_read(AT_FDCWD, file, CONFIG_SIZE_MAX, &text, &size);
        if (r == -ENOENT && !path)
                r = 0;
        if (r < 0)
                return emulation_refuse(r, ret_message, "%s: %s", file, strerror(-r));

        r = read_text(config, file, text ?: "", size, ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}
