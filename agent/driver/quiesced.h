/* SPDX-License-Identifier: MIT */
/* The file RUNTIME/quiesced: what was stopped for a reset, and has to be started again. It is written before
 * anything is stopped, and kept until all of it was started. */
#pragma once

#define QUIESCED_NAME "quiesced"

/* {} is an empty one. Both are strvs. */
typedef struct Quiesced {
        char **units;
        /* As quiesce.command has them: one that is configured no longer has its due all the same. */
        char **commands;
} Quiesced;

/* 0 · -ENOENT nothing is stopped · -EBADMSG the file was not written by us · -errno. */
int quiesced_read(const char *path, Quiesced *ret);
int quiesced_parse(const char *text, Quiesced *ret);

/* Puts it in the file, or removes the file if it is empty. 0 · -errno, and the file is as it was. */
int quiesced_write(const char *path, const Quiesced *quiesced);

void quiesced_done(Quiesced *quiesced);
