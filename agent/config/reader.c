/* SPDX-License-Identifier: MIT */
#include "agent/config/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <yaml.h>

#include "agent/base/text.h"
#include "agent/config/keys.h"

#define WORD_MAX  256
#define LABEL_MAX (2 * WORD_MAX)

typedef struct Reader {
        yaml_parser_t parser;
        yaml_event_t event; /* the one being looked at */
        const char *name;
        const char *text;
        const char *example; /* a section there is, for messages */
        char **ret_message;
} Reader;

/* A mapping that is read: of a whole file, a section, or the entry of a map. */
typedef struct Scope {
        const ConfigSchema *schema;
        void *object;
        const char *section;                   /* as in the schema's table */
        const char *label;                     /* the same with the names of the file, for messages */
        size_t lines[CONFIG_KEYS_MAX];         /* where the key was set, 0 not yet */
        size_t section_lines[CONFIG_KEYS_MAX]; /* the same for the section that starts with the key */
} Scope;

static void reader_done(Reader *reader) {
        yaml_event_delete(&reader->event);
        yaml_parser_delete(&reader->parser);
}

static size_t event_line(const Reader *reader) {
        return reader->event.start_mark.line + 1;
}

static int refuse(Reader *reader, size_t line, const char *format, ...) PRINTF_FORMAT(3, 4);
static int refuse(Reader *reader, size_t line, const char *format, ...) {
        char text[512];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        if (asprintf(reader->ret_message, "%s:%zu: %s", reader->name, line, text) < 0) {
                *reader->ret_message = NULL;
                return -ENOMEM;
        }
        return -EINVAL;
}

static int refuse_yaml(Reader *reader) {
        const yaml_parser_t *parser = &reader->parser;
        size_t line = 1;

        if (parser->error == YAML_MEMORY_ERROR)
                return -ENOMEM;
        if (parser->error != YAML_READER_ERROR)
                return refuse(reader, parser->problem_mark.line + 1,
                                "this is not valid YAML: %s; check the indentation, the colons and the "
                                "quotes",
                                parser->problem ? parser->problem : "unknown problem");

        /* The reader runs ahead of the lines it has counted: only its offset is true. */
        for (size_t i = 0; i < parser->problem_offset; i++)
                if (reader->text[i] == '\n')
                        line++;
        return refuse(reader, line,
                        "this is not UTF-8 text without control characters; save the file as such");
}

/* Looks at the next event. 0 · negative, as config_read_text. */
static int reader_next(Reader *reader) {
        yaml_event_delete(&reader->event);
        if (!yaml_parser_parse(&reader->parser, &reader->event))
                return refuse_yaml(reader);
        return 0;
}

/* What makes a file harder to read than it needs to be, and its meaning depend on other places. */
static int refuse_extras(Reader *reader) {
        const yaml_event_t *event = &reader->event;
        const yaml_char_t *anchor = NULL, *tag = NULL;

        switch (event->type) {
        case YAML_ALIAS_EVENT:
                return refuse(reader, event_line(reader),
                                "aliases (*name) are not allowed; write the value out");
        case YAML_SCALAR_EVENT:
                anchor = event->data.scalar.anchor;
                tag = event->data.scalar.tag;
                break;
        case YAML_SEQUENCE_START_EVENT:
                anchor = event->data.sequence_start.anchor;
                tag = event->data.sequence_start.tag;
                break;
        case YAML_MAPPING_START_EVENT:
                anchor = event->data.mapping_start.anchor;
                tag = event->data.mapping_start.tag;
                break;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_STREAM_END_EVENT:
        case YAML_DOCUMENT_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT: break;
        }

        if (anchor)
                return refuse(reader, event_line(reader),
                                "anchors (&name) are not allowed; write the value out");
        if (tag)
                return refuse(reader, event_line(reader),
                                "tags (!name) are not allowed; the key decides the type");
        return 0;
}

static bool is_empty_scalar(const yaml_event_t *event) {
        return event->type == YAML_SCALAR_EVENT && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                        event->data.scalar.length == 0;
}

/* The event that a value begins with. */
static int reader_next_value(Reader *reader) {
        int r;

        r = reader_next(reader);
        return r < 0 ? r : refuse_extras(reader);
}

