/* SPDX-License-Identifier: MIT */
#include "cli/gpu.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/text.h"

typedef struct Property {
        const char *name;
        const char *type; /* D-Bus signature; "s" is a const char *, "b" a bool, the rest their C types */
        size_t offset;
} Property;

#define FIELD(property, signature, Type, field) \
        { property, signature, offsetof(Type, field) }

static const Property manager_properties[] = {
        FIELD("Version", "s", Tray, version),
        FIELD("NodeName", "s", Tray, node_name),
        FIELD("DriverVersion", "s", Tray, driver_version),
        FIELD("DriverState", "s", Tray, driver_state),
        FIELD("DriverError", "s", Tray, driver_error),
        FIELD("HandoverReset", "b", Tray, handover_reset),
        FIELD("Maintenance", "b", Tray, maintenance),
        FIELD("MaintenanceReason", "s", Tray, maintenance_reason),
        FIELD("Mode", "s", Tray, mode),
        FIELD("ResetsPending", "u", Tray, resets_pending),
        FIELD("Quarantined", "u", Tray, quarantined),
};

/* In the order of the interface's description, which is the likely one on the bus too: see
 * property_find(). */
static const Property gpu_properties[] = {
        FIELD("UUID", "s", GpuView, uuid),
        FIELD("Name", "s", GpuView, name),
        FIELD("PCIBusID", "s", GpuView, bus_id),
        FIELD("Serial", "s", GpuView, serial),
        FIELD("Index", "u", GpuView, index),
        FIELD("Minor", "u", GpuView, minor),
        FIELD("State", "s", GpuView, state),
        FIELD("StateReason", "s", GpuView, state_reason),
        FIELD("StateTimestamp", "t", GpuView, state_realtime_usec),
        FIELD("Tenant", "s", GpuView, tenant),
        FIELD("TenantPresence", "s", GpuView, tenant_presence),
        FIELD("LastTenant", "s", GpuView, last_tenant),
        FIELD("Partition", "u", GpuView, partition),
        FIELD("PartitionName", "s", GpuView, partition_name),
        FIELD("ExpectedCliqueID", "u", GpuView, expected_clique_id),
        FIELD("CliqueID", "u", GpuView, clique_id),
        FIELD("ClusterUUID", "s", GpuView, cluster_uuid),
        FIELD("FabricState", "s", GpuView, fabric_state),
        FIELD("FabricStatus", "s", GpuView, fabric_status),
        FIELD("FabricHealth", "s", GpuView, fabric_health),
        FIELD("NVLinks", "u", GpuView, n_links),
        FIELD("NVLinksActive", "u", GpuView, n_links_active),
        FIELD("Links", "a(ubs)", GpuView, links),
        FIELD("Health", "s", GpuView, health),
        FIELD("ResetPending", "b", GpuView, reset_pending),
        FIELD("RecoveryAction", "s", GpuView, recovery_action),
        FIELD("LastResetTimestamp", "t", GpuView, last_reset_realtime_usec),
        FIELD("LastResetResult", "s", GpuView, last_reset_result),
        FIELD("LastResetDetail", "s", GpuView, last_reset_detail),
        FIELD("LastResetDurationUSec", "t", GpuView, last_reset_duration_usec),
        FIELD("LastResetSteps", "a(st)", GpuView, steps),
        FIELD("ResetCount", "t", GpuView, reset_count),
        FIELD("LastXid", "u", GpuView, last_xid),
        FIELD("MIG", "b", GpuView, mig),
        FIELD("MemoryTotal", "t", GpuView, memory_total),
        FIELD("MemoryUsed", "t", GpuView, memory_used),
        FIELD("Utilization", "u", GpuView, utilization),
        FIELD("Power", "u", GpuView, power_mw),
        FIELD("Temperature", "i", GpuView, temperature),
};

