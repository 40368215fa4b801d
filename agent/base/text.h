/* SPDX-License-Identifier: MIT */
/* Strings from outside made safe, lists of strings, and prefixes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

/* What follows the prefix in s, or NULL if s does not start with it. */
static inline const char* startswith(const char *s, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/* Where the suffix begins if `s` ends with it, else NULL. */
static inline const char* endswith(const char *s, const char *suffix) {
        size_t n = strlen(s), m = strlen(suffix);

        return n >= m && streq(s + n - m, suffix) ? s + n - m : NULL;
}

/* Copies as much of `s` as fits with printable ASCII as it is, a backslash as \\ and every other byte as
 * \xNN: whatever a process calls itself, the copy may go on the bus, into the journal and to a terminal. Cut
 * before an escape that would not fit; NULL counts as "". `size` is at least 1. */
void text_escape(const char *s, char *ret, size_t size);

/* The same over up to `n` bytes that need no NUL behind them. */
void text_escape_bytes(const char *s, size_t n, char *ret, size_t size);

/* Whether all of it is printable ASCII. */
bool text_is_printable(const char *s);

/* Bytes that are not become '?', in place. */
void text_sanitize(char *s);

/* What a program or a library says, escaped alike, for the middle of a sentence of ours: without the white
 * space around it and the full stop at its end. */
void text_escape_words(const char *s, char *ret, size_t size);

/* Cuts white space off both ends, in place; the start of what is left. */
char* text_strip(char *s);

/* A strv is a NULL-terminated array of strings, both of them malloc'ed. NULL counts as an empty one. */
#define STRV_FOREACH(item, strv) for (char **item = (strv); item && *item; item++)

size_t strv_length(char *const *strv);
bool strv_contains(char *const *strv, const char *s);
char** strv_free(char **strv);
void strv_free_ptr(char ***strv);

/* Appends a copy of `s`. 0 · -ENOMEM, and the strv is as it was. */
int strv_append(char ***strv, const char *s);
