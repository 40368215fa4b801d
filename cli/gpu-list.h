/* SPDX-License-Identifier: MIT */
/* How a person names GPUs, as nvidia-smi -i takes them: "0,1,2,3", UUIDs or unique beginnings of them, PCI
 * bus ids. */
#pragma once

#include "cli/gpu.h"

/* Splits and checks one -i list. 0 and *ret (a strv to be freed) · negative, and *failure (CLI_USAGE) says
 * what is no GPU. */
int gpu_list_parse(const char *text, char ***ret, Failure *failure);

/* Whether an item is the beginning of a UUID, so that the list needs gpu_list_complete(). */
bool gpu_list_has_prefix(char *const *ids);

/* Puts the UUID in the place of each beginning of one. 0 · negative, and *failure says which fits none
 * (CLI_NO_GPU) or several (CLI_USAGE). */
int gpu_list_complete(char **ids, const Tray *tray, Failure *failure);

/* The GPU that `id` names, which may be the beginning of a UUID. 0 and *ret · negative, and *failure as
 * above. */
int gpu_list_find(const Tray *tray, const char *id, const GpuView **ret, Failure *failure);

/* The ids for the agent: of the list, complete; an empty strv (NULL) for none given. Asks the agent only if
 * a beginning of a UUID is among them. 0 and *ret · negative, and *failure says why. */
int gpu_list_for_agent(Client *client, const char *text, char ***ret, Failure *failure);
