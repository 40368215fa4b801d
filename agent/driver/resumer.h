/* SPDX-License-Identifier: MIT */
/* Sees to it that monitoring runs again which was stopped by somebody who then died, or could not start
 * it. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/driver/queue.h"

typedef struct Resumer Resumer;

/* What an earlier run left stopped is started at once. The queue stays the caller's, and is freed first.
 * 0 · -errno. */
int resumer_new(sd_event *event, Queue *queue, const char *runtime_directory, Resumer **ret);
Resumer* resumer_free(Resumer *resumer);

/* Somebody has monitoring stopped, and will see to it. */
void resumer_hold(Resumer *resumer);

/* He does not any more. What still is stopped a moment later, with nobody to see to it, is started. */
void resumer_release(Resumer *resumer);

DEFINE_CLEANUP(Resumer, resumer_free_ptr, resumer_free)