/* Copies the scalar that is looked at, as the name of a section or key. */
static int read_name(Reader *reader, char ret[static WORD_MAX]) {
        const yaml_event_t *event = &reader->event;
        int r;

        r = refuse_extras(reader);
        if (r < 0)
                return r;
        if (event->type != YAML_SCALAR_EVENT)
                return refuse(reader, event_line(reader), "a name is expected here, as in \"%s:\"",
                                reader->example);

        text_escape_bytes((const char *) event->data.scalar.value, event->data.scalar.length, ret, WORD_MAX);
        return 0;
}

/* "driver.smi" in the words of messages: just "mode" for a key that is in no section. */
static void label_join(const char *section, const char *name, char ret[static LABEL_MAX]) {
        (void) snprintf(ret, LABEL_MAX, "%s%s%s", section, *section ? "." : "", name);
}

/* Sets the key, or adds to its list, from the scalar that is looked at. */
static int set_scalar(Reader *reader, const Scope *scope, const char *label, const ConfigKey *key) {
        CLEANUP(free_ptr) char *problem = NULL;
        const yaml_event_t *event = &reader->event;
        int r;

        if (strlen((const char *) event->data.scalar.value) != event->data.scalar.length)
                return refuse(reader, event_line(reader), "%s must be one line of text", label);

        r = config_key_set(key, scope->object, (const char *) event->data.scalar.value,
                        event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE, &problem);
        if (r == -EINVAL)
                return refuse(reader, event_line(reader), "%s %s", label, problem ? problem : "is wrong");
        return r;
}

/* Reads the items of a list, up to its end. They take the place of those of an earlier file. */
static int read_list(Reader *reader, const Scope *scope, const char *label, const ConfigKey *key) {
        int r;

        config_key_clear(key, scope->object);
        for (;;) {
                r = reader_next(reader);
                if (r < 0)
                        return r;
                if (reader->event.type == YAML_SEQUENCE_END_EVENT)
                        return 0;

                r = refuse_extras(reader);
                if (r < 0)
                        return r;
                if (reader->event.type != YAML_SCALAR_EVENT)
                        return refuse(reader, event_line(reader), "%s must be a list of single values",
                                        label);
                r = set_scalar(reader, scope, label, key);
                if (r < 0)
                        return r;
        }
}

static int read_value(Reader *reader, const Scope *scope, const char *label, const ConfigKey *key) {
        const yaml_event_t *event = &reader->event;
        int r;

        r = reader_next_value(reader);
        if (r < 0)
                return r;

        if (config_key_is_list(key)) {
                if (event->type != YAML_SEQUENCE_START_EVENT)
                        return refuse(reader, event_line(reader), "%s must be a list, as in [a, b]", label);
                return read_list(reader, scope, label, key);
        }
        if (event->type != YAML_SCALAR_EVENT)
                return refuse(reader, event_line(reader), "%s must be one value, not a %s", label,
                                event->type == YAML_SEQUENCE_START_EVENT ? "list" : "group of keys");
        return set_scalar(reader, scope, label, key);
}

/* A key whose name is looked at, and its value. */
static int read_key(Reader *reader, Scope *scope, const char *label, int key) {
        if (scope->lines[key] > 0)
                return refuse(reader, event_line(reader), "%s is set in line %zu already; keep one of them",
                                label, scope->lines[key]);
        scope->lines[key] = event_line(reader);
        return read_value(reader, scope, label, &scope->schema->keys[key]);
}

static bool is_map(const Scope *scope) {
        return scope->schema->map && streq(scope->section, scope->schema->map);
}

static int read_mapping(Reader *reader, Scope *scope);
static int read_map(Reader *reader, const Scope *scope);

/* What follows the name of a section: nothing, or its keys. */
static int read_section(Reader *reader, Scope *scope) {
        int r;

        r = reader_next_value(reader);
        if (r < 0)
                return r;
        if (is_empty_scalar(&reader->event))
                return 0; /* a section whose keys are all commented out */
        if (reader->event.type != YAML_MAPPING_START_EVENT)
                return refuse(reader, event_line(reader), "%s is a section: its keys follow, indented",
                                scope->label);
        return is_map(scope) ? read_map(reader, scope) : read_mapping(reader, scope);
}

