/* SPDX-License-Identifier: MIT */
#include "cli/bus-json.h"

#include <errno.h>
#include <string.h>

#include "agent/base/sample.h"
#include "cli/json.h"

/* What a basic type's letter says about its C type; every member starts at the same address. */
typedef union Basic {
        uint8_t byte;
        int boolean;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        double number;
        const char *string;
} Basic;

static int basic_read(sd_bus_message *message, char type, json_object **ret) {
        Basic value = {};
        int r;

        r = sd_bus_message_read_basic(message, type, &value);
        if (r < 0)
                return r;

        switch (type) {
        case 'y': *ret = json_object_new_int(value.byte); break;
        case 'b': *ret = json_object_new_boolean(value.boolean); break;
        case 'n': *ret = json_object_new_int(value.i16); break;
        case 'q': *ret = json_object_new_int(value.u16); break;
        case 'i': *ret = value.i32 == UNKNOWN_I32 ? NULL : json_object_new_int(value.i32); break;
        case 'u': *ret = json_u32(value.u32); break;
        case 'x': *ret = json_object_new_int64(value.i64); break;
        case 't': *ret = json_u64(value.u64); break;
        case 'd': *ret = json_object_new_double(value.number); break;
        case 's':
        case 'o':
        case 'g': *ret = json_object_new_string(value.string); break;
        default: return -EOPNOTSUPP; /* a file descriptor: nothing here has one */
        }
        return 0;
}

/* The entries of an a{s…} or a{o…} into an object. */
static int object_read(sd_bus_message *message, const char *entry, json_object *object) {
        int r;

        while ((r = sd_bus_message_enter_container(message, 'e', entry)) > 0) {
                json_object *value = NULL;
                const char *key;

                r = sd_bus_message_read_basic(message, entry[0], &key);
                if (r >= 0)
                        r = json_from_message(message, &value);
                if (r >= 0)
                        r = json_set(object, key, value);
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        return r;
}

int json_from_arguments(sd_bus_message *message, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *array = json_object_new_array();
        int r;

        if (!array)
                return -ENOMEM;
        while ((r = sd_bus_message_at_end(message, false)) == 0) {
                json_object *value = NULL;

                r = json_from_message(message, &value);
                if (r < 0)
                        return r;
                if (json_object_array_add(array, value) < 0) {
                        (void) json_object_put(value);
                        return -ENOMEM;
                }
        }
        if (r < 0)
                return r;

        *ret = take_ptr(&array);
        return 0;
}

static int container_read(sd_bus_message *message, char type, const char *contents, json_object **ret) {
        int r;

        r = sd_bus_message_enter_container(message, type, contents);
        if (r < 0)
                return r;

        if (type == 'v') {
                r = json_from_message(message, ret);
        } else if (type == 'a' && contents[0] == '{' && (contents[1] == 's' || contents[1] == 'o')) {
                char entry[256];

                (void) snprintf(entry, sizeof entry, "%.*s", (int) strlen(contents) - 2, contents + 1);
                *ret = json_object_new_object();
                r = *ret ? object_read(message, entry, *ret) : -ENOMEM;
        } else {
                r = json_from_arguments(message, ret);
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

int json_from_message(sd_bus_message *message, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *value = NULL;
        const char *contents;
        char type;
        int r;

        r = sd_bus_message_peek_type(message, &type, &contents);
        if (r == 0)
                return -ENXIO; /* nothing is left */
        if (r > 0)
                r = contents ? container_read(message, type, contents, &value)
                             : basic_read(message, type, &value);
        if (r < 0)
                return r;

        *ret = take_ptr(&value);
        return 0;
}
