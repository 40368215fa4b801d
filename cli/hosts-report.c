/* SPDX-License-Identifier: MIT */
#include "cli/hosts-report.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"
#include "cli/gpu-owner.h"
#include "cli/hosts-metrics.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/table.h"

/* A table waits this long for the slow trays; those that come later follow it. */
#define TABLE_WAIT_USEC (3 * USEC_PER_SEC)

/* With --watch, changes often come several at a time. */
#define REDRAW_DELAY_USEC (100 * USEC_PER_MSEC)

#define LINE_MAX_SIZE (64 << 20)

typedef enum ReportKind {
        REPORT_LINES,  /* as they come, for people */
        REPORT_EVENTS, /* as they come, each an object */
        REPORT_ROWS,   /* together: what was last printed is what counts */
        REPORT_METRICS,
} ReportKind;

typedef struct Part {
        char *text; /* of a line that is not complete yet; REPORT_METRICS: all of it */
        size_t size;
        json_object *value; /* REPORT_ROWS: an array or object; NULL: nothing yet */
        bool shown;
        bool ended;
} Part;

struct Report {
        const Options *options;
        char **hosts;
        ReportKind kind;
        Part *parts;
        size_t n;
        usec_t wait_until_usec; /* for the slow ones */
        usec_t show_usec;       /* USEC_INFINITY: nothing is due */
        bool head_shown;
};

static ReportKind kind_for(const Verb *verb, const Options *options) {
        if (verb->output == VERB_METRICS)
                return REPORT_METRICS;
        if (verb->options & OPTION_LEGEND)
                return REPORT_ROWS;
        if (options->output == OUTPUT_TABLE)
                return REPORT_LINES;
        return verb->output == VERB_EVENTS ? REPORT_EVENTS : REPORT_ROWS;
}

int report_new(const Verb *verb, const Options *options, char **hosts, Report **ret) {
        CLEANUP(report_free_ptr) Report *report = calloc(1, sizeof *report);

        if (!report)
                return -ENOMEM;
        *report = (Report){
                .options = options,
                .hosts = hosts,
                .kind = kind_for(verb, options),
                .n = strv_length(hosts),
                .wait_until_usec = now_monotonic_usec() + TABLE_WAIT_USEC,
                .show_usec = USEC_INFINITY,
        };
        report->parts = calloc(report->n, sizeof *report->parts);
        if (!report->parts)
                return -ENOMEM;

        *ret = take_ptr(&report);
        return 0;
}

Report* report_free(Report *report) {
        if (!report)
                return NULL;
        for (size_t i = 0; report->parts && i < report->n; i++) {
                free(report->parts[i].text);
                (void) json_object_put(report->parts[i].value);
        }
        free(report->parts);
        free(report);
        return NULL;
}

OutputMode report_output(const Report *report) {
        if (report->kind == REPORT_LINES || report->kind == REPORT_METRICS)
                return OUTPUT_TABLE;
        return report->options->output == OUTPUT_TABLE ? OUTPUT_CELLS : OUTPUT_JSON_SHORT;
}

/* The same object with "tray" before the rest, if it does not say so itself. 0 and *ret (to be put) ·
 * -ENOMEM. */
static int object_with_tray(json_object *object, const char *tray, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *with = NULL;
        int r;

        if (json_object_object_get_ex(object, "tray", NULL)) {
                *ret = json_object_get(object);
                return 0;
        }
        with = json_object_new_object();
        r = json_set(with, "tray", json_string(tray));
        json_object_object_foreach(object, key, value) {
                if (r >= 0)
                        r = json_set(with, key, json_object_get(value));
        }
        if (r < 0)
                return r;

        *ret = take_ptr(&with);
        return 0;
}

static int array_append(json_object *array, json_object *object, const char *tray) {
        json_object *with;
        int r;

        r = object_with_tray(object, tray, &with);
        if (r < 0)
                return r;
        if (json_object_array_add(array, with) < 0) {
                (void) json_object_put(with);
                return -ENOMEM;
        }
        return 0;
}

