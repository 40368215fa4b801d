/* SPDX-License-Identifier: MIT */
/* The strict reading of one YAML file: sections of keys with a value or a list each, and nothing else of
 * YAML. */
#pragma once

#include <stddef.h>

#include "agent/config/keys.h"

/* Sets the keys that `size` bytes of text name, over what `object` holds already; `name` is the file's,
 * for messages. 0 · -ENOMEM · -EINVAL and *ret_message (to be freed), "NAME:LINE: what is wrong";
 * `object` may be changed in part. */
int config_read_text(const ConfigSchema *schema, void *object, const char *name, const char *text,
                size_t size, char **ret_message);
