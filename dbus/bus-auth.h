/* SPDX-License-Identifier: MIT */
/* Who a caller is, by the bus, and whether that is enough, by the configuration and polkit. All of it
 * asynchronous. */
#pragma once

#include "dbus/bus-call.h"

/* Sends the first question; bus_call_decide() brings the end. 0 · -errno. */
int bus_auth_ask(BusCall *call, const char *sender);

/* One journal entry, a few a minute at most: strangers must not use up the quota of the audit lines. */
void bus_auth_log_denial(BusApi *api, uid_t uid, const char *member, const char *action);
