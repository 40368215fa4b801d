/* SPDX-License-Identifier: MIT */
/* org.gpuagent1.GPU: one object a GPU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "dbus/bus-objects.h"
#include "dbus/bus-request.h"

void bus_gpu_path(const Gpu *gpu, char ret[static BUS_GPU_PATH_SIZE]) {
        (void) snprintf(ret, BUS_GPU_PATH_SIZE, BUS_GPU_PATH "/%s", gpu->sample.uuid);
        for (char *p = ret; *p != '\0'; p++)
                if (*p == '-')
                        *p = '_';
}

int bus_gpu_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                sd_bus_error *error) {
        const BusConnection *connection = userdata;
        const char *name = startswith(path, BUS_GPU_PATH "/");
        char uuid[GPU_UUID_SIZE];
        Gpu *gpu;

        if (!name || strlen(name) >= sizeof uuid || strchr(name, '-'))
                return 0;
        (void) snprintf(uuid, sizeof uuid, "%s", name);
        for (char *p = uuid; *p != '\0'; p++)
                if (*p == '_')
                        *p = '-';

        gpu = manager_gpu_by_uuid(connection->api->manager, uuid);
        if (!gpu)
                return 0;
        *ret = gpu;
        return 1;
}

int bus_gpu_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error) {
        CLEANUP(strv_free_ptr) char **paths = NULL;
        const BusConnection *connection = userdata;
        char path[BUS_GPU_PATH_SIZE];
        Gpu *const *gpus;
        size_t n;

        gpus = manager_gpus(connection->api->manager, &n);
        paths = calloc(n + 1, sizeof *paths);
        if (!paths)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                bus_gpu_path(gpus[i], path);
                paths[i] = strdup(path);
                if (!paths[i])
                        return -ENOMEM;
        }

        *ret = take_ptr(&paths);
        return 0;
}

const char* bus_gpu_public_detail(
                const BusConnection *connection, const Gpu *gpu, Outcome outcome, const char *detail) {
        if (!bus_connection_hides_names(connection))
                return detail;
        if (!outcome_is_failure(outcome))
                return "";
        return gpu->reason_counts[0] != '\0' ? gpu->reason_counts : outcome_to_string(outcome);
}

bool bus_gpu_clique(const Gpu *gpu, const char **ret_cluster, uint32_t *ret_clique) {
        const GpuSample *sample = &gpu->sample;

        if (!gpu->probed || sample->error[0] != '\0' || !gpu_sample_has_clique(sample))
                return false;
        *ret_cluster = sample->cluster_uuid;
        *ret_clique = sample->clique_id;
        return true;
}

/* Whether the last probe got an answer of this GPU; else its numbers are unknown. */
static bool gpu_answers(const Gpu *gpu) {
        return gpu->probed && gpu->sample.error[0] == '\0';
}

typedef struct Property {
        const char *name;
        const char *(*text)(const BusConnection *connection, const Gpu *gpu);
        uint32_t (*number)(const Gpu *gpu);
} Property;

static const char* text_uuid(const BusConnection *connection, const Gpu *gpu) {
        return gpu->sample.uuid;
}

static const char* text_name(const BusConnection *connection, const Gpu *gpu) {
        return gpu->sample.name;
}

static const char* text_bus_id(const BusConnection *connection, const Gpu *gpu) {
        return gpu->sample.bus_id;
}

static const char* text_serial(const BusConnection *connection, const Gpu *gpu) {
        return gpu->sample.serial;
}

static const char* text_state(const BusConnection *connection, const Gpu *gpu) {
        return gpu_state_to_string(gpu_state(gpu));
}

static const char* text_reason(const BusConnection *connection, const Gpu *gpu) {
        return bus_connection_hides_names(connection) ? gpu->reason_counts : gpu->reason;
}

static const char* text_tenant(const BusConnection *connection, const Gpu *gpu) {
        return bus_connection_hides_names(connection) ? "" : gpu->tenant;
}

static const char* text_tenant_presence(const BusConnection *connection, const Gpu *gpu) {
        return gpu_tenant_presence(gpu);
}

static const char* text_last_tenant(const BusConnection *connection, const Gpu *gpu) {
        return bus_connection_hides_names(connection) ? "" : gpu->last_tenant;
}

static const char* text_partition_name(const BusConnection *connection, const Gpu *gpu) {
        return gpu->sample.partition_name;
}

static const char* text_cluster(const BusConnection *connection, const Gpu *gpu) {
        const char *cluster;
        uint32_t clique;

        return bus_gpu_clique(gpu, &cluster, &clique) ? cluster : "";
}

static const char* text_fabric_state(const BusConnection *connection, const Gpu *gpu) {
        const char *state = gpu_answers(gpu) ? fabric_state_to_string(gpu->sample.fabric_state) : NULL;

        return state ? state : "unknown";
}

static const char* text_fabric_status(const BusConnection *connection, const Gpu *gpu) {
        return gpu_answers(gpu) ? gpu->sample.fabric_status_text : "";
}

