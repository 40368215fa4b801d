/* SPDX-License-Identifier: MIT */
/* The methods that ask the manager for work, of the tray and of one GPU alike. */
#pragma once

#include "dbus/bus-api.h"
#include "dbus/bus-options.h"

/* What a handler does once its arguments are read: asks whether the caller may, asks the manager, and
 * answers when the work has ended (or, with `wait` false, is recorded). `ids` as for manager_request(). What
 * a handler returns. */
int bus_request(BusConnection *connection, sd_bus_message *msg, RequestKind kind, char *const *ids,
                const BusOptions *options, sd_bus_error *error);
