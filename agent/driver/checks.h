/* SPDX-License-Identifier: MIT */
/* The site's checks: which files of handover.checks-directory are executed after a reset. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Ends in ".warn": what it finds is only logged. */
bool check_only_warns(const char *name);

/* Whether there is anything that Checks would have to say something about. A folder that cannot be read
 * counts: that has to be said, too. */
bool checks_exist(const char *folder);

/* The names of the executables in a folder, in their order (a strv, NULL for none). 0 · -ENOENT no such
 * folder · -errno. */
int checks_list(const char *folder, char ***ret);

/* Whether nobody but root can change what is executed by that path: the file and every folder on the way
 * to it belong to root and may be written by nobody else. 0 and *ret, the path without symbolic links (to
 * be freed) · -EPERM somebody can · -errno. */
int check_resolve(const char *path, char **ret);

/* The last line of an output that is not empty, in place; "" if there is none. */
char* last_line(char *output);
