/* SPDX-License-Identifier: MIT */
/* /run/gpuagent/private: the hooks' door. Root's connections get the same objects as on the bus, without a
 * bus between. */
#pragma once

#include "dbus/bus-api.h"

typedef struct PrivateSocket PrivateSocket;

/* Listens at `path`, in the place of a socket that was there. 0 and *ret · -errno. */
int private_socket_new(BusApi *api, const char *path, PrivateSocket **ret);

/* Stops listening and takes the socket away; its connections belong to the BusApi. Returns NULL. */
PrivateSocket* private_socket_free(PrivateSocket *private_socket);

DEFINE_CLEANUP(PrivateSocket, private_socket_free_ptr, private_socket_free)
