/* SPDX-License-Identifier: MIT */
/* The errors of org.gpuagent1: which name a failure of the core has on the bus. */
#pragma once

#include <systemd/sd-bus.h>

#include "agent/core/manager.h"

#define BUS_ERROR_PREFIX      "org.gpuagent1.Error."
#define BUS_ERROR_NO_SUCH_GPU BUS_ERROR_PREFIX "NoSuchGPU"
#define BUS_ERROR_NOT_HOLDER  BUS_ERROR_PREFIX "NotHolder"

/* Sets the error of a failed request. Always the negative errno of the error, to be returned by a
 * handler. */
int bus_error_from_outcome(sd_bus_error *error, Outcome outcome, const char *message);

/* Sets the error for a refusal of manager_request(), manager_find(), manager_forget() and the like. As
 * above. */
int bus_error_from_manager(sd_bus_error *error, const Manager *manager, int r);
