/* SPDX-License-Identifier: MIT */
#include "agent/driver/smi-text.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"

/* More of them than any answer has room for. */
#define WORDS_SIZE 512

static const char *const done_words[] = { "was successfully reset" };
static const char *const in_use_words[] = { "in use by", "being used by", "currently in use" };
static const char *const not_supported_words[] = { "is not supported", ": Not Supported" };

/* Finds the next line that is not blank, without the white space around it. The text behind it, or NULL. */
static const char* next_line(const char *text, const char **ret_line, size_t *ret_n) {
        size_t n;

        text += strspn(text, " \t\r\n");
        n = strcspn(text, "\r\n");
        if (n == 0)
                return NULL;

        *ret_line = text;
        *ret_n = n;
        while (strchr(" \t", text[*ret_n - 1]))
                (*ret_n)--; /* the first one is no blank */
        return text + n;
}

static bool line_has(const char *line, size_t n, const char *word) {
        size_t m = strlen(word);

        for (; m > 0 && n >= m; line++, n--)
                if (strncasecmp(line, word, m) == 0)
                        return true;
        return false;
}

static bool line_has_any(const char *line, size_t n, const char *const *words, size_t n_words) {
        for (size_t i = 0; i < n_words; i++)
                if (line_has(line, n, words[i]))
                        return true;
        return false;
}

static bool line_names(const char *line, size_t n, const char *bus_id, const char *uuid) {
        return line_has(line, n, bus_id) || line_has(line, n, uuid);
}

#define LINE_SAYS(line, n, words) line_has_any(line, n, words, ELEMENTSOF(words))

ResetVerdict smi_text_verdict(const char *output, const char *bus_id, const char *uuid) {
        const char *line = NULL, *rest = output;
        ResetVerdict verdict = _RESET_VERDICT_INVALID;
        bool anything_in_use = false;
        size_t n = 0;

        while ((rest = next_line(rest, &line, &n))) {
                bool in_use = LINE_SAYS(line, n, in_use_words);

                anything_in_use = anything_in_use || in_use;
                if (!line_names(line, n, bus_id, uuid))
                        continue;

                /* A bad word after a good one counts. */
                if (in_use)
                        verdict = RESET_IN_USE;
                else if (LINE_SAYS(line, n, not_supported_words))
                        verdict = RESET_NOT_SUPPORTED;
                else if (LINE_SAYS(line, n, done_words) && verdict == _RESET_VERDICT_INVALID)
                        verdict = RESET_DONE;
                else
                        verdict = RESET_FAILED;
        }

        if (verdict != _RESET_VERDICT_INVALID)
                return verdict;
        return anything_in_use ? RESET_IN_USE : RESET_FAILED;
}

/* Appends with a blank between, as much as fits. */
static void words_append(char *words, size_t size, const char *line, size_t n) {
        size_t used = strlen(words);

        (void) snprintf(words + used, size - used, "%s%.*s", used > 0 ? " " : "", (int) n, line);
}

void smi_text_detail(const char *output, const char *bus_id, const char *uuid, char *ret, size_t size) {
        const char *line = NULL, *rest = output;
        char words[WORDS_SIZE] = "";
        size_t n = 0;

        while ((rest = next_line(rest, &line, &n)))
                if (line_names(line, n, bus_id, uuid))
                        words_append(words, sizeof words, line, n);

        rest = words[0] ? NULL : output;
        while (rest && (rest = next_line(rest, &line, &n)))
                words_append(words, sizeof words, line, n);
        text_escape_words(words, ret, size);
}
