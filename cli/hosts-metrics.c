/* SPDX-License-Identifier: MIT */
#include "cli/hosts-metrics.h"

#include <stdbool.h>
#include <string.h>

/* Where the metric that begins here ends: the next one, or the end of the text. */
static const char* metric_end(const char *metric) {
        const char *next = strstr(metric, "\n# HELP ");

        return next ? next + 1 : metric + strlen(metric);
}

/* The bytes of its "# HELP" and "# TYPE" lines. It may have no samples. */
static size_t head_size(const char *metric) {
        const char *line = metric, *end = metric_end(metric);

        while (line < end && line[0] == '#')
                line += strcspn(line, "\n") + (strchr(line, '\n') ? 1 : 0);
        return (size_t) (line - metric);
}

/* The metric that has the same head; NULL if there is none. */
static const char* metric_find(const char *text, const char *head, size_t n) {
        for (const char *metric = text; *metric != '\0'; metric = metric_end(metric))
                if (strncmp(metric, head, n) == 0)
                        return metric;
        return NULL;
}

void metrics_merge(char *const *texts, size_t n, FILE *file) {
        for (size_t i = 0; i < n; i++)
                for (const char *metric = texts[i]; *metric != '\0'; metric = metric_end(metric)) {
                        size_t head = head_size(metric);
                        bool done = false;

                        for (size_t k = 0; k < i && !done; k++)
                                done = metric_find(texts[k], metric, head) != NULL;
                        if (done)
                                continue;
                        (void) fwrite(metric, 1, (size_t) (metric_end(metric) - metric), file);
                        for (size_t k = i + 1; k < n; k++) {
                                const char *same = metric_find(texts[k], metric, head);

                                if (same)
                                        (void) fwrite(same + head, 1,
                                                        (size_t) (metric_end(same) - same) - head, file);
                        }
                }
}
