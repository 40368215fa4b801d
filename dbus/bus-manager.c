/* SPDX-License-Identifier: MIT */
/* org.gpuagent1.Manager: the tray. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "dbus/bus-call.h"
#include "dbus/bus-error.h"
#include "dbus/bus-objects.h"
#include "dbus/bus-request.h"
#include "dbus/bus-util.h"

static int property_get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append_basic(reply, 's', VERSION);
}

static int property_get_node_name(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;

        return sd_bus_message_append_basic(reply, 's', connection->api->node_name);
}

static int property_get_driver(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;
        const Manager *manager = connection->api->manager;

        if (streq(property, "DriverVersion"))
                return sd_bus_message_append_basic(reply, 's', manager_driver_version(manager));
        if (streq(property, "DriverError"))
                return sd_bus_message_append_basic(reply, 's', manager_driver_error(manager));
        return sd_bus_message_append_basic(
                        reply, 's', driver_state_to_string(manager_driver_state(manager)));
}

static int property_get_switch(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;
        const Manager *manager = connection->api->manager;
        int value = streq(property, "Maintenance") ? manager_maintenance(manager) != NULL
                                                   : manager_config(manager)->handover.reset;

        return sd_bus_message_append_basic(reply, 'b', &value);
}

static int property_get_mode(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;
        bool observes = manager_config(connection->api->manager)->mode == AGENT_MODE_OBSERVE;

        return sd_bus_message_append_basic(reply, 's', observes ? "observe" : "enforce");
}

static int property_get_maintenance_reason(sd_bus *bus, const char *path, const char *interface,
                const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;
        const char *reason = manager_maintenance(connection->api->manager);

        return sd_bus_message_append_basic(reply, 's', reason ? reason : "");
}

static int property_get_count(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;
        const Manager *manager = connection->api->manager;
        uint32_t value = streq(property, "Quarantined") ? manager_quarantined(manager)
                                                        : manager_resets_pending(manager);

        return sd_bus_message_append_basic(reply, 'u', &value);
}

static int method_list_gpus(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        const BusConnection *connection = userdata;
        char path[BUS_GPU_PATH_SIZE];
        Gpu *const *gpus;
        size_t n;
        int r;

        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(usso)");

        gpus = manager_gpus(connection->api->manager, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                const GpuSample *sample = &gpus[i]->sample;

                bus_gpu_path(gpus[i], path);
                r = sd_bus_message_append(
                                reply, "(usso)", sample->index, sample->uuid, sample->bus_id, path);
        }

        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_get_gpu(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        const BusConnection *connection = userdata;
        char path[BUS_GPU_PATH_SIZE];
        const char *id;
        Gpu *gpu;
        int r;

        r = sd_bus_message_read(msg, "s", &id);
        if (r < 0)
                return r;
        r = manager_find(connection->api->manager, id, &gpu);
        if (r < 0)
                return bus_error_from_manager(error, connection->api->manager, r);

        bus_gpu_path(gpu, path);
        return sd_bus_reply_method_return(msg, "o", path);
}

static int method_refresh(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        BusOptions options;
        int r;

        r = bus_options_read(msg, &options, error);
        if (r < 0)
                return r;
        return bus_request(userdata, msg, REQUEST_REFRESH, NULL, &options, error);
}

static int request_for_ids(
                sd_bus_message *msg, BusConnection *connection, RequestKind kind, sd_bus_error *error) {
        CLEANUP(free_ptr) const char **ids = NULL;
        BusOptions options;
        int r;

        r = bus_ids_read(msg, &ids, error);
        if (r >= 0)
                r = bus_options_read(msg, &options, error);
        if (r < 0)
                return r;
        return bus_request(connection, msg, kind, (char *const *) ids, &options, error);
}

static int method_reset(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_ids(msg, userdata, REQUEST_RESET, error);
}

static int method_verify(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_ids(msg, userdata, REQUEST_VERIFY, error);
}

static int method_list_processes(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_ids(msg, userdata, REQUEST_PROCESSES, error);
}

static int request_for_tenant(
                sd_bus_message *msg, BusConnection *connection, RequestKind kind, sd_bus_error *error) {
        CLEANUP(free_ptr) const char **ids = NULL;
        BusOptions options;
        const char *tenant;
        int r;

        r = sd_bus_message_read(msg, "s", &tenant);
        if (r < 0)
                return r;
        r = bus_tenant_check(tenant, error);
        if (r >= 0)
                r = bus_ids_read(msg, &ids, error);
        if (r >= 0)
                r = bus_options_read(msg, &options, error);
        if (r < 0)
                return r;

        if (options.tenant && !streq(options.tenant, tenant))
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_INVALID_ARGS, "Option tenant names another tenant");
        options.tenant = tenant;
        return bus_request(connection, msg, kind, (char *const *) ids, &options, error);
}

static int method_acquire(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_tenant(msg, userdata, REQUEST_ACQUIRE, error);
}

static int method_release(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return request_for_tenant(msg, userdata, REQUEST_RELEASE, error);
}

static int method_forget(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        BusConnection *connection = userdata;
        Manager *manager = connection->api->manager;
        BusOptions options;
        const char *id;
        int r;

        r = sd_bus_message_read(msg, "s", &id);
        if (r >= 0)
                r = bus_options_read(msg, &options, error);
        if (r >= 0)
                r = bus_options_check(&options, 0, error);
        if (r < 0)
                return r;

        r = bus_authorize(connection, msg, ACTION_MANAGE, &call, error);
        if (r <= 0)
                return r < 0 ? r : 1; /* 0: a question is out; the message comes round again */

        r = manager_forget(manager, id, now_read());
        if (r < 0)
                return bus_error_from_manager(error, manager, r);
        return sd_bus_reply_method_return(msg, NULL);
}

