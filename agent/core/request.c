/* SPDX-License-Identifier: MIT */
#include "agent/core/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A line for people names this many GPUs that failed; the rest is counted. */
#define FAILURES_NAMED 16

static int copy_option(const char *value, char **ret) {
        if (!value)
                return 0;
        *ret = strdup(value);
        return *ret ? 0 : -ENOMEM;
}

int request_new(RequestKind kind, Gpu *const *gpus, size_t n_gpus, const RequestOptions *options,
                Request **ret) {
        CLEANUP(request_free_ptr) Request *request = NULL;

        request = calloc(1, sizeof *request);
        if (!request)
                return -ENOMEM;
        request->kind = kind;
        if (copy_option(options->tenant, &request->tenant) < 0 ||
                        copy_option(options->identifier, &request->identifier) < 0 ||
                        copy_option(options->reason, &request->reason) < 0)
                return -ENOMEM;

        if (n_gpus > 0) {
                request->items = calloc(n_gpus, sizeof *request->items);
                if (!request->items)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < n_gpus; i++)
                request->items[i].gpu = gpus[i];
        request->n_items = request->n_unfinished = n_gpus;

        *ret = take_ptr(&request);
        return 0;
}

Request* request_free(Request *request) {
        if (!request)
                return NULL;

        for (size_t i = 0; i < request->n_items; i++)
                free(request->items[i].detail);
        free(request->items);
        free(request->tenant);
        free(request->identifier);
        free(request->reason);
        free(request->message);
        free(request);
        return NULL;
}

void request_abandon(Request *request) {
        request->done = NULL;
        request->userdata = NULL;
}

void request_finish_item(Request *request, size_t item, Outcome outcome, const char *detail) {
        RequestItem *it = request->items + item;

        if (it->finished)
                return;
        it->finished = true;
        it->outcome = outcome;
        if (outcome_is_failure(outcome))
                it->detail = strdup(detail); /* NULL is said as "GPU N failed" */
        request->n_unfinished--;
}

void request_fail_whole(Request *request, Outcome outcome, const char *message) {
        if (!request->message)
                request->message = strdup(message); /* NULL: the outcome's name has to do */
        request->outcome = outcome_gravest(request->outcome, outcome);
        for (size_t i = 0; i < request->n_items; i++)
                request_finish_item(request, i, outcome, message);
}

int request_conclude(Request *request) {
        size_t failed = 0, size = 0;
        char *text = NULL;
        FILE *file;

        for (size_t i = 0; i < request->n_items; i++) {
                request->outcome = outcome_gravest(request->outcome, request->items[i].outcome);
                failed += outcome_is_failure(request->items[i].outcome);
        }
        if (failed == 0 || request->message)
                return 0;

        file = open_memstream(&text, &size);
        if (!file)
                return -ENOMEM;
        failed = 0;
        for (size_t i = 0; i < request->n_items; i++) {
                const RequestItem *item = request->items + i;

                if (!outcome_is_failure(item->outcome))
                        continue;
                if (failed++ >= FAILURES_NAMED)
                        continue;
                (void) fputs(failed > 1 ? "; " : "", file);
                if (item->detail)
                        (void) fputs(item->detail, file);
                else
                        (void) fprintf(file, "GPU %u failed", item->gpu->sample.index);
        }
        if (failed > FAILURES_NAMED)
                (void) fprintf(file, "; and %zu more", failed - FAILURES_NAMED);
        if (fclose(file) != 0) {
                free(text);
                return -ENOMEM;
        }
        request->message = text;
        return 0;
}
