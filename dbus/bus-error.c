/* SPDX-License-Identifier: MIT */
#include "dbus/bus-error.h"

#include <errno.h>
#include <string.h>

#include "agent/base/cleanup.h"

static const char *const error_names[_OUTCOME_MAX] = {
        [OUTCOME_LEASED] = BUS_ERROR_PREFIX "Leased",
        [OUTCOME_MAINTENANCE] = BUS_ERROR_PREFIX "Maintenance",
        [OUTCOME_BUSY] = BUS_ERROR_PREFIX "Busy",
        [OUTCOME_TIMED_OUT] = BUS_ERROR_PREFIX "TimedOut",
        [OUTCOME_NOT_SUPPORTED] = BUS_ERROR_PREFIX "NotSupported",
        [OUTCOME_NOT_CLEAN] = BUS_ERROR_PREFIX "NotClean",
        [OUTCOME_NO_DRIVER] = BUS_ERROR_PREFIX "NoDriver",
        [OUTCOME_DRIVER_UNRESPONSIVE] = BUS_ERROR_PREFIX "DriverUnresponsive",
        [OUTCOME_RESET_FAILED] = BUS_ERROR_PREFIX "ResetFailed",
        [OUTCOME_NEEDS_REBOOT] = BUS_ERROR_PREFIX "NeedsReboot",
};

const char* bus_error_short_name(Outcome outcome) {
        if (!outcome_is_failure(outcome) || outcome >= _OUTCOME_MAX)
                return NULL;
        return error_names[outcome] + strlen(BUS_ERROR_PREFIX);
}

int bus_error_from_outcome(sd_bus_error *error, Outcome outcome, const char *message) {
        const char *name =
                        outcome_is_failure(outcome) && outcome < _OUTCOME_MAX ? error_names[outcome] : NULL;

        return sd_bus_error_set(
                        error, name ? name : SD_BUS_ERROR_FAILED, message ? message : "The request failed");
}

int bus_error_from_manager(sd_bus_error *error, const Manager *manager, int r) {
        const char *message = manager_error(manager);

        if (!message || message[0] == '\0')
                message = strerror(-r);

        switch (r) {
        case -EINVAL: return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, message);
        case -ENOENT: return sd_bus_error_set(error, BUS_ERROR_NO_SUCH_GPU, message);
        case -EPERM: return sd_bus_error_set(error, BUS_ERROR_NOT_HOLDER, message);
        case -ENOTSUP: return sd_bus_error_set(error, error_names[OUTCOME_NOT_SUPPORTED], message);
        case -EBUSY: return sd_bus_error_set(error, error_names[OUTCOME_BUSY], message);
        case -ESHUTDOWN: return sd_bus_error_set(error, SD_BUS_ERROR_FAILED, message);
        case -ENOMEM: return sd_bus_error_set(error, SD_BUS_ERROR_NO_MEMORY, message);
        default:
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_IO_ERROR, message); /* the state cannot be written */
        }
}