/* A subsection whose name is looked at. */
static int read_subsection(Reader *reader, Scope *scope, const char *name, const char *label) {
        Scope below = { .schema = scope->schema, .object = scope->object, .label = label };
        char section[LABEL_MAX];
        int first;

        label_join(scope->section, name, section);
        below.section = section;
        if (is_map(&below))
                first = (int) scope->schema->n_keys;
        else
                first = *name && !strchr(name, '.') ? schema_section_find(scope->schema, section) : -ENOENT;
        if (first < 0)
                return refuse(reader, event_line(reader), "%s is not a %s; %s has them all", label,
                                *scope->section ? "key" : "section", scope->schema->manual);
        if (scope->section_lines[first] > 0)
                return refuse(reader, event_line(reader),
                                "%s starts in line %zu already; put its keys there", label,
                                scope->section_lines[first]);
        scope->section_lines[first] = event_line(reader);
        return read_section(reader, &below);
}
/* Reads keys and subsections, up to the end of their mapping. */
static int read_mapping(Reader *reader, Scope *scope) {
        char name[WORD_MAX], label[LABEL_MAX];
        int key, r;

        for (;;) {
                r = reader_next(reader);
                if (r < 0)
                        return r;
                if (reader->event.type == YAML_MAPPING_END_EVENT)
                        return 0;

                r = read_name(reader, name);
                if (r < 0)
                        return r;
                label_join(scope->label, name, label);
                key = schema_key_find(scope->schema, scope->section, name);
                if (key >= 0)
                        r = read_key(reader, scope, label, key);
                else
                        r = read_subsection(reader, scope, name, label);
                if (r < 0)
                        return r;
        }
}

/* An entry of a map whose name is looked at, and its keys. */
static int read_entry(Reader *reader, const Scope *map, const char *name) {
        CLEANUP(free_ptr) char *problem = NULL;
        char label[LABEL_MAX];
        Scope entry = { .schema = map->schema->entry_schema, .label = label };
        int r;

        label_join(map->label, name, label);
        entry.section = entry.schema->root;
        r = map->schema->entry_get(map->object, name, &entry.object, &problem);
        if (r == -EINVAL)
                return refuse(reader, event_line(reader), "%s %s", label, problem ? problem : "is wrong");
        if (r < 0)
                return r;
        return read_section(reader, &entry);
}

/* Reads the entries of a map, up to the end of its mapping. */
static int read_map(Reader *reader, const Scope *scope) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        char name[WORD_MAX];
        int r;

        for (;;) {
                r = reader_next(reader);
                if (r < 0)
                        return r;
                if (reader->event.type == YAML_MAPPING_END_EVENT)
                        return 0;

                r = read_name(reader, name);
                if (r < 0)
                        return r;
                if (strv_contains(names, name))
                        return refuse(reader, event_line(reader), "%s.%s is there twice; keep one of them",
                                        scope->label, name);
                r = strv_append(&names, name);
                if (r >= 0)
                        r = read_entry(reader, scope, name);
                if (r < 0)
                        return r;
        }
}

static int read_document(Reader *reader, Scope *scope) {
        int r;

        r = reader_next_value(reader);
        if (r < 0)
                return r;

        if (reader->event.type == YAML_MAPPING_START_EVENT)
                r = read_mapping(reader, scope);
        else if (!is_empty_scalar(&reader->event))
                return refuse(reader, event_line(reader), "sections are expected here, as in \"%s:\"",
                                reader->example);
        if (r < 0)
                return r;

        return reader_next(reader); /* the end of the document: the parser lets nothing else follow */
}

int config_read_text(const ConfigSchema *schema, void *object, const char *name, const char *text,
                size_t size, char **ret_message) {
        CLEANUP(reader_done)
        Reader reader = {
                .name = name, .text = text, .example = schema->example, .ret_message = ret_message
        };
        Scope scope = { .schema = schema, .object = object, .section = schema->root, .label = schema->root };
        bool had_document = false;
        int r;

        if (!yaml_parser_initialize(&reader.parser))
                return -ENOMEM;
        yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&reader.parser, (const unsigned char *) text, size);

        for (;;) {
                r = reader_next(&reader);
                if (r < 0)
                        return r;

                if (reader.event.type == YAML_STREAM_END_EVENT)
                        return 0;
                if (reader.event.type != YAML_DOCUMENT_START_EVENT)
                        continue;
                if (had_document)
                        return refuse(&reader, event_line(&reader),
                                        "a second document starts here; keep one a file");
                had_document = true;

                r = read_document(&reader, &scope);
                if (r < 0)
                        return r;
        }
}
