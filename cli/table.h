/* SPDX-License-Identifier: MIT */
/* A table for people, or the same as JSON for programs: an array of objects, keyed by the column names in
 * lower case. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/base/cleanup.h"
#include "cli/options.h"

typedef struct Table Table;

/* `columns` are the names, in upper case; the names themselves and the options stay the caller's. 0 and
 * *ret · -ENOMEM. */
int table_new(const Options *options, const char *const *columns, size_t n_columns, Table **ret);
Table* table_free(Table *table);

DEFINE_CLEANUP(Table, table_free_ptr, table_free)

/* The next cell, from left to right. What is NULL, "" or unknown (all ones) is "-" for people and null for
 * programs. A failure is kept, and told by table_print(). */
void table_add_string(Table *table, const char *s);
void table_add_u32(Table *table, uint32_t value);

/* A number for programs that people read as `text`. */
void table_add_u64_as(Table *table, uint64_t value, const char *text);

/* "0,1,2,3" for people, an array of numbers for programs; unknown ones are null. */
void table_add_list(Table *table, const uint32_t *values, size_t n);

/* The table as text, each line with its newline; "" for a table without rows. 0 and *ret (to be freed) ·
 * negative errno, also for a cell that could not be added. */
int table_format(const Table *table, char **ret);

/* Prints it to stdout. 0 · negative errno, also for a cell that could not be added. */
int table_print(const Table *table);
