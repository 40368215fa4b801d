/* SPDX-License-Identifier: MIT */
/* Tells every connection what the core has committed. */
#include <errno.h>

#include "agent/base/cleanup.h"
#include "agent/log/log.h"
#include "dbus/bus-objects.h"

/* A peer that lets so many messages pile up has stopped reading. */
#define QUEUED_MESSAGES_MAX 8192U

#define NAMES_MAX 48

typedef struct Names {
        const char *names[NAMES_MAX + 1];
        size_t n;
} Names;

typedef struct ChangeNames {
        uint32_t change;
        const char *names[10];
} ChangeNames;

/* Every property that is marked EMITS_CHANGE, under what makes it change. */
static const ChangeNames gpu_changes_table[] = {
        { GPU_CHANGE_IDENTITY, { "Index", "Minor", "MIG" } },
        { GPU_CHANGE_STATE,
                        { "State", "StateReason", "StateTimestamp", "Tenant", "TenantPresence",
                                        "LastTenant" } },
        { GPU_CHANGE_FABRIC,
                        { "Partition", "PartitionName", "ExpectedCliqueID", "CliqueID", "ClusterUUID",
                                        "FabricState", "FabricStatus", "FabricHealth" } },
        { GPU_CHANGE_LINKS, { "NVLinks", "NVLinksActive", "Links" } },
        { GPU_CHANGE_HEALTH, { "Health", "RecoveryAction" } },
        { GPU_CHANGE_FABRIC | GPU_CHANGE_HEALTH, { "ResetPending" } },
        { GPU_CHANGE_RESET,
                        { "LastResetTimestamp", "LastResetResult", "LastResetDetail",
                                        "LastResetDurationUSec", "LastResetSteps", "ResetCount" } },
        { GPU_CHANGE_XID, { "LastXid" } },
};

static const ChangeNames manager_changes_table[] = {
        { MANAGER_CHANGE_DRIVER, { "DriverState", "DriverError", "DriverVersion" } },
        { MANAGER_CHANGE_COUNTS, { "ResetsPending", "Quarantined" } },
        { MANAGER_CHANGE_CONFIG, { "HandoverReset", "Mode" } },
        { MANAGER_CHANGE_MAINTENANCE, { "Maintenance", "MaintenanceReason" } },
};

static void names_collect(const ChangeNames *table, size_t n, uint32_t changes, Names *ret) {
        ret->n = 0;
        for (size_t i = 0; i < n; i++) {
                if (!(table[i].change & changes))
                        continue;
                for (size_t j = 0; j < ELEMENTSOF(table[i].names) && table[i].names[j] && ret->n < NAMES_MAX;
                                j++)
                        ret->names[ret->n++] = table[i].names[j];
        }
        ret->names[ret->n] = NULL;
}

/* A connection that is being set up or has ended hears nothing; those who come later read the properties. */
static bool connection_listens(BusConnection *connection) {
        uint64_t queued = 0;

        if (connection->dead || connection->stalled || sd_bus_is_ready(connection->bus) <= 0)
                return false;
        if (connection->trusted && sd_bus_get_n_queued_write(connection->bus, &queued) >= 0 &&
                        queued > QUEUED_MESSAGES_MAX) {
                bus_connection_stalled(connection);
                return false;
        }
        return true;
}

static void check_sent(int r) {
        if (r < 0 && r != -ENOTCONN)
                (void) log_errno(r, "Cannot send a signal");
}

static void emit_changes(BusApi *api, const char *path, const char *interface, Names *names) {
        if (names->n == 0)
                return;
        for (BusConnection *connection = api->connections; connection; connection = connection->next)
                if (connection_listens(connection))
                        check_sent(sd_bus_emit_properties_changed_strv(
                                        connection->bus, path, interface, (char **) names->names));
}

static void on_gpu_added(Gpu *gpu, void *userdata) {
        BusApi *api = userdata;
        char path[BUS_GPU_PATH_SIZE];

        bus_gpu_path(gpu, path);
        for (BusConnection *connection = api->connections; connection; connection = connection->next)
                if (connection_listens(connection))
                        check_sent(sd_bus_emit_object_added(connection->bus, path));
}

static void on_gpu_removed(Gpu *gpu, void *userdata) {
        BusApi *api = userdata;
        char path[BUS_GPU_PATH_SIZE];

        /* It is not found any more, so that sd_bus_emit_object_removed() could not tell what it had. */
        bus_gpu_path(gpu, path);
        for (BusConnection *connection = api->connections; connection; connection = connection->next)
                if (connection_listens(connection))
                        check_sent(sd_bus_emit_interfaces_removed(connection->bus, path, BUS_GPU_INTERFACE,
                                        "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Peer",
                                        "org.freedesktop.DBus.Properties", NULL));
}

static void on_gpu_changed(Gpu *gpu, uint32_t changes, void *userdata) {
        BusApi *api = userdata;
        char path[BUS_GPU_PATH_SIZE];
        Names names;

        bus_gpu_path(gpu, path);
        names_collect(gpu_changes_table, ELEMENTSOF(gpu_changes_table), changes, &names);
        emit_changes(api, path, BUS_GPU_INTERFACE, &names);
}

static void on_manager_changed(uint32_t changes, void *userdata) {
        Names names;

        names_collect(manager_changes_table, ELEMENTSOF(manager_changes_table), changes, &names);
        emit_changes(userdata, BUS_PATH, BUS_MANAGER_INTERFACE, &names);
}

static void on_reset_started(Gpu *gpu, const char *tenant, void *userdata) {
        BusApi *api = userdata;
        char path[BUS_GPU_PATH_SIZE];

        bus_gpu_path(gpu, path);
        for (BusConnection *connection = api->connections; connection; connection = connection->next)
                if (connection_listens(connection))
                        check_sent(sd_bus_emit_signal(connection->bus, BUS_PATH, BUS_MANAGER_INTERFACE,
                                        "ResetStarted", "os", path,
                                        bus_connection_hides_names(connection) ? "" : tenant));
}

static void on_reset_finished(
                Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata) {
        BusApi *api = userdata;
        char path[BUS_GPU_PATH_SIZE];

        bus_gpu_path(gpu, path);
        for (BusConnection *connection = api->connections; connection; connection = connection->next)
                if (connection_listens(connection))
                        check_sent(sd_bus_emit_signal(connection->bus, BUS_PATH, BUS_MANAGER_INTERFACE,
                                        "ResetFinished", "osss", path,
                                        bus_connection_hides_names(connection) ? "" : tenant,
                                        outcome_to_string(outcome),
                                        bus_gpu_public_detail(
                                                        connection, gpu, outcome, detail ? detail : "")));
}

int bus_observer_add(BusApi *api) {
        const ManagerObserver observer = {
                .on_gpu_added = on_gpu_added,
                .on_gpu_removed = on_gpu_removed,
                .on_gpu_changed = on_gpu_changed,
                .on_manager_changed = on_manager_changed,
                .on_reset_started = on_reset_started,
                .on_reset_finished = on_reset_finished,
                .userdata = api,
        };

        return manager_add_observer(api->manager, &observer);
}