/* *ret_from belongs to the message; NULL where it is not given, else as long as the ids. */
static int read_partition(sd_bus_message *msg, const char ***ret_ids, const uint32_t **ret_from,
                GpuPartition *ret, sd_bus_error *error) {
        GpuPartition partition = {};
        BusOptions options;
        const char *name;
        int r;

        r = bus_ids_read(msg, ret_ids, error);
        if (r >= 0)
                r = sd_bus_message_read(msg, "us", &partition.id, &name);
        if (r >= 0)
                r = bus_options_read(msg, &options, error);
        if (r >= 0)
                r = bus_options_check(&options, BUS_OPTION_CLIQUE | BUS_OPTION_FROM, error);
        if (r < 0)
                return r;
        if (!partition_name_is_valid(name))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "A partition's name is up to 63 printable characters without spaces");
        if (options.from && options.n_from != strv_length((char *const *) *ret_ids))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "Option from has to have a number for each GPU");

        *ret_from = options.from;
        partition.clique = options.clique;
        (void) snprintf(partition.name, sizeof partition.name, "%s", name);
        *ret = partition;
        return 0;
}

static int method_set_partition(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        CLEANUP(free_ptr) const char **ids = NULL;
        BusConnection *connection = userdata;
        Manager *manager = connection->api->manager;
        const uint32_t *from = NULL;
        GpuPartition partition;
        int r;

        r = read_partition(msg, &ids, &from, &partition, error);
        if (r < 0)
                return r;

        r = bus_authorize(connection, msg, ACTION_SET_PARTITION, &call, error);
        if (r <= 0)
                return r < 0 ? r : 1; /* 0: a question is out; the message comes round again */

        r = manager_set_partition(manager, (char *const *) ids, from, &partition, now_read());
        if (r < 0)
                return bus_error_from_manager(error, manager, r);
        return sd_bus_reply_method_return(msg, NULL);
}

