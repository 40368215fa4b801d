/* SPDX-License-Identifier: MIT */
/* Cleanup of what sd-bus and sd-event hand out. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agent/base/cleanup.h"

DEFINE_CLEANUP(sd_bus_message, message_unref_ptr, sd_bus_message_unref)
DEFINE_CLEANUP(sd_bus, bus_close_ptr, sd_bus_close_unref)
DEFINE_CLEANUP(sd_event, event_unref_ptr, sd_event_unref)

static inline void bus_error_free(sd_bus_error *error) {
        sd_bus_error_free(error);
}