static const char* text_fabric_health(const BusConnection *connection, const Gpu *gpu) {
        const char *health = gpu_answers(gpu) ? fabric_health_to_string(gpu->sample.fabric_health) : NULL;

        return health ? health : "unknown";
}

static const char* text_health(const BusConnection *connection, const Gpu *gpu) {
        return gpu_health_to_string(gpu_health(gpu));
}

static const char* text_last_result(const BusConnection *connection, const Gpu *gpu) {
        return gpu->last_reset.realtime_usec == 0 ? "" : outcome_to_string(gpu->last_reset.outcome);
}

static const char* text_last_detail(const BusConnection *connection, const Gpu *gpu) {
        if (gpu->last_reset.realtime_usec == 0)
                return "";
        return bus_gpu_public_detail(connection, gpu, gpu->last_reset.outcome, gpu->last_reset.detail);
}

static uint32_t number_index(const Gpu *gpu) {
        return gpu->sample.index;
}

static uint32_t number_minor(const Gpu *gpu) {
        return gpu->sample.minor;
}

static uint32_t number_partition(const Gpu *gpu) {
        return gpu->sample.partition;
}

static uint32_t number_expected_clique(const Gpu *gpu) {
        uint32_t clique;

        return gpu_expected_clique(gpu, &clique) > 0 ? clique : UNKNOWN_U32;
}

static uint32_t number_clique(const Gpu *gpu) {
        const char *cluster;
        uint32_t clique;

        return bus_gpu_clique(gpu, &cluster, &clique) ? clique : UNKNOWN_U32;
}

static uint32_t number_links(const Gpu *gpu) {
        return gpu_answers(gpu) ? gpu->sample.n_links : UNKNOWN_U32;
}

static uint32_t number_links_active(const Gpu *gpu) {
        return gpu_answers(gpu) ? gpu->sample.n_links_active : UNKNOWN_U32;
}

static uint32_t number_xid(const Gpu *gpu) {
        return gpu->last_xid;
}

static uint32_t number_utilization(const Gpu *gpu) {
        return gpu->sample.utilization;
}

static uint32_t number_power(const Gpu *gpu) {
        return gpu->sample.power_mw;
}

static const Property property_table[] = {
        { "UUID", .text = text_uuid },
        { "Name", .text = text_name },
        { "PCIBusID", .text = text_bus_id },
        { "Serial", .text = text_serial },
        { "Index", .number = number_index },
        { "Minor", .number = number_minor },
        { "State", .text = text_state },
        { "StateReason", .text = text_reason },
        { "Tenant", .text = text_tenant },
        { "TenantPresence", .text = text_tenant_presence },
        { "LastTenant", .text = text_last_tenant },
        { "Partition", .number = number_partition },
        { "PartitionName", .text = text_partition_name },
        { "ExpectedCliqueID", .number = number_expected_clique },
        { "CliqueID", .number = number_clique },
        { "ClusterUUID", .text = text_cluster },
        { "FabricState", .text = text_fabric_state },
        { "FabricStatus", .text = text_fabric_status },
        { "FabricHealth", .text = text_fabric_health },
        { "NVLinks", .number = number_links },
        { "NVLinksActive", .number = number_links_active },
        { "Health", .text = text_health },
        { "LastResetResult", .text = text_last_result },
        { "LastResetDetail", .text = text_last_detail },
        { "LastXid", .number = number_xid },
        { "Utilization", .number = number_utilization },
        { "Power", .number = number_power },
};

static int property_get_simple(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;

        for (size_t i = 0; i < ELEMENTSOF(property_table); i++) {
                const Property *entry = &property_table[i];
                uint32_t number;

                if (!streq(entry->name, property))
                        continue;
                if (entry->text)
                        return sd_bus_message_append_basic(
                                        reply, 's', entry->text(bus_connection_current(bus), gpu));
                number = entry->number(gpu);
                return sd_bus_message_append_basic(reply, 'u', &number);
        }
        return -ENOENT;
}