static int method_set_maintenance(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        BusConnection *connection = userdata;
        Manager *manager = connection->api->manager;
        const char *reason;
        int on, r;

        r = sd_bus_message_read(msg, "bs", &on, &reason);
        if (r < 0)
                return r;
        if (strlen(reason) >= GPU_REASON_SIZE)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "The reason is too long");

        r = bus_authorize(connection, msg, ACTION_MANAGE, &call, error);
        if (r <= 0)
                return r < 0 ? r : 1; /* 0: a question is out; the message comes round again */

        r = manager_set_maintenance(manager, on, reason, now_read());
        if (r < 0)
                return bus_error_from_manager(error, manager, r);
        return sd_bus_reply_method_return(msg, NULL);
}

static int method_reload(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        BusConnection *connection = userdata;
        BusApi *api = connection->api;
        int r;

        r = bus_authorize(connection, msg, ACTION_MANAGE, &call, error);
        if (r <= 0)
                return r < 0 ? r : 1; /* 0: a question is out; the message comes round again */

        r = api->reload(api->reload_userdata, &message);
        if (r < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_FAILED, "The old configuration is kept: %s",
                                message ? message : strerror(-r));
        return sd_bus_reply_method_return(msg, NULL);
}

/* A clique, or a partition: what its GPUs have in common. */
typedef struct Group {
        const char *name;
        uint32_t id;
        const Gpu *gpu;
} Group;

static int group_compare_key(const Group *a, const Group *b) {
        if (a->id != b->id)
                return a->id < b->id ? -1 : 1;
        return strcmp(a->name, b->name);
}

static int group_compare(const void *a, const void *b) {
        const Group *x = a, *y = b;
        int order = group_compare_key(x, y);

        if (order != 0)
                return order;
        return (x->gpu->sample.index > y->gpu->sample.index) - (x->gpu->sample.index < y->gpu->sample.index);
}

static bool group_by_clique(const Gpu *gpu, Group *ret) {
        if (!bus_gpu_clique(gpu, &ret->name, &ret->id))
                return false;
        ret->gpu = gpu;
        return true;
}

static bool group_by_partition(const Gpu *gpu, Group *ret) {
        uint32_t partition = gpu->sample.partition;

        if (partition == UNKNOWN_U32 || partition == PARTITION_NONE)
                return false;
        *ret = (Group){ .name = gpu->sample.partition_name, .id = partition, .gpu = gpu };
        return true;
}

/* One entry of the reply: the key, in the order of the two signatures, and the GPUs from `groups` on. */
static int append_group(
                sd_bus_message *reply, const Group *groups, size_t n, bool by_clique, size_t *ret_taken) {
        char path[BUS_GPU_PATH_SIZE];
        size_t i = 0;
        int r;

        r = sd_bus_message_open_container(reply, 'r', by_clique ? "suao" : "usao");
        if (r >= 0)
                r = by_clique ? sd_bus_message_append(reply, "su", groups->name, groups->id)
                              : sd_bus_message_append(reply, "us", groups->id, groups->name);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "o");
        for (; r >= 0 && i < n && group_compare_key(&groups[i], &groups[0]) == 0; i++) {
                bus_gpu_path(groups[i].gpu, path);
                r = sd_bus_message_append_basic(reply, 'o', path);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r < 0)
                return r;

        *ret_taken = i;
        return 0;
}

static int reply_groups(sd_bus_message *msg, const BusConnection *connection, bool by_clique) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) Group *groups = NULL;
        size_t n_gpus, n = 0, taken = 0;
        Gpu *const *gpus = manager_gpus(connection->api->manager, &n_gpus);
        int r;

        groups = calloc(n_gpus + 1, sizeof *groups);
        if (!groups)
                return -ENOMEM;
        for (size_t i = 0; i < n_gpus; i++)
                if (by_clique ? group_by_clique(gpus[i], &groups[n])
                              : group_by_partition(gpus[i], &groups[n]))
                        n++;
        qsort(groups, n, sizeof *groups, group_compare);

        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', by_clique ? "(suao)" : "(usao)");
        for (size_t i = 0; r >= 0 && i < n; i += taken)
                r = append_group(reply, groups + i, n - i, by_clique, &taken);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_list_cliques(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return reply_groups(msg, userdata, true);
}

