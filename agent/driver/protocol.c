/* SPDX-License-Identifier: MIT */
#include "agent/driver/protocol.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/driver/fields.h"

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
        FIELD(GpuSample, 'b', checks, FIELD_ANY),
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

static const Field pair_fields[] = {
        FIELD(GpuTenant, 's', uuid, FIELD_UUID),
        FIELD(GpuTenant, 's', tenant, FIELD_TENANT_OR_NONE),
};

static const Field sign_fields[] = {
        FIELD(TenantSign, 's', tenant, FIELD_TENANT),
        FIELD(TenantSign, 'u', presence, FIELD_PRESENCE),
};

#define LINK_SIGNATURE "ubs"
#define PAIR_SIGNATURE "ss"

static const FieldTable links_table = FIELD_TABLE(GpuLink, link_fields, LINK_SIGNATURE, GPU_LINKS_MAX);
static const FieldTable resets_table = FIELD_TABLE(GpuReset, reset_fields, "sus", PROTOCOL_GPUS_MAX);
static const FieldTable holders_table =
                FIELD_TABLE(GpuHolder, holder_fields, "sutussst", PROTOCOL_HOLDERS_MAX);
static const FieldTable pairs_table = FIELD_TABLE(GpuTenant, pair_fields, PAIR_SIGNATURE, PROTOCOL_GPUS_MAX);
static const FieldTable signs_table = FIELD_TABLE(TenantSign, sign_fields, "su", PROTOCOL_TENANTS_MAX);

_Static_assert(ELEMENTSOF(sample_fields) <= 64, "one bit a field in sample_read()");

static int links_append(sd_bus_message *msg, const GpuSample *sample) {
        int r;

        r = sd_bus_message_open_container(msg, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(msg, "s", "links");
        if (r >= 0)
                r = sd_bus_message_open_container(msg, 'v', "a(" LINK_SIGNATURE ")");
        if (r >= 0)
                r = fields_append(msg, &links_table, sample->links, sample->n_links);
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
                return field_error(r);
        r = fields_read(msg, &links_table, &links, &n);
        if (r < 0)
                return r;
        if (n > 0)
                memcpy(sample->links, links, n * sizeof(GpuLink));
        sample->n_links = (uint32_t) n;
        links_count(sample);
        r = sd_bus_message_exit_container(msg);
        return r < 0 ? field_error(r) : 0;
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
                        return field_error(r);
                r = field_read(msg, field, sample);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(msg);
                return r < 0 ? field_error(r) : 0;
        }

        r = sd_bus_message_skip(msg, "v"); /* of a newer driver service */
        return r < 0 ? field_error(r) : 0;
}

static int sample_read(sd_bus_message *msg, GpuSample *sample) {
        uint64_t seen = 0;
        int r;

        gpu_sample_init(sample);
        r = sd_bus_message_enter_container(msg, 'a', "{sv}");
        if (r <= 0)
                return field_error(r);

        for (;;) {
                const char *key;

                r = sd_bus_message_enter_container(msg, 'e', "sv");
                if (r == 0)
                        break;
                if (r > 0)
                        r = sd_bus_message_read_basic(msg, 's', &key);
                if (r <= 0)
                        return field_error(r);
                r = sample_read_value(msg, key, &seen, sample);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(msg);
                if (r < 0)
                        return field_error(r);
        }

        /* The first field is the UUID: a GPU without a name is of no use. */
        if (!(seen & 1))
                return -EBADMSG;
        r = sd_bus_message_exit_container(msg);
        return r < 0 ? field_error(r) : 0;
}

int protocol_append_request(sd_bus_message *msg, char *const *uuids, usec_t timeout_usec) {
        int r;

        r = sd_bus_message_append_strv(msg, (char **) uuids);
        return r < 0 ? r : sd_bus_message_append_basic(msg, 't', &timeout_usec);
}

int protocol_append_request_pairs(
                sd_bus_message *msg, char *const *uuids, char *const *tenants, usec_t timeout_usec) {
        size_t n = strv_length(uuids);
        int r;

        if (strv_length(tenants) != n)
                return -EINVAL;
        r = sd_bus_message_open_container(msg, 'a', "(" PAIR_SIGNATURE ")");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(msg, "(" PAIR_SIGNATURE ")", uuids[i], tenants[i]);
        if (r >= 0)
                r = sd_bus_message_close_container(msg);
        return r < 0 ? r : protocol_append_request_timeout(msg, timeout_usec);
}

int protocol_append_request_timeout(sd_bus_message *msg, usec_t timeout_usec) {
        return sd_bus_message_append_basic(msg, 't', &timeout_usec);
}

int protocol_append_samples(sd_bus_message *msg, const GpuSample *samples, size_t n) {
        int r;

        r = sd_bus_message_open_container(msg, 'a', "a{sv}");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sample_append(msg, &samples[i]);
        return r < 0 ? r : sd_bus_message_close_container(msg);
}

