/* SPDX-License-Identifier: MIT */
#include "dbus/system-bus.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/clock.h"
#include "agent/log/log.h"
#include "dbus/bus-util.h"
#include "dbus/unit-watch.h"

/* sd-bus has no deadline of its own while a connection authenticates. */
#define CONNECT_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define RETRY_USEC           (2 * USEC_PER_SEC)

/* RequestName's answers that mean success (D-Bus specification, org.freedesktop.DBus.RequestName). */
#define NAME_IS_OURS  1U
#define NAME_WAS_OURS 4U

typedef enum SystemBusState {
        SYSTEM_BUS_WAITING,    /* for the next attempt */
        SYSTEM_BUS_CONNECTING, /* up to the answer about the name */
        SYSTEM_BUS_RUNNING,
} SystemBusState;

struct SystemBus {
        BusApi *api;
        SystemBusState state;
        BusConnection *connection;
        sd_bus_slot *name_request;
        sd_event_source *timer; /* the deadline while connecting, the retry while waiting */
        bool complained;        /* the trouble is in the log once, not every two seconds */
        void (*settled)(void *userdata);
        void *userdata;
};

static int set_timer(SystemBus *system_bus, usec_t span) {
        int r;

        r = sd_event_source_set_time_relative(system_bus->timer, span);
        return r < 0 ? r : sd_event_source_set_enabled(system_bus->timer, SD_EVENT_ONESHOT);
}

static void tell_settled(SystemBus *system_bus) {
        void (*settled)(void *) = system_bus->settled;

        system_bus->settled = NULL;
        if (settled)
                settled(system_bus->userdata);
}

static void attempt_failed(SystemBus *system_bus, int error, const char *what) {
        system_bus->name_request = sd_bus_slot_unref(system_bus->name_request);
        if (system_bus->connection)
                bus_connection_drop(system_bus->connection);
        system_bus->connection = NULL;
        system_bus->state = SYSTEM_BUS_WAITING;

        if (!system_bus->complained)
                (void) log_errno(error, "%s; trying again", what);
        system_bus->complained = true;
        (void) set_timer(system_bus, RETRY_USEC); /* cannot fail for a source that lives */
        tell_settled(system_bus);
}

static void on_lost(void *userdata) {
        SystemBus *system_bus = userdata;

        attempt_failed(system_bus, -ENOTCONN, "The system bus is gone");
}

static int on_name(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        SystemBus *system_bus = userdata;
        uint32_t answer = 0;

        if (sd_bus_message_is_method_error(msg, NULL)) {
                attempt_failed(system_bus, sd_bus_message_get_errno(msg),
                                "The bus refuses the name " BUS_NAME);
                return 0;
        }
        if (sd_bus_message_read(msg, "u", &answer) <= 0 ||
                        (answer != NAME_IS_OURS && answer != NAME_WAS_OURS)) {
                attempt_failed(system_bus, -EEXIST, "Somebody else has the name " BUS_NAME);
                return 0;
        }

        unit_watch_start(system_bus->connection->bus, system_bus->api->manager);
        system_bus->name_request = sd_bus_slot_unref(system_bus->name_request);
        (void) sd_event_source_set_enabled(system_bus->timer, SD_EVENT_OFF);
        if (system_bus->complained)
                log_message(LOG_INFO, "On the system bus again");
        system_bus->complained = false;
        system_bus->state = SYSTEM_BUS_RUNNING;
        tell_settled(system_bus);
        return 0;
}

static int connect_bus(SystemBus *system_bus) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int r;

        r = sd_bus_open_system_with_description(&bus, BUS_NAME);
        if (r < 0)
                return r;
        r = bus_api_add_connection(
                        system_bus->api, &bus, false, on_lost, system_bus, &system_bus->connection);
        if (r < 0)
                return r;
        /* Sent after the objects are there: whoever sees the name finds them. */
        return sd_bus_request_name_async(system_bus->connection->bus, &system_bus->name_request, BUS_NAME, 0,
                        on_name, system_bus);
}

static void attempt(SystemBus *system_bus) {
        int r;

        system_bus->state = SYSTEM_BUS_CONNECTING;
        r = set_timer(system_bus, CONNECT_TIMEOUT_USEC);
        if (r >= 0)
                r = connect_bus(system_bus);
        if (r < 0)
                attempt_failed(system_bus, r, "Cannot connect to the system bus");
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        SystemBus *system_bus = userdata;

        if (system_bus->state == SYSTEM_BUS_CONNECTING)
                attempt_failed(system_bus, -ETIMEDOUT, "The system bus does not answer");
        else
                attempt(system_bus);
        return 0;
}

int system_bus_new(BusApi *api, void (*settled)(void *userdata), void *userdata, SystemBus **ret) {
        CLEANUP(system_bus_free_ptr) SystemBus *system_bus = NULL;
        int r;

        system_bus = calloc(1, sizeof *system_bus);
        if (!system_bus)
                return -ENOMEM;
        *system_bus = (SystemBus){ .api = api, .settled = settled, .userdata = userdata };

        /* The first attempt comes from the loop, so that `settled` never runs before this returns. */
        r = sd_event_add_time_relative(api->event, &system_bus->timer, CLOCK_MONOTONIC, 0,
                        10 * USEC_PER_MSEC, on_timer, system_bus);
        if (r < 0)
                return r;

        *ret = take_ptr(&system_bus);
        return 0;
}

SystemBus* system_bus_free(SystemBus *system_bus) {
        if (!system_bus)
                return NULL;
        (void) sd_bus_slot_unref(system_bus->name_request);
        (void) sd_event_source_disable_unref(system_bus->timer);
        if (system_bus->connection)
                bus_connection_drop(system_bus->connection);
        free(system_bus);
        return NULL;
}
