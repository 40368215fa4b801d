/* SPDX-License-Identifier: MIT */
#include "dbus/bus-api.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>

#include "agent/base/text.h"
#include "agent/log/log.h"
#include "dbus/bus-call.h"
#include "dbus/bus-objects.h"

static int on_reap(sd_event_source *source, void *userdata);

int bus_api_new(sd_event *event, Manager *manager, const char *node_name, BusApi **ret) {
        CLEANUP(bus_api_free_ptr) BusApi *api = NULL;
        int r;

        api = calloc(1, sizeof *api);
        if (!api)
                return -ENOMEM;
        api->event = sd_event_ref(event);
        api->manager = manager;
        api->group = (gid_t) -1;
        text_escape(node_name, api->node_name, sizeof api->node_name);

        r = sd_event_add_defer(event, &api->reaper, on_reap, api);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(api->reaper, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = bus_observer_add(api);
        if (r < 0)
                return r;

        *ret = take_ptr(&api);
        return 0;
}

static void connection_free(BusConnection *connection) {
        (void) sd_event_source_disable_unref(connection->first_look);
        (void) sd_bus_slot_unref(connection->watch);
        if (connection->bus) {
                (void) sd_bus_detach_event(connection->bus);
                (void) sd_bus_close_unref(connection->bus); /* never flushed: that could block */
        }
        free(connection);
}

BusApi* bus_api_free(BusApi *api) {
        if (!api)
                return NULL;

        while (api->calls)
                (void) bus_call_free(api->calls);
        while (api->connections) {
                BusConnection *connection = api->connections;

                api->connections = connection->next;
                connection_free(connection);
        }
        (void) sd_event_source_disable_unref(api->reaper);
        (void) sd_event_unref(api->event);
        free(api);
        return NULL;
}

static int on_reap(sd_event_source *source, void *userdata) {
        BusApi *api = userdata;
        BusConnection **link = &api->connections;

        while (*link) {
                BusConnection *connection = *link;

                if (connection->stalled)
                        bus_connection_drop(connection);
                if (!connection->dead) {
                        link = &connection->next;
                        continue;
                }
                *link = connection->next;
                api->n_connections--;
                connection_free(connection);
        }

        return 0;
}

void bus_connection_drop(BusConnection *connection) {
        if (connection->dead)
                return;
        connection->dead = true;
        bus_calls_abandon(connection);
        (void) sd_event_source_set_enabled(connection->api->reaper, SD_EVENT_ONESHOT);
}

void bus_connection_stalled(BusConnection *connection) {
        if (connection->stalled)
                return;
        log_message(LOG_WARNING, "A peer on the private socket does not read: its connection is closed");
        connection->stalled = true;
        (void) sd_event_source_set_enabled(connection->api->reaper, SD_EVENT_ONESHOT);
}

static int on_disconnected(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        BusConnection *connection = userdata;

        if (connection->dead)
                return 0;
        bus_connection_drop(connection);
        if (connection->on_lost)
                connection->on_lost(connection->userdata);
        return 0;
}

static int connection_add_objects(BusConnection *connection) {
        sd_bus *bus = connection->bus;
        int r;

        r = sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local",
                        "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, connection);
        if (r >= 0)
                r = sd_bus_add_object_vtable(
                                bus, NULL, BUS_PATH, BUS_MANAGER_INTERFACE, bus_manager_vtable, connection);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, BUS_GPU_PATH, BUS_GPU_INTERFACE, bus_gpu_vtable,
                                bus_gpu_find, connection);
        if (r >= 0)
                r = sd_bus_add_node_enumerator(bus, NULL, BUS_GPU_PATH, bus_gpu_enumerate, connection);
        if (r >= 0)
                r = sd_bus_add_object_manager(bus, NULL, BUS_PATH);
        if (r >= 0)
                r = bus_log_control_add(connection);
        return r < 0 ? r : 0;
}

int bus_api_add_connection(BusApi *api, sd_bus **bus, bool trusted, void (*on_lost)(void *userdata),
                void *userdata, BusConnection **ret) {
        CLEANUP(free_ptr) BusConnection *connection = NULL;
        int r;

        connection = calloc(1, sizeof *connection);
        if (!connection)
                return -ENOMEM;
        *connection = (BusConnection){
                .api = api,
                .bus = *bus,
                .trusted = trusted,
                .on_lost = on_lost,
                .userdata = userdata,
        };

        r = connection_add_objects(connection);
        if (r >= 0)
                r = sd_bus_set_close_on_exit(*bus, false); /* it would flush, and that could block */
        if (r >= 0)
                r = sd_bus_attach_event(*bus, api->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;

        *bus = NULL;
        connection->next = api->connections;
        api->connections = connection;
        api->n_connections++;
        *ret = take_ptr(&connection);
        return 0;
}

BusConnection* bus_connection_current(sd_bus *bus) {
        /* The slot's own userdata: that of a fallback vtable's handlers is what find() found. */
        return sd_bus_slot_get_userdata(sd_bus_get_current_slot(bus));
}

bool bus_connection_hides_names(const BusConnection *connection) {
        return !connection->trusted &&
                        manager_config(connection->api->manager)->access.processes == PROCESS_ACCESS_OWN;
}

int bus_group_resolve(const char *name, gid_t *ret) {
        const struct group *group;

        *ret = (gid_t) -1;
        if (name[0] == '\0')
                return 0;

        errno = 0;
        group = getgrnam(name);
        if (!group)
                return errno > 0 ? -errno : -ENOENT;
        *ret = group->gr_gid;
        return 0;
}
