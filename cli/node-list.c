/* SPDX-License-Identifier: MIT */
#include "cli/node-list.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"

#define DIGITS_MAX 9

/* Where the number at the end of a name begins; its end if there is none, or none that can be counted on,
 * or nothing else. */
static size_t number_offset(const char *name) {
        size_t end = strlen(name), i = end;

        while (i > 0 && isdigit((unsigned char) name[i - 1]))
                i--;
        return i > 0 && end - i <= DIGITS_MAX ? i : end;
}

/* Whether `next` is the name after `name`: sched-worker10 after sched-worker9, node010 after node009. */
static bool follows(const char *name, const char *next) {
        size_t offset = number_offset(name);
        char digits[2 * DIGITS_MAX];

        if (name[offset] == '\0' || strncmp(name, next, offset) != 0)
                return false;
        (void) snprintf(digits, sizeof digits, "%0*lu", (int) strlen(name + offset),
                        strtoul(name + offset, NULL, 10) + 1);
        return streq(next + offset, digits);
}

static bool same_prefix(const char *a, const char *b) {
        size_t offset = number_offset(a);

        return a[offset] != '\0' && number_offset(b) == offset && strncmp(a, b, offset) == 0;
}

/* The names from `names` on that belong into one bracket, and how it reads. */
static size_t format_group(char *const *names, FILE *file) {
        size_t offset = number_offset(names[0]), n = 1;

        while (names[n] && same_prefix(names[0], names[n]))
                n++;
        if (n == 1) {
                (void) fputs(names[0], file);
                return 1;
        }

        (void) fprintf(file, "%.*s[", (int) offset, names[0]);
        for (size_t i = 0, last; i < n; i = last + 1) {
                last = i;
                while (last + 1 < n && follows(names[last], names[last + 1]))
                        last++;
                (void) fprintf(file, "%s%s", i > 0 ? "," : "", names[i] + offset);
                if (last > i)
                        (void) fprintf(file, "-%s", names[last] + offset);
        }
        (void) fputc(']', file);
        return n;
}

static int compare_names(const void *a, const void *b) {
        return strverscmp(*(char *const *) a, *(char *const *) b);
}

int node_list_format(char *const *names, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        CLEANUP(free_ptr) char **sorted = NULL;
        FILE *file = text_stream_open(&stream);
        size_t n = strv_length(names);

        sorted = calloc(n + 1, sizeof *sorted); /* the names stay the caller's */
        if (!sorted || !file)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = names[i];
        qsort(sorted, n, sizeof *sorted, compare_names);

        for (size_t i = 0; i < n;) {
                if (i > 0)
                        (void) fputc(',', file);
                i += format_group(sorted + i, file);
        }
        return text_stream_take(&stream, ret);
}

static bool is_name_character(char c) {
        return isalnum((unsigned char) c) || c == '.' || c == '_' || c == '-';
}

static int append_name(
                const char *prefix, size_t prefix_size, const char *digits, char ***names, size_t *n) {
        CLEANUP(free_ptr) char *name = NULL;

        if (++*n > NODE_LIST_MAX)
                return -E2BIG;
        if (asprintf(&name, "%.*s%s", (int) prefix_size, prefix, digits) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        return strv_append(names, name);
}

/* "1-4" or "7" at *text, with the names that it stands for. */
static int parse_range(const char **text, const char *prefix, size_t prefix_size, char ***names, size_t *n) {
        size_t width = strspn(*text, "0123456789"), end_width = width;
        const char *end = *text;
        unsigned long first, last;
        int r = 0;

        if (end[width] == '-') {
                end += width + 1;
                end_width = strspn(end, "0123456789");
        }
        if (width == 0 || width > DIGITS_MAX || end_width < width || end_width > DIGITS_MAX)
                return -EINVAL;
        first = strtoul(*text, NULL, 10);
        last = strtoul(end, NULL, 10);
        if (last < first)
                return -EINVAL;

        for (unsigned long i = first; r >= 0 && i <= last; i++) {
                char digits[2 * DIGITS_MAX];

                (void) snprintf(digits, sizeof digits, "%0*lu", (int) width, i);
                r = append_name(prefix, prefix_size, digits, names, n);
        }
        *text = end + end_width;
        return r;
}

int node_list_parse(const char *text, char ***ret) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        size_t n = 0;
        int r = 0;

        do {
                const char *prefix = text;
                size_t prefix_size;

                while (is_name_character(*text))
                        text++;
                prefix_size = (size_t) (text - prefix);
                if (prefix_size == 0)
                        return -EINVAL;
                if (*text != '[') {
                        r = append_name(prefix, prefix_size, "", &names, &n);
                } else {
                        do {
                                text++;
                                r = parse_range(&text, prefix, prefix_size, &names, &n);
                        } while (r >= 0 && *text == ',');
                        if (r >= 0 && *text++ != ']')
                                return -EINVAL;
                }
                if (r < 0)
                        return r;
        } while (*text++ == ',');
        if (text[-1] != '\0')
                return -EINVAL;

        *ret = take_ptr(&names);
        return 0;
}
