/* SPDX-License-Identifier: MIT */
#include "agent/core/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"

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
        request->shared = options->shared;
        request->force = options->force;
        request->checks = options->checks;
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

        for (size_t i = 0; i < request->n_items; i++) {
                free(request->items[i].detail);
                lease_done(&request->items[i].former);
        }
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
        request->abandoned = true;
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

/* What the detail says after "GPU N ". */
static const char* item_why(const RequestItem *item) {
        char prefix[32];

        (void) snprintf(prefix, sizeof prefix, "GPU %u ", item->gpu->sample.index);
        return item->detail ? startswith(item->detail, prefix) : NULL;
}

static bool outcome_is_the_trays(Outcome outcome) {
        return outcome == OUTCOME_NEEDS_REBOOT || outcome == OUTCOME_NO_DRIVER ||
                        outcome == OUTCOME_DRIVER_UNRESPONSIVE;
}

/* One fault of the tray can turn up as the same fault of each of its GPUs: then it is said once. */
static bool is_one_fault(const Request *request) {
        const char *why = request->n_items > 1 ? item_why(request->items) : NULL;

        for (size_t i = 0; i < request->n_items; i++) {
                const RequestItem *item = request->items + i;

                if (!why || !outcome_is_the_trays(item->outcome) || !item_why(item) ||
                                !streq(item_why(item), why))
                        return false;
        }
        return request->n_items > 1;
}

static void print_one_fault(FILE *file, const Request *request) {
        (void) fputs("GPUs ", file);
        for (size_t i = 0; i < request->n_items; i++)
                (void) fprintf(file, "%s%u", i > 0 ? "," : "", request->items[i].gpu->sample.index);
        (void) fprintf(file, ": each %s", item_why(request->items));
}

static void print_failures(FILE *file, const Request *request) {
        size_t failed = 0;

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
}

static void print_causes(FILE *file, const Request *request) {
        if (request->message)
                (void) fputs(request->message, file);
        else if (is_one_fault(request))
                print_one_fault(file, request);
        else
                print_failures(file, request);
}

/* What is wrong, with which GPUs, and what to do about it. 0 · -ENOMEM, and what was said before stays. */
static int request_put_message(Request *request) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        char *message;
        int r;

        if (!file)
                return -ENOMEM;
        print_causes(file, request);
        if (fflush(file) == 0)
                outcome_print_advice(file, request->outcome, stream.text);
        r = text_stream_take(&stream, &message);
        if (r < 0)
                return r;
        free(request->message);
        request->message = message;
        return 0;
}

int request_conclude(Request *request, bool observe) {
        int r;

        for (size_t i = 0; i < request->n_items; i++)
                request->outcome = outcome_gravest(request->outcome, request->items[i].outcome);
        if (!outcome_is_failure(request->outcome))
                return 0;

        r = request_put_message(request);
        if (observe && (request->kind == REQUEST_ACQUIRE || request->kind == REQUEST_RELEASE)) {
                request->observed = true;
                request->outcome = OUTCOME_DONE;
        }
        return r;
}