int protocol_append_probe(
                sd_bus_message *msg, const char *driver_version, const GpuSample *samples, size_t n) {
        int r;

        r = sd_bus_message_append(msg, "s", driver_version);
        return r < 0 ? r : protocol_append_samples(msg, samples, n);
}

int protocol_append_resets(sd_bus_message *msg, const GpuReset *resets, size_t n) {
        return fields_append(msg, &resets_table, resets, n);
}

int protocol_append_holders(sd_bus_message *msg, const GpuHolder *holders, size_t n) {
        return fields_append(msg, &holders_table, holders, n);
}

int protocol_append_tenants(sd_bus_message *msg, const TenantSign *signs, size_t n) {
        return fields_append(msg, &signs_table, signs, n);
}

int protocol_append_failure(sd_bus_message *msg, const char *failure) {
        return sd_bus_message_append_basic(msg, 's', failure);
}

int protocol_read_samples(sd_bus_message *msg, GpuSample **ret, size_t *ret_n) {
        CLEANUP(free_ptr) void *samples = NULL;
        size_t n = 0;
        int r;

        r = sd_bus_message_enter_container(msg, 'a', "a{sv}");
        if (r <= 0)
                return field_error(r);

        while ((r = sd_bus_message_at_end(msg, false)) == 0) {
                r = fields_grow(&samples, n, sizeof(GpuSample), PROTOCOL_GPUS_MAX);
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
                return field_error(r);

        *ret = n > 0 ? take_ptr(&samples) : NULL;
        *ret_n = n;
        return 0;
}

int protocol_read_probe(sd_bus_message *msg, char ret_driver_version[static DRIVER_VERSION_SIZE],
                GpuSample **ret, size_t *ret_n) {
        const char *version;
        int r;

        r = sd_bus_message_read_basic(msg, 's', &version);
        if (r <= 0)
                return field_error(r);
        if (strlen(version) >= DRIVER_VERSION_SIZE || !text_is_printable(version))
                return -EBADMSG;
        r = protocol_read_samples(msg, ret, ret_n);
        if (r < 0)
                return r;
        strcpy(ret_driver_version, version);
        return 0;
}

int protocol_read_resets(sd_bus_message *msg, GpuReset **ret, size_t *ret_n) {
        return fields_read(msg, &resets_table, (void **) ret, ret_n);
}

int protocol_read_holders(sd_bus_message *msg, GpuHolder **ret, size_t *ret_n) {
        return fields_read(msg, &holders_table, (void **) ret, ret_n);
}

int protocol_read_tenants(sd_bus_message *msg, TenantSign **ret, size_t *ret_n) {
        return fields_read(msg, &signs_table, (void **) ret, ret_n);
}

int protocol_read_failure(sd_bus_message *msg, char ret[static FAILURE_SIZE]) {
        const char *text;
        int r;

        r = sd_bus_message_read_basic(msg, 's', &text);
        if (r <= 0)
                return field_error(r);
        if (strlen(text) >= FAILURE_SIZE || !text_is_printable(text))
                return -EBADMSG;
        strcpy(ret, text);
        return 0;
}

static int compare_pairs(const void *a, const void *b) {
        return strcmp((*(const GpuTenant *const *) a)->uuid, (*(const GpuTenant *const *) b)->uuid);
}

int protocol_read_pairs(sd_bus_message *msg, GpuTenant **ret, size_t *ret_n) {
        CLEANUP(free_ptr) const GpuTenant **sorted = NULL;
        CLEANUP(free_ptr) void *items = NULL;
        size_t n;
        int r;

        r = fields_read(msg, &pairs_table, &items, &n);
        if (r < 0)
                return r;

        sorted = calloc(n + 1, sizeof *sorted);
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = (const GpuTenant *) items + i;
        qsort(sorted, n, sizeof *sorted, compare_pairs);
        for (size_t i = 1; i < n; i++)
                if (streq(sorted[i - 1]->uuid, sorted[i]->uuid))
                        return -EBADMSG;

        *ret = take_ptr(&items);
        *ret_n = n;
        return 0;
}

int protocol_clean_samples(GpuSample *samples, size_t n) {
        for (size_t i = 0; i < n; i++) {
                GpuSample *sample = &samples[i];
                int r;

                r = fields_clean_one(sample_fields, ELEMENTSOF(sample_fields), sample);
                if (r < 0)
                        return r;
                if (sample->n_links > GPU_LINKS_MAX)
                        return -EBADMSG;
                for (size_t k = 0; k < sample->n_links; k++)
                        (void) fields_clean_one(link_fields, ELEMENTSOF(link_fields),
                                        &sample->links[k]); /* no rules there */
                links_count(sample);
        }
        return 0;
}

int protocol_clean_resets(GpuReset *resets, size_t n) {
        return fields_clean(&resets_table, resets, n);
}

int protocol_clean_holders(GpuHolder *holders, size_t n) {
        return fields_clean(&holders_table, holders, n);
}

int protocol_clean_tenants(TenantSign *signs, size_t n) {
        return fields_clean(&signs_table, signs, n);
}
