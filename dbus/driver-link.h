/* SPDX-License-Identifier: MIT */
/* The link to gpuagent-driver: the core's vendor operations over a peer connection. It never waits: the
 * driver keeps each request's deadline, and a timer of our own a little later stands in for a driver that
 * does not answer at all. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/core/manager.h"
#include "agent/core/vendor.h"

typedef struct DriverLink DriverLink;

/* 0 and *ret · -EINVAL the path is not absolute, or has other signs than letters, digits and -_/.* ·
 * -ENOMEM. Connects at the first request, and again at the one after a loss
 * or a rest. */
int driver_link_new(sd_event *event, const char *socket_path, DriverLink **ret);

/* A request that is out gets no reply any more. Returns NULL. */
DriverLink* driver_link_free(DriverLink *link);

/* Nobody needs the driver service just now: the connection, which would keep it from stopping, ends unless a
 * request is out. */
void driver_link_rest(DriverLink *link);

/* What manager_new() wants. */
VendorOps driver_link_ops(DriverLink *link);

/* Who gets the replies; to be set before the loop runs. */
void driver_link_set_manager(DriverLink *link, Manager *manager);

DEFINE_CLEANUP(DriverLink, driver_link_free_ptr, driver_link_free)