static int method_list_partitions(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return reply_groups(msg, userdata, false);
}

#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define EVERYONE SD_BUS_VTABLE_UNPRIVILEGED

const sd_bus_vtable bus_manager_vtable[] = { SD_BUS_VTABLE_START(0),

        SD_BUS_PROPERTY("Version", "s", property_get_version, 0, CONSTANT),
        SD_BUS_PROPERTY("NodeName", "s", property_get_node_name, 0, CONSTANT),
        SD_BUS_PROPERTY("DriverVersion", "s", property_get_driver, 0, CHANGES),
        SD_BUS_PROPERTY("DriverState", "s", property_get_driver, 0, CHANGES),
        SD_BUS_PROPERTY("DriverError", "s", property_get_driver, 0, CHANGES),
        SD_BUS_PROPERTY("HandoverReset", "b", property_get_switch, 0, CHANGES),
        SD_BUS_PROPERTY("Maintenance", "b", property_get_switch, 0, CHANGES),
        SD_BUS_PROPERTY("MaintenanceReason", "s", property_get_maintenance_reason, 0, CHANGES),
        SD_BUS_PROPERTY("Mode", "s", property_get_mode, 0, CHANGES),
        SD_BUS_PROPERTY("ResetsPending", "u", property_get_count, 0, CHANGES),
        SD_BUS_PROPERTY("Quarantined", "u", property_get_count, 0, CHANGES),

        /* Public data, as the properties are. */
        SD_BUS_METHOD_WITH_ARGS("ListGPUs", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(usso)", gpus), method_list_gpus,
                        EVERYONE),
        SD_BUS_METHOD_WITH_ARGS(
                        "GetGPU", SD_BUS_ARGS("s", id), SD_BUS_RESULT("o", gpu), method_get_gpu, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("ListCliques", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(suao)", cliques),
                        method_list_cliques, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("ListPartitions", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(usao)", partitions),
                        method_list_partitions, EVERYONE),

        /* These call bus_authorize(). */
        SD_BUS_METHOD_WITH_ARGS("Refresh", SD_BUS_ARGS("a{sv}", options), SD_BUS_NO_RESULT, method_refresh,
                        EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Reset", SD_BUS_ARGS("as", gpus, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_reset, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Acquire", SD_BUS_ARGS("s", tenant, "as", gpus, "a{sv}", options),
                        SD_BUS_NO_RESULT, method_acquire, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("s", tenant, "as", gpus, "a{sv}", options),
                        SD_BUS_NO_RESULT, method_release, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Verify", SD_BUS_ARGS("as", gpus, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_verify, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("ListProcesses", SD_BUS_ARGS("as", gpus, "a{sv}", options),
                        SD_BUS_RESULT("a(ouussst)", processes), method_list_processes, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Forget", SD_BUS_ARGS("s", gpu, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_forget, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("SetPartition",
                        SD_BUS_ARGS("as", gpus, "u", id, "s", name, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_set_partition, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("SetMaintenance", SD_BUS_ARGS("b", on, "s", reason), SD_BUS_NO_RESULT,
                        method_set_maintenance, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reload, EVERYONE),

        SD_BUS_SIGNAL_WITH_ARGS("ResetStarted", SD_BUS_ARGS("o", gpu, "s", tenant), 0),
        SD_BUS_SIGNAL_WITH_ARGS(
                        "ResetFinished", SD_BUS_ARGS("o", gpu, "s", tenant, "s", result, "s", detail), 0),

        SD_BUS_VTABLE_END };
