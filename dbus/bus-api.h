/* SPDX-License-Identifier: MIT */
/* org.gpuagent1 as a whole: the manager it shows, the connections it is shown on (the system bus, and each
 * peer on the private socket), and the calls that are not answered yet. Every connection gets the same
 * objects. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agent/core/manager.h"

#define BUS_NAME              "org.gpuagent1"
#define BUS_PATH              "/org/gpuagent1"
#define BUS_GPU_PATH          BUS_PATH "/gpu"
#define BUS_MANAGER_INTERFACE "org.gpuagent1.Manager"
#define BUS_GPU_INTERFACE     "org.gpuagent1.GPU"

#define BUS_GPU_PATH_SIZE (sizeof(BUS_GPU_PATH) + 1 + GPU_UUID_SIZE)

typedef struct BusApi BusApi;
typedef struct BusCall BusCall;

/* Reads the configuration anew. 0 · -errno and *ret_message (to be freed; NULL only without memory): the old
 * one is kept. */
typedef int (*BusReload)(void *userdata, char **ret_message);

typedef struct BusConnection {
        BusApi *api;
        sd_bus *bus;
        bool trusted; /* the peer is root: checked when it was accepted */
        bool stalled; /* it does not read; to be dropped from the event loop */
        bool dead;    /* disconnected; freed from the event loop */
        void (*on_lost)(void *userdata);
        void *userdata;
        sd_bus_slot *watch;          /* for callers that leave the bus, while there are calls */
        sd_event_source *first_look; /* at what a peer sent along with its handshake */
        size_t n_calls;
        struct BusConnection *next;
} BusConnection;

struct BusApi {
        sd_event *event;
        Manager *manager;
        char node_name[64];
        gid_t group; /* may do what root may; (gid_t) -1 for none */
        BusReload reload;
        void *reload_userdata;

        BusConnection *connections;
        size_t n_connections;
        BusCall *calls;
        size_t n_calls;
        sd_event_source *reaper; /* frees dead connections outside their callbacks */

        unsigned n_denials_logged; /* within the minute that began then */
        usec_t denials_since_usec;
};

/* 0 and *ret · -errno. `manager` is borrowed. */
int bus_api_new(sd_event *event, Manager *manager, const char *node_name, BusApi **ret);
BusApi* bus_api_free(BusApi *api);

/* Takes over a started connection, attaches it to the loop and puts the objects on it. `on_lost` (may be
 * NULL) is told once when the other side is gone; the connection must not be used from then on. 0 and *ret ·
 * -errno: nothing is kept, and *bus is still the caller's. */
int bus_api_add_connection(BusApi *api, sd_bus **bus, bool trusted, void (*on_lost)(void *userdata),
                void *userdata, BusConnection **ret);

DEFINE_CLEANUP(BusApi, bus_api_free_ptr, bus_api_free)

/* Ends a connection: its pending calls are abandoned. Without calling on_lost. */
void bus_connection_drop(BusConnection *connection);

/* The same, but later: for where calls of this connection may be on the stack. */
void bus_connection_stalled(BusConnection *connection);

/* For handlers and property getters, whose userdata may be the GPU: the connection they run for. */
BusConnection* bus_connection_current(sd_bus *bus);

/* Whether names of processes, users and tenants are kept from properties and signals (access.processes:
 * own). Who reads those on the bus is not known; on the private socket it is root. */
bool bus_connection_hides_names(const BusConnection *connection);

/* The id of the group that access.group names. Asks the system's user database, which may take a while: at
 * load time only. 0 · -ENOENT no such group, -errno; *ret is (gid_t) -1 then, as it is for "". */
int bus_group_resolve(const char *name, gid_t *ret);
