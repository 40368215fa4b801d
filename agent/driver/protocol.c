/* SPDX-License-Identifier: MIT */
#include "agent/driver/protocol.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"

/* What a string must be besides printable. */
typedef enum FieldRule {
        FIELD_ANY,
        FIELD_UUID,
        FIELD_BUS_ID,  /* or "" */
        FIELD_VERDICT, /* a number below _RESET_VERDICT_MAX */
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

static const Field sample_fields[] = {
        FIELD(GpuSample, 's', uuid, FIELD_UUID),
        FIELD(GpuSample, 's', bus_id, FIELD_BUS_ID),
        FIELD(GpuSample, 's', name, FIELD_ANY),
        FIELD(GpuSample, 's', serial, FIELD_ANY),
        FIELD(GpuSample, 'u', index, FIELD_ANY),
        FIELD(GpuSample, 'u', minor, FIELD_ANY),
        FIELD(GpuSample, 's', error, FIELD_ANY),
        FIELD(GpuSample, 'b', lost, FIELD_ANY),
        FIELD(GpuSample, 'b', reset_required, FIELD_ANY),
        FIELD(GpuSample, 'u', clique_id, FIELD_ANY),
        FIELD(GpuSample, 's', cluster_uuid, FIELD_ANY),
        FIELD(GpuSample, 'u', fabric_state, FIELD_ANY),
        FIELD(GpuSample, 'u', fabric_status, FIELD_ANY),
        FIELD(GpuSample, 's', fabric_status_text, FIELD_ANY),
        FIELD(GpuSample, 'u', fabric_health, FIELD_ANY),
        FIELD(GpuSample, 'u', partition, FIELD_ANY),
        FIELD(GpuSample, 's', partition_name, FIELD_ANY),
        FIELD(GpuSample, 'u', partition_clique, FIELD_ANY),
        FIELD(GpuSample, 'i', recovery_action, FIELD_ANY),
        FIELD(GpuSample, 'b', mig, FIELD_ANY),
        FIELD(GpuSample, 'b', persistence, FIELD_ANY),
        FIELD(GpuSample, 'u', n_processes, FIELD_ANY),
        FIELD(GpuSample, 't', memory_total, FIELD_ANY),
        FIELD(GpuSample, 't', memory_used, FIELD_ANY),
        FIELD(GpuSample, 'u', utilization, FIELD_ANY),
        FIELD(GpuSample, 'u', power_mw, FIELD_ANY),
        FIELD(GpuSample, 'i', temperature, FIELD_ANY),
        FIELD(GpuSample, 't', nvlink_tx_bytes, FIELD_ANY),
        FIELD(GpuSample, 't', nvlink_rx_bytes, FIELD_ANY),
};

/* In this order on the wire. */
static const Field link_fields[] = {
        FIELD(GpuLink, 'u', link, FIELD_ANY),
        FIELD(GpuLink, 'b', active, FIELD_ANY),
        FIELD(GpuLink, 's', remote, FIELD_ANY),
};

static const Field reset_fields[] = {
        FIELD(GpuReset, 's', uuid, FIELD_UUID),
        FIELD(GpuReset, 'u', verdict, FIELD_VERDICT),
        FIELD(GpuReset, 's', detail, FIELD_ANY),
};

static const Field holder_fields[] = {
        FIELD(GpuHolder, 's', uuid, FIELD_UUID),
        FIELD(GpuHolder, 'u', pid, FIELD_ANY),
        FIELD(GpuHolder, 't', start_time, FIELD_ANY),
        FIELD(GpuHolder, 'u', uid, FIELD_ANY),
        FIELD(GpuHolder, 's', user, FIELD_ANY),
        FIELD(GpuHolder, 's', command, FIELD_ANY),
        FIELD(GpuHolder, 's', where, FIELD_ANY),
        FIELD(GpuHolder, 't', used_bytes, FIELD_ANY),
};

#define LINK_SIGNATURE   "ubs"
#define RESET_SIGNATURE  "sus"
#define HOLDER_SIGNATURE "sutussst"

_Static_assert(ELEMENTSOF(sample_fields) <= 64, "one bit a field in sample_read()");
_Static_assert(ELEMENTSOF(link_fields) == sizeof LINK_SIGNATURE - 1, "links");
_Static_assert(ELEMENTSOF(reset_fields) == sizeof RESET_SIGNATURE - 1, "resets");
_Static_assert(ELEMENTSOF(holder_fields) == sizeof HOLDER_SIGNATURE - 1, "holders");

static bool is_printable(const char *s) {
        for (; *s; s++)
                if (*s < ' ' || *s > '~')
                        return false;
        return true;
}

static int field_check(const Field *field, const void *item) {
        const char *place = (const char *) item + field->offset;
        char uuid[GPU_UUID_SIZE], bus_id[GPU_BUS_ID_SIZE];
        uint32_t verdict;

        switch (field->rule) {
        case FIELD_ANY: return 0;
        case FIELD_UUID: return gpu_uuid_parse(place, uuid) < 0 || !streq(uuid, place) ? -EBADMSG : 0;
        case FIELD_BUS_ID: return *place && bus_id_parse(place, bus_id) < 0 ? -EBADMSG : 0;
        case FIELD_VERDICT:
                memcpy(&verdict, place, sizeof verdict);
                return verdict >= _RESET_VERDICT_MAX ? -EBADMSG : 0;
        }
        return -EBADMSG;
}

/* Only what the sd-bus functions say about memory is worth telling apart. */
static int read_error(int r) {
        return r == -ENOMEM ? r : -EBADMSG;
}

static int field_append(sd_bus_message *msg, const Field *field, const void *item) {
        const void *place = (const char *) item + field->offset;

        if (field->type == 'b') {
                int value = *(const bool *) place;

                return sd_bus_message_append_basic(msg, 'b', &value);
        }
        return sd_bus_message_append_basic(msg, field->type, place);
}

static int field_read(sd_bus_message *msg, const Field *field, void *item) {
        char *place = (char *) item + field->offset;
        int r, truth;

        if (field->type == 's') {
                const char *text;

                r = sd_bus_message_read_basic(msg, 's', &text);
                if (r <= 0)
                        return read_error(r);
                if (strlen(text) >= field->size || !is_printable(text))
                        return -EBADMSG;
                strcpy(place, text);
        } else if (field->type == 'b') {
                r = sd_bus_message_read_basic(msg, 'b', &truth);
                if (r <= 0)
                        return read_error(r);
                *(bool *) place = truth != 0;
        } else {
                r = sd_bus_message_read_basic(msg, field->type, place);
                if (r <= 0)
                        return read_error(r);
        }

        return field_check(field, item);
}

static int struct_append(sd_bus_message *msg, const char *signature, const Field *fields, size_t n_fields,
                const void *item) {
        int r;

        r = sd_bus_message_open_container(msg, 'r', signature);
        for (size_t i = 0; r >= 0 && i < n_fields; i++)
                r = field_append(msg, &fields[i], item);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

/* 1 · 0 at the end of the array · -EBADMSG. */
static int struct_read(sd_bus_message *msg, const char *signature, const Field *fields, size_t n_fields,
                void *item) {
        int r;

        r = sd_bus_message_enter_container(msg, 'r', signature);
        if (r <= 0)
                return r < 0 ? read_error(r) : 0;
        for (size_t i = 0; i < n_fields; i++) {
                r = field_read(msg, &fields[i], item);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_exit_container(msg);
        return r < 0 ? read_error(r) : 1;
}

/* Room for one more item. 0 · -EBADMSG above max · -ENOMEM. */
static int array_grow(void **items, size_t n, size_t *room, size_t size, size_t max) {
        void *larger;
        size_t more;

        if (n < *room)
                return 0;
        if (n >= max)
                return -EBADMSG;
        more = *room == 0 ? 8 : *room * 2;
        larger = reallocarray(*items, more, size);
        if (!larger)
                return -ENOMEM;
        *items = larger;
        *room = more;
        return 0;
}

static int array_append(sd_bus_message *msg, const char *type, const char *signature, const Field *fields,
                size_t n_fields, const void *items, size_t size, size_t n) {
        int r;

        r = sd_bus_message_open_container(msg, 'a', type);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = struct_append(msg, signature, fields, n_fields, (const char *) items + i * size);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

static int array_read(sd_bus_message *msg, const char *type, const char *signature, const Field *fields,
                size_t n_fields, size_t size, size_t max, void **ret, size_t *ret_n) {
        CLEANUP(free_ptr) void *items = NULL;
        size_t n = 0, room = 0;
        int r;

        r = sd_bus_message_enter_container(msg, 'a', type);
        if (r <= 0)
                return read_error(r);

        for (;;) {
                void *item;

                r = sd_bus_message_at_end(msg, false);
                if (r != 0)
                        break;
                r = array_grow(&items, n, &room, size, max);
                if (r < 0)
                        return r;
                item = (char *) items + n * size;
                memset(item, 0, size);
                r = struct_read(msg, signature, fields, n_fields, item);
                if (r <= 0)
                        return r < 0 ? r : -EBADMSG;
                n++;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(msg);
        if (r < 0)
                return read_error(r);

        *ret = n > 0 ? take_ptr(&items) : NULL;
        *ret_n = n;
        return 0;
}

static int links_append(sd_bus_message *msg, const GpuSample *sample) {
        int r;

        r = sd_bus_message_open_container(msg, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(msg, "s", "links");
        if (r >= 0)
                r = sd_bus_message_open_container(msg, 'v', "a(" LINK_SIGNATURE ")");
        if (r >= 0)
                r = array_append(msg, "(" LINK_SIGNATURE ")", LINK_SIGNATURE, link_fields,
                                ELEMENTSOF(link_fields), sample->links, sizeof(GpuLink), sample->n_links);
        if (r >= 0)
                r = sd_bus_message_close_container(msg);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

static void links_count(GpuSample *sample) {
        sample->n_links_active = 0;
        for (size_t i = 0; i < sample->n_links; i++)
                if (sample->links[i].active)
                        sample->n_links_active++;
}

static int links_read(sd_bus_message *msg, GpuSample *sample) {
        CLEANUP(free_ptr) void *links = NULL;
        size_t n;
        int r;

        r = sd_bus_message_enter_container(msg, 'v', "a(" LINK_SIGNATURE ")");
        if (r <= 0)
                return read_error(r);
        r = array_read(msg, "(" LINK_SIGNATURE ")", LINK_SIGNATURE, link_fields, ELEMENTSOF(link_fields),
                        sizeof(GpuLink), GPU_LINKS_MAX, &links, &n);
        if (r < 0)
                return r;
        if (n > GPU_LINKS_MAX)
                return -EBADMSG;

        if (n > 0)
                memcpy(sample->links, links, n * sizeof(GpuLink));
        sample->n_links = (uint32_t) n;
        links_count(sample);
        r = sd_bus_message_exit_container(msg);
        return r < 0 ? read_error(r) : 0;
}

static int sample_append(sd_bus_message *msg, const GpuSample *sample) {
        int r;

        r = sd_bus_message_open_container(msg, 'a', "{sv}");
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(sample_fields); i++) {
                const Field *field = &sample_fields[i];

                r = sd_bus_message_open_container(msg, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append(msg, "s", field->name);
                if (r >= 0)
                        r = sd_bus_message_open_container(msg, 'v', (const char[]){ field->type, '\0' });
                if (r >= 0)
                        r = field_append(msg, field, sample);
                if (r >= 0)
                        r = sd_bus_message_close_container(msg);
                if (r >= 0)
                        r = sd_bus_message_close_container(msg);
        }
        if (r >= 0)
                r = links_append(msg, sample);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

/* Reads one variant into the field called `key`, noting it in *seen. */
static int sample_read_value(sd_bus_message *msg, const char *key, uint64_t *seen, GpuSample *sample) {
        int r;

        if (streq(key, "links"))
                return sample->n_links > 0 ? -EBADMSG : links_read(msg, sample);

        for (size_t i = 0; i < ELEMENTSOF(sample_fields); i++) {
                const Field *field = &sample_fields[i];

                if (!streq(key, field->name))
                        continue;
                if (*seen & (UINT64_C(1) << i))
                        return -EBADMSG;
                *seen |= UINT64_C(1) << i;

                r = sd_bus_message_enter_container(msg, 'v', (const char[]){ field->type, '\0' });
                if (r <= 0)
                        return read_error(r);
                r = field_read(msg, field, sample);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(msg);
                return r < 0 ? read_error(r) : 0;
        }

        r = sd_bus_message_skip(msg, "v"); /* of a newer driver service */
        return r < 0 ? read_error(r) : 0;
}

static int sample_read(sd_bus_message *msg, GpuSample *sample) {
        uint64_t seen = 0;
        int r;

        gpu_sample_init(sample);
        r = sd_bus_message_enter_container(msg, 'a', "{sv}");
        if (r <= 0)
                return read_error(r);

        for (;;) {
                const char *key;

                r = sd_bus_message_enter_container(msg, 'e', "sv");
                if (r == 0)
                        break;
                if (r > 0)
                        r = sd_bus_message_read_basic(msg, 's', &key);
                if (r <= 0)
                        return read_error(r);
                r = sample_read_value(msg, key, &seen, sample);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(msg);
                if (r < 0)
                        return read_error(r);
        }

        /* The first field is the UUID: a GPU without a name is of no use. */
        if (!(seen & 1))
                return -EBADMSG;
        r = sd_bus_message_exit_container(msg);
        return r < 0 ? read_error(r) : 0;
}

int protocol_append_request(sd_bus_message *msg, char *const *uuids, usec_t timeout_usec) {
        int r;

        r = sd_bus_message_append_strv(msg, (char **) uuids);
        return r < 0 ? r : sd_bus_message_append_basic(msg, 't', &timeout_usec);
}

int protocol_append_probe(
                sd_bus_message *msg, const char *driver_version, const GpuSample *samples, size_t n) {
        int r;

        r = sd_bus_message_append(msg, "s", driver_version);
        if (r >= 0)
                r = sd_bus_message_open_container(msg, 'a', "a{sv}");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sample_append(msg, &samples[i]);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

int protocol_append_resets(sd_bus_message *msg, const GpuReset *resets, size_t n) {
        return array_append(msg, "(" RESET_SIGNATURE ")", RESET_SIGNATURE, reset_fields,
                        ELEMENTSOF(reset_fields), resets, sizeof *resets, n);
}

int protocol_append_holders(sd_bus_message *msg, const GpuHolder *holders, size_t n) {
        return array_append(msg, "(" HOLDER_SIGNATURE ")", HOLDER_SIGNATURE, holder_fields,
                        ELEMENTSOF(holder_fields), holders, sizeof *holders, n);
}

int protocol_read_probe(sd_bus_message *msg, char ret_driver_version[static DRIVER_VERSION_SIZE],
                GpuSample **ret, size_t *ret_n) {
        CLEANUP(free_ptr) void *samples = NULL;
        size_t n = 0, room = 0;
        const char *version;
        int r;

        r = sd_bus_message_read_basic(msg, 's', &version);
        if (r <= 0)
                return read_error(r);
        if (strlen(version) >= DRIVER_VERSION_SIZE || !is_printable(version))
                return -EBADMSG;
        r = sd_bus_message_enter_container(msg, 'a', "a{sv}");
        if (r <= 0)
                return read_error(r);

        while ((r = sd_bus_message_at_end(msg, false)) == 0) {
                r = array_grow(&samples, n, &room, sizeof(GpuSample), PROTOCOL_GPUS_MAX);
                if (r < 0)
                        return r;
                r = sample_read(msg, (GpuSample *) samples + n);
                if (r < 0)
                        return r;
                n++;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(msg);
        if (r < 0)
                return read_error(r);

        strcpy(ret_driver_version, version);
        *ret = n > 0 ? take_ptr(&samples) : NULL;
        *ret_n = n;
        return 0;
}

int protocol_read_resets(sd_bus_message *msg, GpuReset **ret, size_t *ret_n) {
        void *items;
        int r;

        r = array_read(msg, "(" RESET_SIGNATURE ")", RESET_SIGNATURE, reset_fields, ELEMENTSOF(reset_fields),
                        sizeof(GpuReset), PROTOCOL_GPUS_MAX, &items, ret_n);
        if (r >= 0)
                *ret = items;
        return r;
}

int protocol_read_holders(sd_bus_message *msg, GpuHolder **ret, size_t *ret_n) {
        void *items;
        int r;

        r = array_read(msg, "(" HOLDER_SIGNATURE ")", HOLDER_SIGNATURE, holder_fields,
                        ELEMENTSOF(holder_fields), sizeof(GpuHolder), PROTOCOL_HOLDERS_MAX, &items, ret_n);
        if (r >= 0)
                *ret = items;
        return r;
}

static int item_clean(const Field *fields, size_t n_fields, void *item) {
        for (size_t i = 0; i < n_fields; i++) {
                const Field *field = &fields[i];
                char *place = (char *) item + field->offset;
                int r;

                if (field->type == 's') {
                        place[field->size - 1] = '\0';
                        for (char *c = place; *c; c++)
                                if (*c < ' ' || *c > '~')
                                        *c = '?';
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

int protocol_clean_samples(GpuSample *samples, size_t n) {
        for (size_t i = 0; i < n; i++) {
                GpuSample *sample = &samples[i];
                int r;

                r = item_clean(sample_fields, ELEMENTSOF(sample_fields), sample);
                if (r < 0)
                        return r;
                if (sample->n_links > GPU_LINKS_MAX)
                        return -EBADMSG;
                for (size_t k = 0; k < sample->n_links; k++)
                        (void) item_clean(link_fields, ELEMENTSOF(link_fields),
                                        &sample->links[k]); /* no rules there */
                links_count(sample);
        }
        return 0;
}

int protocol_clean_resets(GpuReset *resets, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int r = item_clean(reset_fields, ELEMENTSOF(reset_fields), &resets[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

int protocol_clean_holders(GpuHolder *holders, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int r = item_clean(holder_fields, ELEMENTSOF(holder_fields), &holders[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}
