/* SPDX-License-Identifier: MIT */
#include "agent/base/text.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/array.h"
#include "agent/base/cleanup.h"

#define BLANKS " \t\r\n"

void text_escape_bytes(const char *s, size_t n, char *ret, size_t size) {
        static const char hex[] = "0123456789abcdef";
        size_t used = 0;

        for (size_t i = 0; i < n && s[i] != '\0'; i++) {
                unsigned char c = (unsigned char) s[i];

                if (c >= ' ' && c <= '~' && c != '\\') {
                        if (used + 1 >= size)
                                break;
                        ret[used++] = (char) c;
                } else if (c == '\\') {
                        if (used + 2 >= size)
                                break;
                        ret[used++] = '\\';
                        ret[used++] = '\\';
                } else {
                        if (used + 4 >= size)
                                break;
                        ret[used++] = '\\';
                        ret[used++] = 'x';
                        ret[used++] = hex[c >> 4];
                        ret[used++] = hex[c & 15];
                }
        }

        ret[used] = '\0';
}

void text_escape(const char *s, char *ret, size_t size) {
        text_escape_bytes(s ?: "", s ? strlen(s) : 0, ret, size);
}

static bool is_printable(char c) {
        return c >= ' ' && c <= '~';
}

bool text_is_printable(const char *s) {
        for (; *s; s++)
                if (!is_printable(*s))
                        return false;
        return true;
}

void text_sanitize(char *s) {
        for (; *s; s++)
                if (!is_printable(*s))
                        *s = '?';
}

void text_escape_words(const char *s, char *ret, size_t size) {
        size_t n;

        s = s ?: "";
        s += strspn(s, BLANKS);
        n = strlen(s);
        while (n > 0 && strchr("." BLANKS, s[n - 1]))
                n--;
        text_escape_bytes(s, n, ret, size);
}

char* text_strip(char *s) {
        size_t n;

        s += strspn(s, BLANKS);
        n = strlen(s);
        while (n > 0 && strchr(BLANKS, s[n - 1]))
                n--;
        s[n] = '\0';
        return s;
}

size_t strv_length(char *const *strv) {
        size_t n = 0;

        while (strv && strv[n])
                n++;
        return n;
}

bool strv_contains(char *const *strv, const char *s) {
        for (; strv && *strv; strv++)
                if (streq(*strv, s))
                        return true;
        return false;
}

char** strv_free(char **strv) {
        STRV_FOREACH (item, strv)
                free(*item);
        free(strv);
        return NULL;
}

void strv_free_ptr(char ***strv) {
        *strv = strv_free(*strv);
}

int strv_append(char ***strv, const char *s) {
        CLEANUP(free_ptr) char *copy = NULL;
        size_t n = strv_length(*strv);
        int r;

        copy = strdup(s);
        if (!copy)
                return -ENOMEM;
        r = array_reserve(strv, n, 2);
        if (r < 0)
                return r;

        (*strv)[n] = take_ptr(&copy);
        (*strv)[n + 1] = NULL;
        return 0;
}
