/* SPDX-License-Identifier: MIT */
#include "cli/redfish-body.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/json.h"
#include "cli/print.h"

/* 0 and *ret (to be put; NULL for null) · -EINVAL · -ENOMEM. */
static int body_parse(const char *body, size_t size, json_object **ret) {
        CLEANUP(tokener_free_ptr) json_tokener *tokener = json_tokener_new();
        CLEANUP(json_put_ptr) json_object *object = NULL;

        if (!tokener)
                return -ENOMEM;
        if (size > INT_MAX || memchr(body, '\0', size)) /* json-c's end of all, whatever follows */
                return -EINVAL;
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
        object = json_tokener_parse_ex(tokener, body, (int) size);
        if (json_tokener_get_error(tokener) == json_tokener_continue) /* a number may go on */
                object = json_tokener_parse_ex(tokener, "", 1);
        if (json_tokener_get_error(tokener) != json_tokener_success)
                return -EINVAL;

        *ret = take_ptr(&object);
        return 0;
}

/* The character at `s`, and the number of its bytes. 0 · -EINVAL not UTF-8: json-c passes more than is, such
 * as an escape character in two bytes. */
static int character_read(const unsigned char *s, uint32_t *ret, size_t *ret_n) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        uint32_t c = n == 1 ? s[0] : s[0] & (0x7fU >> n);

        if (n > 1 && (s[0] < 0xc2 || s[0] > 0xf4)) /* no first byte of any */
                return -EINVAL;
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return -EINVAL;
                c = c << 6 | (s[i] & 0x3f);
        }
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return -EINVAL;
        *ret = c;
        *ret_n = n;
        return 0;
}

/* What is not ASCII, or not printable, can only be in a string there, where an escape stands for it. */
static int print_ascii(const char *text, FILE *file) {
        const unsigned char *s = (const unsigned char *) text;

        while (*s != '\0') {
                uint32_t c;
                size_t n;
                int r;

                r = character_read(s, &c, &n);
                if (r < 0)
                        return r;
                if (c < 0x7f)
                        (void) fputc((int) c, file);
                else if (c < 0x10000)
                        (void) fprintf(file, "\\u%04x", c);
                else
                        (void) fprintf(file, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                                        0xdc00 + ((c - 0x10000) & 0x3ff));
                s += n;
        }
        return ferror(file) ? -ENOMEM : 0;
}

int redfish_body_format(const char *body, size_t size, OutputMode mode, char **ret) {
        CLEANUP(json_put_ptr) json_object *object = NULL;
        CLEANUP(text_stream_done) TextStream stream = {};
        const char *text;
        FILE *file;
        int r;

        r = body_parse(body, size, &object);
        if (r < 0)
                return r;
        text = json_text(object, mode);
        file = text_stream_open(&stream);
        if (!text || !file)
                return -ENOMEM;

        r = print_ascii(text, file);
        return r < 0 ? r : text_stream_take(&stream, ret);
}

int redfish_body_error(const char *body, size_t size, char **ret) {
        CLEANUP(json_put_ptr) json_object *object = NULL;
        json_object *error, *message, *details;
        char *copy;

        if (body_parse(body, size, &object) < 0 || !json_object_object_get_ex(object, "error", &error))
                return -ENOENT;
        /* Many say no more there than that there is more in the extended information. */
        if (json_object_object_get_ex(error, "@Message.ExtendedInfo", &details) &&
                        json_object_is_type(details, json_type_array))
                error = json_object_array_get_idx(details, 0);
        if (!json_object_object_get_ex(error, "Message", &message) &&
                        !json_object_object_get_ex(error, "message", &message))
                return -ENOENT;
        if (!json_object_is_type(message, json_type_string))
                return -ENOENT;

        copy = strndup(json_object_get_string(message), 500);
        if (!copy)
                return -ENOMEM;
        text_sanitize(copy);
        *ret = copy;
        return 0;
}
