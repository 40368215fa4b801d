/* SPDX-License-Identifier: MIT */
/* What is common to all JSON that the client prints and reads. */
#pragma once

#include <json-c/json.h>
#include <stdint.h>

#include "agent/base/cleanup.h"
#include "cli/options.h"

static inline void json_put_ptr(json_object **object) {
        (void) json_object_put(*object);
}

static inline void tokener_free_ptr(json_tokener **tokener) {
        if (*tokener)
                json_tokener_free(*tokener);
}

/* A string; null for NULL and "". NULL is null too, to json-c, and for want of memory. */
json_object* json_string(const char *s);

/* A number; null for all ones, the interface's "unknown". */
json_object* json_u32(uint32_t value);
json_object* json_u64(uint64_t value);

/* Sets a key. The value is taken over in any case. 0 · -ENOMEM, also for a NULL object. */
int json_set(json_object *object, const char *key, json_object *value);

/* The object as text, which is the object's and goes with it; NULL for want of memory. */
const char* json_text(json_object *object, OutputMode mode);

/* Reads an object and nothing behind it, of some 24 levels at most: a runtime writes 6. 0 and *ret ·
 * -EINVAL · -ENOMEM. */
int json_read_object(const char *text, size_t size, json_object **ret);

/* Prints it and a newline to stdout. 0 · -ENOMEM. */
int json_print(json_object *object, OutputMode mode);
