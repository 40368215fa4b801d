/* SPDX-License-Identifier: MIT */
/* The end of a pod as systemd tells it: where kubelet and the runtime have systemd make their cgroups, each
 * pod is a slice, and its removal is heard at once, also when every hook was lost. */
#pragma once

#include <systemd/sd-bus.h>

#include "agent/core/manager.h"

/* Listens on a connection to the system bus for as long as that lives. Where there is no systemd on the bus,
 * or it refuses, nothing is heard, and the manager's own looks remain. */
void unit_watch_start(sd_bus *bus, Manager *manager);