static int steps_read(sd_bus_message *message, GpuView *gpu) {
        const char *name;
        uint64_t usec;
        int r;

        gpu->n_steps = 0;
        r = sd_bus_message_enter_container(message, 'a', "(st)");
        while (r >= 0) {
                r = sd_bus_message_read(message, "(st)", &name, &usec);
                if (r <= 0)
                        break;
                if (gpu->n_steps < GPU_VIEW_STEPS_MAX)
                        gpu->steps[gpu->n_steps++] = (GpuViewStep){ name, usec };
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int links_read(sd_bus_message *message, GpuView *gpu) {
        GpuViewLink link;
        int r, active;

        gpu->n_links_known = 0;
        r = sd_bus_message_enter_container(message, 'a', "(ubs)");
        while (r >= 0) {
                r = sd_bus_message_read(message, "(ubs)", &link.link, &active, &link.remote);
                if (r <= 0)
                        break;
                link.active = active != 0;
                if (gpu->n_links_known < GPU_VIEW_LINKS_MAX)
                        gpu->links[gpu->n_links_known++] = link;
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int value_read(sd_bus_message *message, const Property *property, void *target) {
        void *field = (char *) target + property->offset;
        int r, value;

        r = sd_bus_message_enter_container(message, 'v', property->type);
        if (r < 0)
                return r;
        if (streq(property->type, "a(st)")) {
                r = steps_read(message, target);
        } else if (streq(property->type, "a(ubs)")) {
                r = links_read(message, target);
        } else if (property->type[0] == 'b') {
                r = sd_bus_message_read_basic(message, 'b', &value);
                if (r >= 0)
                        *(bool *) field = value != 0;
        } else {
                r = sd_bus_message_read_basic(message, property->type[0], field);
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

/* Looks first where the last one was found: with 1,024 GPUs there are many to look up. */
static const Property* property_find(const Property *table, size_t n, const char *name, size_t *hint) {
        for (size_t i = 0; i < n; i++) {
                const Property *property = table + (*hint + i) % n;

                if (streq(property->name, name)) {
                        *hint = (size_t) (property - table) + 1;
                        return property;
                }
        }
        return NULL;
}

static int properties_read(sd_bus_message *message, const Property *table, size_t n, void *target) {
        size_t hint = 0;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                const Property *property;
                const char *name, *contents;
                char type;

                r = sd_bus_message_read_basic(message, 's', &name);
                if (r >= 0)
                        r = sd_bus_message_peek_type(message, &type, &contents);
                if (r < 0)
                        return r;

                property = property_find(table, n, name, &hint);
                if (property && streq(property->type, contents))
                        r = value_read(message, property, target);
                else
                        r = sd_bus_message_skip(message, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int tray_read_properties(sd_bus_message *message, Tray *tray) {
        return properties_read(message, manager_properties, ELEMENTSOF(manager_properties), tray);
}

int gpu_view_read_properties(sd_bus_message *message, GpuView *gpu) {
        return properties_read(message, gpu_properties, ELEMENTSOF(gpu_properties), gpu);
}

/* Strings empty, numbers unknown: for an agent that has fewer properties. */
static void properties_init(const Property *table, size_t n, void *target) {
        for (size_t i = 0; i < n; i++) {
                void *field = (char *) target + table[i].offset;

                switch (table[i].type[0]) {
                case 's': *(const char **) field = ""; break;
                case 'u': *(uint32_t *) field = UNKNOWN_U32; break;
                case 't': *(uint64_t *) field = UNKNOWN_U64; break;
                case 'i': *(int32_t *) field = UNKNOWN_I32; break;
                }
        }
}

static void tray_init(Tray *tray) {
        *tray = (Tray){};
        properties_init(manager_properties, ELEMENTSOF(manager_properties), tray);
}

static void gpu_view_init(GpuView *gpu, const char *path) {
        *gpu = (GpuView){ .path = path };
        properties_init(gpu_properties, ELEMENTSOF(gpu_properties), gpu);
}

void tray_done(Tray *tray) {
        free(tray->gpus);
        (void) sd_bus_message_unref(tray->properties);
        (void) sd_bus_message_unref(tray->objects);
        *tray = (Tray){};
}

static int tray_append(Tray *tray, const GpuView *gpu) {
        int r;

        r = array_reserve(&tray->gpus, tray->n_gpus, 1);
        if (r < 0)
                return r;
        tray->gpus[tray->n_gpus++] = *gpu;
        return 0;
}

/* One a{sa{sv}}: the interfaces of an object. 1: it is a GPU, *ret has it · 0: it is not · negative
 * errno. */
static int object_read(sd_bus_message *message, const char *path, GpuView *ret) {
        bool found = false;
        int r;

        gpu_view_init(ret, path);
        r = sd_bus_message_enter_container(message, 'a', "{sa{sv}}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "sa{sv}")) > 0) {
                const char *interface;

                r = sd_bus_message_read_basic(message, 's', &interface);
                if (r < 0)
                        return r;
                if (streq(interface, GPU_INTERFACE)) {
                        found = true;
                        r = gpu_view_read_properties(message, ret);
                } else {
                        r = sd_bus_message_skip(message, "a{sv}");
                }
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(message);
        return r < 0 ? r : found;
}

static int compare_gpus(const void *a, const void *b) {
        const GpuView *x = a, *y = b;

        if (x->index != y->index)
                return x->index < y->index ? -1 : 1;
        return strcmp(x->uuid, y->uuid);
}

static int objects_read(Tray *tray) {
        sd_bus_message *message = tray->objects;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{oa{sa{sv}}}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "oa{sa{sv}}")) > 0) {
                const char *path;
                GpuView gpu;

                r = sd_bus_message_read_basic(message, 'o', &path);
                if (r >= 0)
                        r = object_read(message, path, &gpu);
                if (r > 0)
                        r = tray_append(tray, &gpu);
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;

        if (tray->n_gpus > 0)
                qsort(tray->gpus, tray->n_gpus, sizeof *tray->gpus, compare_gpus);
        return 0;
}

static int start_get_all(Client *client, Call *call, Failure *failure) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = client_message_new(client, MANAGER_PATH, "org.freedesktop.DBus.Properties", "GetAll", &message);
        if (r >= 0)
                r = sd_bus_message_append(message, "s", MANAGER_INTERFACE);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd");
        return client_start(client, message, 0, call, failure);
}

static int start_get_objects(Client *client, Call *call, Failure *failure) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = client_message_new(client, MANAGER_PATH, "org.freedesktop.DBus.ObjectManager",
                        "GetManagedObjects", &message);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd");
        return client_start(client, message, 0, call, failure);
}

void tray_question_done(TrayQuestion *question) {
        call_done(&question->properties);
        call_done(&question->objects);
}

int tray_ask(Client *client, TrayQuestion *question, Failure *failure) {
        int r;

        r = start_get_all(client, &question->properties, failure);
        return r < 0 ? r : start_get_objects(client, &question->objects, failure);
}

int tray_answer(Client *client, TrayQuestion *question, Tray *ret, Failure *failure) {
        CLEANUP(tray_done) Tray tray;
        int r;

        tray_init(&tray);
        r = client_finish(client, &question->properties, &tray.properties, failure);
        if (r >= 0)
                r = client_finish(client, &question->objects, &tray.objects, failure);
        if (r < 0)
                return r;

        r = tray_read_properties(tray.properties, &tray);
        if (r >= 0)
                r = objects_read(&tray);
        if (r < 0)
                return failure_errno(failure, r, "cannot read what gpuagentd says");

        *ret = tray;
        tray = (Tray){};
        return 0;
}

int tray_read(Client *client, Tray *ret, Failure *failure) {
        CLEANUP(tray_question_done) TrayQuestion question = {};
        int r;

        r = tray_ask(client, &question, failure);
        return r < 0 ? r : tray_answer(client, &question, ret, failure);
}

const GpuView* tray_gpu_by_path(const Tray *tray, const char *path) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (streq(tray->gpus[i].path, path))
                        return &tray->gpus[i];
        return NULL;
}

const GpuView* tray_gpu_by_uuid(const Tray *tray, const char *uuid) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (streq(tray->gpus[i].uuid, uuid))
                        return &tray->gpus[i];
        return NULL;
}

void gpu_view_format(const GpuView *gpu, char *ret, size_t size) {
        if (gpu->index == UNKNOWN_U32)
                (void) snprintf(ret, size, "%s", gpu->uuid);
        else
                (void) snprintf(ret, size, "%u", gpu->index);
}