/* What is to be shown now, as one array. 0 and *ret (to be put) · -ENOMEM. */
static int collect_rows(Report *report, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *rows = json_object_new_array();
        int r = rows ? 0 : -ENOMEM;

        for (size_t i = 0; i < report->n; i++) {
                const char *tray = host_name(report->hosts[i]);
                Part *part = &report->parts[i];

                if (!part->value || (part->shown && !report->options->watch))
                        continue;
                part->shown = true;
                if (!json_object_is_type(part->value, json_type_array)) {
                        r = r >= 0 ? array_append(rows, part->value, tray) : r;
                        continue;
                }
                for (size_t k = 0; r >= 0 && k < json_object_array_length(part->value); k++)
                        r = array_append(rows, json_object_array_get_idx(part->value, k), tray);
        }
        if (r < 0)
                return r;

        *ret = take_ptr(&rows);
        return 0;
}

/* The keys are the columns' names in lower case. */
static int print_table(const Options *options, json_object *rows) {
        CLEANUP(strv_free_ptr) char **columns = NULL;
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        if (json_object_array_length(rows) == 0)
                return 0;
        json_object_object_foreach(json_object_array_get_idx(rows, 0), key, first) {
                (void) first;
                r = strv_append(&columns, key);
                if (r < 0)
                        return r;
        }
        STRV_FOREACH (column, columns)
                for (char *c = *column; *c != '\0'; c++)
                        *c = (char) toupper((unsigned char) *c);

        r = table_new(options, (const char *const *) columns, strv_length(columns), &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < json_object_array_length(rows); i++) {
                json_object_object_foreach(json_object_array_get_idx(rows, i), name, value) {
                        (void) name;
                        table_add_string(table, json_object_get_string(value));
                }
        }
        return table_print(table);
}

static int show_rows(Report *report) {
        CLEANUP(json_put_ptr) json_object *rows = NULL;
        Options options = *report->options;
        int r;

        r = collect_rows(report, &rows);
        if (r < 0)
                return r;
        report->show_usec = USEC_INFINITY;
        if (options.watch && isatty(STDOUT_FILENO))
                (void) fputs("\033[H\033[2J", stdout);
        else if (options.watch && options.output == OUTPUT_TABLE && report->head_shown)
                (void) fputc('\n', stdout);
        if (options.output != OUTPUT_TABLE) {
                r = json_print(rows, options.output);
        } else {
                options.legend = options.legend && (options.watch || !report->head_shown);
                r = print_table(&options, rows);
                report->head_shown = report->head_shown || json_object_array_length(rows) > 0;
                for (size_t i = 0; options.watch && i < report->n; i++)
                        if (report->parts[i].ended)
                                print_line(stdout, "%s says no more", host_name(report->hosts[i]));
        }
        (void) fflush(stdout);
        return r;
}

/* When what has just come is shown: a table as soon as it is complete or the slow ones were waited for,
 * JSON at the end. */
static void schedule(Report *report) {
        usec_t now = now_monotonic_usec();
        bool complete = true;

        for (size_t i = 0; i < report->n; i++)
                complete = complete && (report->parts[i].value || report->parts[i].ended);
        if (!report->options->watch && report->options->output != OUTPUT_TABLE)
                return;
        report->show_usec = report->options->watch ? now + REDRAW_DELAY_USEC : now;
        if (!complete && report->show_usec < report->wait_until_usec)
                report->show_usec = report->wait_until_usec;
}

