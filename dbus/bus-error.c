/* SPDX-License-Identifier: MIT */
#include "dbus/bus-error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int bus_error_from_outcome(sd_bus_error *error, Outcome outcome, const char *message) {
        const char *last = outcome_error(outcome);
        char name[sizeof BUS_ERROR_PREFIX + 32];

        if (!message)
                message = "The request failed";
        if (!last)
                return sd_bus_error_set(error, SD_BUS_ERROR_FAILED, message);
        (void) snprintf(name, sizeof name, BUS_ERROR_PREFIX "%s", last);
        return sd_bus_error_set(error, name, message);
}

int bus_error_from_manager(sd_bus_error *error, const Manager *manager, int r) {
        const char *message = manager_error(manager);

        if (!message || message[0] == '\0')
                message = strerror(-r);

        switch (r) {
        case -EINVAL: return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, message);
        case -ENOENT: return sd_bus_error_set(error, BUS_ERROR_NO_SUCH_GPU, message);
        case -EPERM: return sd_bus_error_set(error, BUS_ERROR_NOT_HOLDER, message);
        case -ENOTSUP: return bus_error_from_outcome(error, OUTCOME_NOT_SUPPORTED, message);
        case -EBUSY: return bus_error_from_outcome(error, OUTCOME_BUSY, message);
        case -ESHUTDOWN: return sd_bus_error_set(error, SD_BUS_ERROR_FAILED, message);
        case -ENOMEM: return sd_bus_error_set(error, SD_BUS_ERROR_NO_MEMORY, message);
        default:
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_IO_ERROR, message); /* the state cannot be written */
        }
}
