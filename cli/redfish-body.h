/* SPDX-License-Identifier: MIT */
/* What a BMC has answered. It is a stranger's text: what is not JSON is refused, and what goes to a terminal
 * is printable ASCII. */
#pragma once

#include <stddef.h>

#include "cli/options.h"

/* The JSON of `size` bytes anew, pretty or in one line, without a newline at its end; characters beyond
 * ASCII are escapes in it. 0 and *ret (to be freed) · -EINVAL not JSON, or not in UTF-8 · -ENOMEM. */
int redfish_body_format(const char *body, size_t size, OutputMode mode, char **ret);

/* The sentence of a Redfish error, in one line. 0 and *ret (to be freed) · -ENOENT there is none in it ·
 * -ENOMEM. */
int redfish_body_error(const char *body, size_t size, char **ret);