static int line_done(Report *report, size_t i, const char *line) {
        CLEANUP(json_put_ptr) json_object *value = NULL, *event = NULL;
        const char *tray = host_name(report->hosts[i]);
        int r;

        if (report->kind == REPORT_LINES) {
                print_line(stdout, line[0] ? "%s: %s" : "%s:%s", tray, line);
                (void) fflush(stdout);
                return 0;
        }
        value = json_tokener_parse(line);
        if (!value)
                return -EBADMSG;
        if (report->kind == REPORT_EVENTS) {
                r = object_with_tray(value, tray, &event);
                if (r >= 0)
                        r = json_print(event, report->options->output);
                (void) fflush(stdout);
                return r;
        }
        (void) json_object_put(report->parts[i].value);
        report->parts[i].value = take_ptr(&value);
        schedule(report);
        return 0;
}

int report_add(Report *report, size_t i, const char *text, size_t size) {
        Part *part = &report->parts[i];
        char *line, *end;
        int r;

        if (part->size + size > LINE_MAX_SIZE)
                return -EFBIG;
        r = array_reserve(&part->text, part->size, size + 1);
        if (r < 0)
                return r;
        (void) memcpy(part->text + part->size, text, size);
        part->size += size;
        part->text[part->size] = '\0';
        if (report->kind == REPORT_METRICS)
                return 0;

        line = part->text;
        while ((end = memchr(line, '\n', part->size - (size_t) (line - part->text)))) {
                *end = '\0';
                r = line_done(report, i, line);
                if (r < 0)
                        return r;
                line = end + 1;
        }
        part->size -= (size_t) (line - part->text);
        (void) memmove(part->text, line, part->size + 1);
        return 0;
}

int report_end(Report *report, size_t i) {
        report->parts[i].ended = true;
        if (report->kind != REPORT_ROWS)
                return 0;
        if (report->options->watch) { /* what it has said is not so any more, for all that is known */
                (void) json_object_put(report->parts[i].value);
                report->parts[i].value = NULL;
        }
        schedule(report);
        return 0;
}

usec_t report_due_usec(const Report *report) {
        return report->show_usec;
}

int report_turn(Report *report) {
        return now_monotonic_usec() >= report->show_usec ? show_rows(report) : 0;
}

/* 0 · -ENOMEM. */
static int show_metrics(const Report *report) {
        CLEANUP(free_ptr) char **texts = calloc(report->n, sizeof *texts); /* they stay the parts' */

        if (!texts)
                return -ENOMEM;
        for (size_t i = 0; i < report->n; i++)
                texts[i] = report->parts[i].text ?: (char *) "";
        metrics_merge(texts, report->n, stdout);
        return 0;
}

/* Where rows say which GPU they are about, one of two trays is told of: people count GPUs. */
static int warn_of_doubles(const Report *report) {
        CLEANUP(free_ptr) GpuOwner *owners = NULL;
        const GpuOwner *found;
        const char *other;
        size_t n = 0;

        for (size_t i = 0; i < report->n; i++) {
                json_object *rows = report->parts[i].value;
                size_t n_rows = json_object_is_type(rows, json_type_array) ? json_object_array_length(rows)
                                                                           : 0;

                if (array_reserve(&owners, n, n_rows + 1) < 0)
                        return -ENOMEM;
                for (size_t k = 0; k < n_rows; k++) {
                        json_object *row = json_object_array_get_idx(rows, k);
                        const char *uuid = json_object_get_string(json_object_object_get(row, "uuid"));

                        if (uuid)
                                owners[n++] = (GpuOwner){ .uuid = uuid,
                                        .tray = host_name(report->hosts[i]) };
                }
        }
        found = gpu_owner_find_double(owners, n, &other);
        if (found)
                print_complaint(GPU_OWNER_DOUBLE, found->tray, other, found->uuid);
        return 0;
}

int report_finish(Report *report) {
        int r;

        if (report->kind == REPORT_METRICS)
                return show_metrics(report);
        if (report->kind != REPORT_ROWS || (report->options->watch && report->show_usec == USEC_INFINITY))
                return 0;
        r = show_rows(report);
        return r >= 0 && !report->options->watch ? warn_of_doubles(report) : r;
}
