/* SPDX-License-Identifier: MIT */
#include "cli/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "agent/base/sample.h"

#define DEPTH_MAX 24

json_object* json_string(const char *s) {
        return s && s[0] != '\0' ? json_object_new_string(s) : NULL;
}

json_object* json_u32(uint32_t value) {
        return value == UNKNOWN_U32 ? NULL : json_object_new_uint64(value);
}

json_object* json_u64(uint64_t value) {
        return value == UNKNOWN_U64 ? NULL : json_object_new_uint64(value);
}

int json_set(json_object *object, const char *key, json_object *value) {
        if (!object || json_object_object_add(object, key, value) < 0) {
                (void) json_object_put(value);
                return -ENOMEM;
        }
        return 0;
}

const char* json_text(json_object *object, OutputMode mode) {
        int flags = mode == OUTPUT_JSON_PRETTY ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                                               : JSON_C_TO_STRING_PLAIN;

        return json_object_to_json_string_ext(object, flags | JSON_C_TO_STRING_NOSLASHESCAPE);
}

int json_print(json_object *object, OutputMode mode) {
        const char *text = json_text(object, mode);

        if (!text)
                return -ENOMEM;
        (void) puts(text); /* main() looks at the stream's errors when it closes it */
        return 0;
}

int json_read_object(const char *text, size_t size, json_object **ret) {
        CLEANUP(tokener_free_ptr) json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
        CLEANUP(json_put_ptr) json_object *object = NULL;

        if (size > INT_MAX)
                return -EINVAL;
        if (!tokener)
                return -ENOMEM;
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
        object = json_tokener_parse_ex(tokener, text, (int) size);
        if (json_tokener_get_error(tokener) != json_tokener_success ||
                        !json_object_is_type(object, json_type_object))
                return -EINVAL;
        *ret = take_ptr(&object);
        return 0;
}
