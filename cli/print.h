/* SPDX-License-Identifier: MIT */
/* Lines for people. Whatever comes over the bus goes to a terminal only through these: a control character
 * in it arrives as '?'. */
#pragma once

#include <stdio.h>

#include "agent/base/cleanup.h"

/* How the program ends. What is not CLI_DONE has said why on stderr, in one line. */
typedef enum CliExit {
        CLI_DONE = 0,
        CLI_FAILED = 1, /* for some GPU */
        CLI_USAGE = 2,
        CLI_NO_GPU = 3, /* there is no such GPU */
        CLI_DENIED = 4,
        CLI_NO_AGENT = 5, /* not running, or it does not answer */
} CliExit;

/* Why something did not work: set by the function that failed, reported once by the verb. */
typedef struct Failure {
        CliExit exit_code;
        char *message;  /* one line; NULL when there was no memory for it */
        char error[32]; /* the agent's error without its prefix, "Busy"; "" where it is none of its own */
} Failure;

void failure_done(Failure *failure);

/* Puts exit code and message down, and returns -EIO, so that a chain can end in it. */
int failure_set(Failure *failure, CliExit exit_code, const char *format, ...) PRINTF_FORMAT(3, 4);

/* The same for a negative errno of ours, with what could not be done: "cannot read X: Permission denied".
 * Returns r. */
int failure_errno(Failure *failure, int r, const char *format, ...) PRINTF_FORMAT(3, 4);

/* Messages are about this tray from now on: "gpuagentctl: TRAY: MESSAGE". */
void print_set_tray(const char *tray);

/* Says "gpuagentctl: MESSAGE" on stderr. */
void print_complaint(const char *format, ...) PRINTF_FORMAT(1, 2);

/* The same for what was put down. The exit code. */
int failure_report(const Failure *failure);

/* failure_set() and failure_report() in one. The exit code. */
int fail_with(CliExit exit_code, const char *format, ...) PRINTF_FORMAT(2, 3);

/* One line, with its newline. An error of the stream is noticed when main() closes it. */
void print_line(FILE *file, const char *format, ...) PRINTF_FORMAT(2, 3);
