/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <ctype.h>
#include <errno.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/sample.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/json.h"
#include "cli/print.h"

struct Table {
        const Options *options;
        size_t n_columns;
        size_t column; /* of the next cell */
        int error;     /* the first failure to add a cell */

        struct libscols_table *text; /* one of the two, as the options say */
        struct libscols_line *line;
        json_object *rows;
        json_object *row; /* borrowed from `rows` */
        const char *columns[];
};

static int text_table_new(const Options *options, const char *const *columns, size_t n_columns,
                struct libscols_table **ret) {
        struct libscols_table *text = scols_new_table();
        int r;

        if (!text)
                return -ENOMEM;
        /* Two spaces between columns, nothing cut at the terminal's width. */
        r = scols_table_set_column_separator(text, "  ");
        if (r >= 0)
                r = scols_table_set_termforce(text, SCOLS_TERMFORCE_NEVER);
        if (r >= 0)
                r = scols_table_enable_noheadings(text, !options->legend);
        /* What comes from outside is escaped already; a second time it would be unreadable. */
        if (r >= 0)
                r = scols_table_enable_noencoding(text, 1);
        for (size_t i = 0; r >= 0 && i < n_columns; i++)
                if (!scols_table_new_column(text, columns[i], 0, 0))
                        r = -ENOMEM;
        if (r < 0) {
                scols_unref_table(text);
                return r;
        }

        *ret = text;
        return 0;
}

int table_new(const Options *options, const char *const *columns, size_t n_columns, Table **ret) {
        CLEANUP(table_free_ptr) Table *table = calloc(1, sizeof *table + n_columns * sizeof *columns);

        if (!table)
                return -ENOMEM;
        table->options = options;
        table->n_columns = n_columns;
        for (size_t i = 0; i < n_columns; i++)
                table->columns[i] = columns[i];
        if (options->output == OUTPUT_TABLE) {
                int r = text_table_new(options, columns, n_columns, &table->text);

                if (r < 0)
                        return r;
        } else {
                table->rows = json_object_new_array();
                if (!table->rows)
                        return -ENOMEM;
        }

        *ret = take_ptr(&table);
        return 0;
}

Table* table_free(Table *table) {
        if (!table)
                return NULL;
        scols_unref_table(table->text);
        (void) json_object_put(table->rows);
        free(table);
        return NULL;
}

static int text_add(Table *table, const char *s) {
        CLEANUP(free_ptr) char *copy = strdup(s);
        int r;

        if (!copy)
                return -ENOMEM;
        text_sanitize(copy);
        if (table->column == 0) {
                table->line = scols_table_new_line(table->text, NULL);
                if (!table->line)
                        return -ENOMEM;
        }
        r = scols_line_refer_data(table->line, table->column, copy);
        if (r < 0)
                return r;
        (void) take_ptr(&copy); /* the line has it now */
        return 0;
}

static int json_add(Table *table, json_object *value) {
        char key[32] = "";

        if (table->column == 0) {
                json_object *row = json_object_new_object();

                if (!row || json_object_array_add(table->rows, row) < 0) {
                        (void) json_object_put(row);
                        (void) json_object_put(value);
                        return -ENOMEM;
                }
                table->row = row;
        }
        for (size_t i = 0; i + 1 < sizeof key && table->columns[table->column][i] != '\0'; i++)
                key[i] = (char) tolower((unsigned char) table->columns[table->column][i]);
        return json_set(table->row, key, value);
}

static void table_note(Table *table, int r) {
        if (table->error >= 0 && r < 0)
                table->error = r;
        table->column = (table->column + 1) % table->n_columns;
}

/* A cell as a person reads it. */
static int cell_add(Table *table, const char *s) {
        return table->text ? text_add(table, s) : json_add(table, json_object_new_string(s));
}

static bool is_for_people(const Table *table) {
        return table->options->output == OUTPUT_TABLE || table->options->output == OUTPUT_CELLS;
}

void table_add_string(Table *table, const char *s) {
        if (is_for_people(table))
                table_note(table, cell_add(table, s && s[0] != '\0' ? s : "-"));
        else
                table_note(table, json_add(table, json_string(s)));
}

void table_add_u64_as(Table *table, uint64_t value, const char *text) {
        if (is_for_people(table))
                table_note(table, cell_add(table, value == UNKNOWN_U64 ? "-" : text));
        else
                table_note(table, json_add(table, json_u64(value)));
}

static void table_add_u64(Table *table, uint64_t value) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) value);
        table_add_u64_as(table, value, text);
}

void table_add_u32(Table *table, uint32_t value) {
        table_add_u64(table, value == UNKNOWN_U32 ? UNKNOWN_U64 : value);
}

static int text_add_list(Table *table, const uint32_t *values, size_t n) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        int r;

        if (!file)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (values[i] == UNKNOWN_U32)
                        (void) fputs(i > 0 ? ",?" : "?", file);
                else
                        (void) fprintf(file, "%s%u", i > 0 ? "," : "", values[i]);
        r = text_stream_end(&stream);
        return r < 0 ? r : cell_add(table, n > 0 ? stream.text : "-");
}

static int json_add_list(Table *table, const uint32_t *values, size_t n) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; array && i < n; i++)
                if (json_object_array_add(array, json_u32(values[i])) < 0) {
                        (void) json_object_put(array);
                        array = NULL;
                }
        if (!array)
                return -ENOMEM;
        return json_add(table, array);
}

void table_add_list(Table *table, const uint32_t *values, size_t n) {
        table_note(table,
                        is_for_people(table) ? text_add_list(table, values, n)
                                             : json_add_list(table, values, n));
}

static int text_format(struct libscols_table *text, char **ret) {
        CLEANUP(free_ptr) char *lines = NULL;
        char *copy;
        int r;

        /* libsmartcols prints nothing without a row, not even the names, and no newline at the end. */
        if (scols_table_get_nlines(text) > 0) {
                r = scols_print_table_to_string(text, &lines);
                if (r < 0)
                        return r;
        }
        if (asprintf(&copy, "%s%s", lines ?: "", lines ? "\n" : "") < 0)
                return -ENOMEM;

        *ret = copy;
        return 0;
}

int table_format(const Table *table, char **ret) {
        const char *json;
        char *copy;

        if (table->error < 0)
                return table->error;
        if (table->text)
                return text_format(table->text, ret);

        json = json_text(table->rows, table->options->output);
        if (!json || asprintf(&copy, "%s\n", json) < 0)
                return -ENOMEM;

        *ret = copy;
        return 0;
}

int table_print(const Table *table) {
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        r = table_format(table, &text);
        if (r < 0)
                return r;
        (void) fputs(text, stdout); /* main() looks at the stream's errors when it closes it */
        return 0;
}
