/* SPDX-License-Identifier: MIT */
/* The connection to the system bus and the name on it. Both come back by themselves when the bus was
 * away. */
#pragma once

#include "dbus/bus-api.h"

typedef struct SystemBus SystemBus;

/* Starts to connect. `settled` is told once, when the first attempt has ended: the name is ours, or there is
 * no bus for now and the private socket is what there is. 0 and *ret · -errno. */
int system_bus_new(BusApi *api, void (*settled)(void *userdata), void *userdata, SystemBus **ret);

/* To be called before bus_api_free(). Returns NULL. */
SystemBus* system_bus_free(SystemBus *system_bus);

DEFINE_CLEANUP(SystemBus, system_bus_free_ptr, system_bus_free)
