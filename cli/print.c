/* SPDX-License-Identifier: MIT */
#include "cli/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/parse.h"
#include "agent/base/text.h"

void failure_done(Failure *failure) {
        free(failure->message);
        *failure = (Failure){};
}

static void failure_set_args(Failure *failure, CliExit exit_code, const char *format, va_list args)
                __attribute__((format(printf, 3, 0)));

static void failure_set_args(Failure *failure, CliExit exit_code, const char *format, va_list args) {
        char *message = NULL;

        if (vasprintf(&message, format, args) < 0)
                message = NULL;
        failure_done(failure);
        *failure = (Failure){ .exit_code = exit_code, .message = message };
}

int failure_set(Failure *failure, CliExit exit_code, const char *format, ...) {
        va_list args;

        va_start(args, format);
        failure_set_args(failure, exit_code, format, args);
        va_end(args);
        return -EIO;
}

int failure_errno(Failure *failure, int r, const char *format, ...) {
        CLEANUP(free_ptr) char *what = NULL;
        va_list args;
        int n;

        va_start(args, format);
        n = vasprintf(&what, format, args);
        va_end(args);
        if (n < 0)
                what = NULL;

        (void) failure_set(failure, CLI_FAILED, "%s: %s", what ?: "it failed", strerror(-r));
        return r;
}

static char about_tray[HOST_MAX + 1];

void print_set_tray(const char *tray) {
        (void) snprintf(about_tray, sizeof about_tray, "%s", tray);
}

void print_complaint(const char *format, ...) {
        CLEANUP(free_ptr) char *message = NULL;
        va_list args;

        va_start(args, format);
        if (vasprintf(&message, format, args) < 0)
                message = NULL;
        va_end(args);
        print_line(stderr, "gpuagentctl: %s%s%s", about_tray, about_tray[0] ? ": " : "",
                        message ?: "out of memory");
}

int failure_report(const Failure *failure) {
        print_complaint("%s", failure->message ?: "out of memory");
        return failure->exit_code == CLI_DONE ? CLI_FAILED : failure->exit_code;
}

int fail_with(CliExit exit_code, const char *format, ...) {
        CLEANUP(failure_done) Failure failure = {};
        va_list args;

        va_start(args, format);
        failure_set_args(&failure, exit_code, format, args);
        va_end(args);
        return failure_report(&failure);
}

void print_line(FILE *file, const char *format, ...) {
        CLEANUP(free_ptr) char *line = NULL;
        va_list args;
        int n;

        va_start(args, format);
        n = vasprintf(&line, format, args);
        va_end(args);
        if (n < 0) {
                (void) fputs("out of memory\n", stderr);
                line = NULL;
                return;
        }

        text_sanitize(line);
        (void) fprintf(file, "%s\n", line);
}
