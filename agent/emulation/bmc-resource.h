/* SPDX-License-Identifier: MIT */
/* What the emulated tray's BMC tells by Redfish: the way from the service root to each GPU's processor, with
 * the clique that the GPU is in. It looks at the tray by itself, past driver and agent, so that it answers
 * where these hang, and is a witness of what they say. */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

#include "agent/emulation/tray.h"

#define BMC_ROOT "/redfish/v1"

/* Whether the standard has the path readable before anybody has named himself. */
bool bmc_path_is_public(const char *path);

/* The resource at `path`, with or without a slash at its end. 0 and *ret (to be put) · -ENOENT there is
 * none · -ENOMEM. */
int bmc_resource(const Tray *tray, const char *path, usec_t now, json_object **ret);

/* A Redfish error, such as "ResourceMissingAtURI" with a sentence. NULL without memory. */
json_object* bmc_error(const char *code, const char *message);
