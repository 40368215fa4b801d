/* SPDX-License-Identifier: MIT */
/* Where the files of a configuration are, and their reading one over the other. */
#pragma once

#include "agent/config/keys.h"

/* Reads one file over what `object` holds. It must belong to root or the reader, and nobody else may write
 * it. 0 · -ENOENT without a message · negative and *ret_message (to be freed, NULL only without memory). */
int config_file_read(const ConfigSchema *schema, void *object, const char *path, char **ret_message);

/* Reads `name` and its drop-ins of each folder; NULL ends the list. What is not there is passed over. The
 * same. */
int config_files_read(const ConfigSchema *schema, void *object, const char *const *folders, const char *name,
                char **ret_message);

/* Reads `path` alone, which must exist, or where it is NULL the files of this name in /usr/lib/gpuagent and
 * /etc/gpuagent. The same. */
int config_usual_read(const ConfigSchema *schema, void *object, const char *path, const char *name,
                char **ret_message);

/* A number that is another one when a file that config_usual_read() reads has changed. */
uint64_t config_usual_stamp(const char *path, const char *name);
