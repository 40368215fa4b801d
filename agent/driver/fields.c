/* SPDX-License-Identifier: MIT */
#include "agent/driver/fields.h"

#include <errno.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "agent/base/sample.h"
#include "agent/base/text.h"

static int field_check(const Field *field, const void *item) {
        const char *place = (const char *) item + field->offset;
        char uuid[GPU_UUID_SIZE], bus_id[GPU_BUS_ID_SIZE];
        uint32_t number;

        switch (field->rule) {
        case FIELD_ANY: return 0;
        case FIELD_UUID: return gpu_uuid_parse(place, uuid) < 0 || !streq(uuid, place) ? -EBADMSG : 0;
        case FIELD_BUS_ID: return *place && bus_id_parse(place, bus_id) < 0 ? -EBADMSG : 0;
        case FIELD_TENANT: return tenant_is_valid(place) ? 0 : -EBADMSG;
        case FIELD_TENANT_OR_NONE: return *place && !tenant_is_valid(place) ? -EBADMSG : 0;
        case FIELD_VERDICT:
                memcpy(&number, place, sizeof number);
                return number >= _RESET_VERDICT_MAX ? -EBADMSG : 0;
        case FIELD_PRESENCE:
                memcpy(&number, place, sizeof number);
                return number >= _TENANT_PRESENCE_MAX ? -EBADMSG : 0;
        }
        return -EBADMSG;
}

int field_error(int r) {
        return r == -ENOMEM ? r : -EBADMSG;
}

int field_append(sd_bus_message *msg, const Field *field, const void *item) {
        const void *place = (const char *) item + field->offset;

        if (field->type == 'b') {
                int value = *(const bool *) place;

                return sd_bus_message_append_basic(msg, 'b', &value);
        }
        return sd_bus_message_append_basic(msg, field->type, place);
}

int field_read(sd_bus_message *msg, const Field *field, void *item) {
        char *place = (char *) item + field->offset;
        int r, truth;

        if (field->type == 's') {
                const char *text;

                r = sd_bus_message_read_basic(msg, 's', &text);
                if (r <= 0)
                        return field_error(r);
                if (strlen(text) >= field->size || !text_is_printable(text))
                        return -EBADMSG;
                strcpy(place, text);
        } else if (field->type == 'b') {
                r = sd_bus_message_read_basic(msg, 'b', &truth);
                if (r <= 0)
                        return field_error(r);
                *(bool *) place = truth != 0;
        } else {
                r = sd_bus_message_read_basic(msg, field->type, place);
                if (r <= 0)
                        return field_error(r);
        }

        return field_check(field, item);
}

static int struct_append(sd_bus_message *msg, const FieldTable *table, const void *item) {
        int r;

        r = sd_bus_message_open_container(msg, 'r', table->signature);
        for (size_t i = 0; r >= 0 && i < table->n_fields; i++)
                r = field_append(msg, &table->fields[i], item);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

/* 1 · 0 at the end of the array · -EBADMSG. */
static int struct_read(sd_bus_message *msg, const FieldTable *table, void *item) {
        int r;

        r = sd_bus_message_enter_container(msg, 'r', table->signature);
        if (r <= 0)
                return r < 0 ? field_error(r) : 0;
        for (size_t i = 0; i < table->n_fields; i++) {
                r = field_read(msg, &table->fields[i], item);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_exit_container(msg);
        return r < 0 ? field_error(r) : 1;
}

int fields_grow(void **items, size_t n, size_t size, size_t max) {
        void *larger;

        if (n >= max)
                return -EBADMSG;
        larger = array_grow(*items, n, 1, size);
        if (!larger)
                return -ENOMEM;
        *items = larger;
        return 0;
}

int fields_append(sd_bus_message *msg, const FieldTable *table, const void *items, size_t n) {
        int r;

        r = sd_bus_message_open_container(msg, 'a', table->type);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = struct_append(msg, table, (const char *) items + i * table->size);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

int fields_read(sd_bus_message *msg, const FieldTable *table, void **ret, size_t *ret_n) {
        CLEANUP(free_ptr) void *items = NULL;
        size_t n = 0;
        int r;

        r = sd_bus_message_enter_container(msg, 'a', table->type);
        if (r <= 0)
                return field_error(r);

        while ((r = sd_bus_message_at_end(msg, false)) == 0) {
                void *item;

                r = fields_grow(&items, n, table->size, table->max);
                if (r < 0)
                        return r;
                item = (char *) items + n * table->size;
                memset(item, 0, table->size);
                r = struct_read(msg, table, item);
                if (r <= 0)
                        return r < 0 ? r : -EBADMSG;
                n++;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(msg);
        if (r < 0)
                return field_error(r);

        *ret = n > 0 ? take_ptr(&items) : NULL;
        *ret_n = n;
        return 0;
}

int fields_clean_one(const Field *fields, size_t n_fields, void *item) {
        for (size_t i = 0; i < n_fields; i++) {
                const Field *field = &fields[i];
                char *place = (char *) item + field->offset;
                int r;

                if (field->type == 's') {
                        place[field->size - 1] = '\0';
                        text_sanitize(place);
                } else if (field->type == 'b') {
                        /* As a char: a bool that is neither 0 nor 1 must not be read as one. */
                        *place = *place != 0;
                }

                r = field_check(field, item);
                if (r < 0)
                        return r;
        }
        return 0;
}

int fields_clean(const FieldTable *table, void *items, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int r = fields_clean_one(table->fields, table->n_fields, (char *) items + i * table->size);

                if (r < 0)
                        return r;
        }
        return 0;
}
