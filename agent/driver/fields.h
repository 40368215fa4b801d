/* SPDX-License-Identifier: MIT */
/* Structs by a table of their fields: how they go into a message and come out of it, and what is checked
 * then. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-bus.h>

/* What a string must be besides printable. */
typedef enum FieldRule {
        FIELD_ANY,
        FIELD_UUID,
        FIELD_BUS_ID, /* or "" */
        FIELD_TENANT,
        FIELD_TENANT_OR_NONE,
        FIELD_VERDICT,  /* a number below _RESET_VERDICT_MAX */
        FIELD_PRESENCE, /* a number below _TENANT_PRESENCE_MAX */
} FieldRule;

typedef struct Field {
        const char *name;
        char type; /* D-Bus: s, b, u, i or t */
        FieldRule rule;
        size_t offset;
        size_t size; /* of the member, with a string's NUL */
} Field;

#define FIELD(Struct, t, member, r)                                                            \
        {                                                                                      \
                .name = #member, .type = (t), .rule = (r), .offset = offsetof(Struct, member), \
                .size = sizeof(((Struct *) NULL)->member)                                      \
        }

/* A struct: its fields in their order on the wire, and how many an array of it may have. */
typedef struct FieldTable {
        const Field *fields;
        size_t n_fields;
        size_t size;           /* of the struct */
        const char *signature; /* D-Bus: "sus" */
        const char *type;      /* the same in parentheses */
        size_t max;
} FieldTable;

#define FIELD_TABLE(Struct, f, s, m)                                                              \
        {                                                                                         \
                .fields = (f), .n_fields = ELEMENTSOF(f), .size = sizeof(Struct), .signature = s, \
                .type = "(" s ")", .max = (m)                                                     \
        }

/* What a reader makes of an error of sd-bus: only memory is worth telling apart. */
int field_error(int r);

/* One member. 0 · -errno of sd-bus; read: -EBADMSG · -ENOMEM. */
int field_append(sd_bus_message *msg, const Field *field, const void *item);
int field_read(sd_bus_message *msg, const Field *field, void *item);

/* Room for one more item of that size. 0 · -EBADMSG above max · -ENOMEM. */
int fields_grow(void **items, size_t n, size_t size, size_t max);

/* An array of structs. 0 · -errno of sd-bus; read: -EBADMSG · -ENOMEM, else *ret (to be freed; NULL if
 * *ret_n is 0). */
int fields_append(sd_bus_message *msg, const FieldTable *table, const void *items, size_t n);
int fields_read(sd_bus_message *msg, const FieldTable *table, void **ret, size_t *ret_n);

/* Makes items of unknown origin fit to be read: strings end and are printable, a bool is 0 or 1. 0 ·
 * -EBADMSG against a field's rule. */
int fields_clean_one(const Field *fields, size_t n_fields, void *item);
int fields_clean(const FieldTable *table, void *items, size_t n);
