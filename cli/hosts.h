/* SPDX-License-Identifier: MIT */
/* One verb for many trays: a process each, so that none waits for another, and one report of it all. */
#pragma once

#include "cli/options.h"
#include "cli/print.h"

/* "[USER@]TRAY,…", each tray once. 0 and *ret (a strv to be freed) · negative, and *failure (CLI_USAGE)
 * says what is no tray. */
int hosts_parse(const char *text, char ***ret, Failure *failure);

/* The same for a list that is split already: whether all of them can be trays. 0 · negative, and
 * *failure. */
int hosts_check(char **hosts, Failure *failure);

/* What this tray is called, as gpuagentd has it; "" if it has no name. */
void host_name_local(char *ret, size_t size);

/* Whether it is this tray, which needs no ssh. */
bool host_is_local(const char *host);

/* Runs the verb for each. Of one tray its output is as it is here; of many the lines get the tray's name,
 * tables a column TRAY, and what is JSON becomes one array. The verb's exit code for one tray; for many
 * 0, or CLI_FAILED if it failed for any. */
int hosts_run(const Verb *verb, const Options *options, char **hosts, int argc, char **argv);
