/* SPDX-License-Identifier: MIT */
/* The metrics file, in Prometheus' text format: rewritten by rename when something has changed, at most once
 * a second, and now and then for what changes without being told (load, memory, power). */
#pragma once

#include <systemd/sd-event.h>

#include "agent/core/manager.h"

typedef struct Metrics Metrics;

/* 0 and *ret · -ENOMEM, -ENOSPC too many observers, -errno of sd-event. `manager` is borrowed. */
int metrics_new(sd_event *event, Manager *manager, const char *path, const char *host, Metrics **ret);

/* The file stays, as the last word. Returns NULL. */
Metrics* metrics_free(Metrics *metrics);

DEFINE_CLEANUP(Metrics, metrics_free_ptr, metrics_free)
