/* SPDX-License-Identifier: MIT */
/* What becomes of the GPUs of a request while it runs, by the agent's signals; on a terminal it is shown,
 * one line a GPU. */
#pragma once

#include <stdbool.h>

#include "cli/gpu.h"

typedef struct Progress Progress;

/* Watches the GPUs that `ids` names, all of the tray if it is empty. The lines go to `terminal`, NULL for
 * nowhere.
 * 0 and *ret · negative errno. */
int progress_new(Client *client, const Tray *tray, char **ids, FILE *terminal, Progress **ret);
Progress* progress_free(Progress *progress);

DEFINE_CLEANUP(Progress, progress_free_ptr, progress_free)

/* The indexes of the watched GPUs but those that were left alone, "0,1,2,3"; with `reset_only` of those
 * whose reset has ended well. 0 and *ret (to be freed) · -ENOMEM. */
int progress_list(const Progress *progress, bool reset_only, char **ret);
