/* SPDX-License-Identifier: MIT */
/* Groups of GPUs, as ListCliques and ListPartitions answer them. */
#pragma once

#include "cli/client.h"
#include "cli/options.h"

/* Where in the answer's struct the number and the name stand. */
typedef enum GroupLayout {
        GROUP_NAME_NUMBER, /* a(suao) */
        GROUP_NUMBER_NAME, /* a(usao) */
} GroupLayout;

/* Calls `member` of the Manager and prints a line for each group, under the three `columns`. A CliExit. */
int groups_print(const Options *options, const char *member, GroupLayout layout,
                const char *const columns[static 3]);
