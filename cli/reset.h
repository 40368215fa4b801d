/* SPDX-License-Identifier: MIT */
/* Asking for a reset, and telling how it went. */
#pragma once

#include "cli/client.h"

/* Resets the GPUs that `ids` (a strv, empty: all) names: tenant, identifier, deadline and whether to wait as
 * in the options. Prints which GPUs were reset, and shows the progress on a terminal. 0 · negative, and
 * *failure says which GPU failed and why. */
int reset_gpus(Client *client, const Options *options, char **ids, Failure *failure);
