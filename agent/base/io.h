/* SPDX-License-Identifier: MIT */
/* File descriptors and whole files. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Closes *fd unless it is negative; for CLEANUP. */
void fd_close(int *fd);

/* Hands a descriptor on: the variable is -1 afterwards. */
int take_fd(int *fd);

/* Reads a file of up to `max` bytes into memory, with a NUL byte after it.
 * 0 and *ret_text (to be freed), *ret_size (may be NULL) · -EFBIG longer than max · -EINVAL not a regular
 * file · -ENOMEM · -errno of openat or read. dir_fd as in openat(2); files of /proc and /sys are regular. */
int file_read(int dir_fd, const char *path, size_t max, char **ret_text, size_t *ret_size);

/* The same for what is left to read of an open file. 0 · -EFBIG · -ENOMEM · -errno of read. */
int fd_read_all(int fd, size_t max, char **ret_text, size_t *ret_size);

/* Replaces a file by writing a temporary one beside it and renaming it: readers see the old text or the new
 * one, also where several write it at a time or the power fails. 0 · -errno, and the old file is as it
 * was. */
int file_write_atomic(const char *path, const char *text, size_t size, mode_t mode);

/* Writes all of it. 0 · -errno. */
int fd_write_all(int fd, const void *data, size_t size);
