/* SPDX-License-Identifier: MIT */
/* What many trays print, as one report: lines with the tray's name before them, one table, or one array. */
#pragma once

#include <stddef.h>

#include "agent/base/cleanup.h"
#include "cli/options.h"

typedef struct Report Report;

/* All arguments stay the caller's. 0 and *ret · -ENOMEM. */
int report_new(const Verb *verb, const Options *options, char **hosts, Report **ret);
Report* report_free(Report *report);

DEFINE_CLEANUP(Report, report_free_ptr, report_free)

/* How the verb has to print for a single tray. */
OutputMode report_output(const Report *report);

/* More of what the tray hosts[i] prints, and that this was all. 0 · negative errno. */
int report_add(Report *report, size_t i, const char *text, size_t size);
int report_end(Report *report, size_t i);

/* When the next report_turn() has something to print, monotonic; USEC_INFINITY: nothing yet. */
usec_t report_due_usec(const Report *report);

/* Prints what is due. 0 · negative errno. */
int report_turn(Report *report);

/* Prints what is left. 0 · negative errno. */
int report_finish(Report *report);
