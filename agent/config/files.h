/* SPDX-License-Identifier: MIT */
/* Where the files of a configuration are, and their reading one over the other. */
#pragma once

#include "agent/config/keys.h"

/* Reads `name` and its drop-ins of each folder over what `object` holds; NULL ends the list. What is not
 * there is passed over; a file must belong to root or the reader, and nobody else may write it.
 * 0 · negative and *ret_message (to be freed, NULL only without memory). */
int config_files_read(const ConfigSchema *schema, void *object, const char *const *folders, const char *name,
                char **ret_message);

/* Reads `path` alone, which must exist, or where it is NULL the files of this name in /usr/lib/gpuagent and
 * /etc/gpuagent. Returns as above. */
int config_usual_read(const ConfigSchema *schema, void *object, const char *path, const char *name,
                char **ret_message);

/* A number that is another one when a file that config_usual_read() reads has changed. */
uint64_t config_usual_stamp(const char *path, const char *name);