static int property_get_links(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;
        uint32_t n = gpu_answers(gpu) && gpu->sample.n_links <= GPU_LINKS_MAX ? gpu->sample.n_links : 0;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(ubs)");
        for (uint32_t i = 0; r >= 0 && i < n; i++) {
                const GpuLink *link = &gpu->sample.links[i];

                r = sd_bus_message_append(reply, "(ubs)", link->link, link->active, link->remote);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int property_get_steps(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(st)");
        for (size_t i = 0; r >= 0 && i < gpu->last_reset.n_steps; i++)
                r = sd_bus_message_append(reply, "(st)", gpu->last_reset.steps[i].name,
                                gpu->last_reset.steps[i].duration_usec);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int property_get_recovery_action(sd_bus *bus, const char *path, const char *interface,
                const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;
        char text[32];

        recovery_action_format(gpu_answers(gpu) ? gpu->sample.recovery_action : RECOVERY_UNKNOWN, text,
                        sizeof text);
        return sd_bus_message_append_basic(reply, 's', text);
}

static int property_get_boolean(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;
        int value = streq(property, "MIG") ? gpu->sample.mig : gpu_reset_pending(gpu);

        return sd_bus_message_append_basic(reply, 'b', &value);
}

static int property_get_u64(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;
        const uint64_t *value = streq(property, "MemoryTotal")     ? &gpu->sample.memory_total
                        : streq(property, "MemoryUsed")            ? &gpu->sample.memory_used
                        : streq(property, "LastResetTimestamp")    ? &gpu->last_reset.realtime_usec
                        : streq(property, "StateTimestamp")        ? &gpu->state_since_realtime_usec
                        : streq(property, "LastResetDurationUSec") ? &gpu->last_reset.duration_usec
                                                                   : &gpu->reset_count;

        return sd_bus_message_append_basic(reply, 't', value);
}

static int property_get_temperature(sd_bus *bus, const char *path, const char *interface,
                const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Gpu *gpu = userdata;

        return sd_bus_message_append_basic(reply, 'i', &gpu->sample.temperature);
}

static int request_for_gpu(sd_bus_message *msg, const Gpu *gpu, RequestKind kind, sd_bus_error *error) {
        char uuid[GPU_UUID_SIZE];
        char *ids[] = { uuid, NULL };
        BusOptions options;
        int r;

        r = bus_options_read(msg, &options, error);
        if (r < 0)
                return r;
        (void) snprintf(uuid, sizeof uuid, "%s", gpu->sample.uuid);
        return bus_request(bus_connection_current(sd_bus_message_get_bus(msg)), msg, kind, ids, &options,
                        error);
}

static int method_reset(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_gpu(msg, userdata, REQUEST_RESET, error);
}

static int method_verify(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_gpu(msg, userdata, REQUEST_VERIFY, error);
}

static int method_list_processes(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_gpu(msg, userdata, REQUEST_PROCESSES, error);
}

#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define SILENT   0 /* changes all the time; nobody is told */
#define EVERYONE SD_BUS_VTABLE_UNPRIVILEGED

const sd_bus_vtable bus_gpu_vtable[] = { SD_BUS_VTABLE_START(0),

        SD_BUS_PROPERTY("UUID", "s", property_get_simple, 0, CONSTANT),
        SD_BUS_PROPERTY("Name", "s", property_get_simple, 0, CONSTANT),
        SD_BUS_PROPERTY("PCIBusID", "s", property_get_simple, 0, CONSTANT),
        SD_BUS_PROPERTY("Serial", "s", property_get_simple, 0, CONSTANT),
        SD_BUS_PROPERTY("Index", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("Minor", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("State", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("StateReason", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("StateTimestamp", "t", property_get_u64, 0, CHANGES),
        SD_BUS_PROPERTY("Tenant", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("TenantPresence", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("LastTenant", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("Partition", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("PartitionName", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("ExpectedCliqueID", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("CliqueID", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("ClusterUUID", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("FabricState", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("FabricStatus", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("FabricHealth", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("NVLinks", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("NVLinksActive", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("Links", "a(ubs)", property_get_links, 0, CHANGES),
        SD_BUS_PROPERTY("Health", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("ResetPending", "b", property_get_boolean, 0, CHANGES),
        SD_BUS_PROPERTY("RecoveryAction", "s", property_get_recovery_action, 0, CHANGES),
        SD_BUS_PROPERTY("LastResetTimestamp", "t", property_get_u64, 0, CHANGES),
        SD_BUS_PROPERTY("LastResetResult", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("LastResetDetail", "s", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("LastResetDurationUSec", "t", property_get_u64, 0, CHANGES),
        SD_BUS_PROPERTY("LastResetSteps", "a(st)", property_get_steps, 0, CHANGES),
        SD_BUS_PROPERTY("ResetCount", "t", property_get_u64, 0, CHANGES),
        SD_BUS_PROPERTY("LastXid", "u", property_get_simple, 0, CHANGES),
        SD_BUS_PROPERTY("MIG", "b", property_get_boolean, 0, CHANGES),
        SD_BUS_PROPERTY("MemoryTotal", "t", property_get_u64, 0, SILENT),
        SD_BUS_PROPERTY("MemoryUsed", "t", property_get_u64, 0, SILENT),
        SD_BUS_PROPERTY("Utilization", "u", property_get_simple, 0, SILENT),
        SD_BUS_PROPERTY("Power", "u", property_get_simple, 0, SILENT),
        SD_BUS_PROPERTY("Temperature", "i", property_get_temperature, 0, SILENT),

        /* These call bus_authorize(). */
        SD_BUS_METHOD_WITH_ARGS(
                        "Reset", SD_BUS_ARGS("a{sv}", options), SD_BUS_NO_RESULT, method_reset, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS(
                        "Verify", SD_BUS_ARGS("a{sv}", options), SD_BUS_NO_RESULT, method_verify, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("ListProcesses", SD_BUS_ARGS("a{sv}", options),
                        SD_BUS_RESULT("a(ouussst)", processes), method_list_processes, EVERYONE),

        SD_BUS_VTABLE_END };
