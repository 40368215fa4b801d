/* SPDX-License-Identifier: MIT */
/* Units of systemd, stopped and started by jobs that are waited for up to a deadline. */
#pragma once

#include <systemd/sd-bus.h>

#include "agent/base/clock.h"
#include "agent/driver/protocol.h"

typedef enum UnitVerb {
        UNIT_STOP,
        UNIT_START,
} UnitVerb;

/* One job, and what became of it. */
typedef struct UnitJob {
        const char *unit;
        char *path;   /* of the job on the bus, NULL: there is none */
        bool removed; /* it has ended, with this result ("done") */
        char result[32];
        bool gone;       /* systemd knows no such unit */
        char error[128]; /* why there is no job; "" else */
} UnitJob;

/* PID 1 itself where its socket is there, which works without a bus; else by the bus. 0 · -errno. */
int units_connect(sd_bus **ret);

/* 1 it runs, or is about to · 0 it does not, or is no unit · -errno. */
int unit_is_active(sd_bus *bus, const char *unit);

/* Begins a job for each unit, in this order, and waits for them up to the deadline. The jobs say what
 * became of them (to be freed with unit_jobs_free). 0 · -errno. */
int units_change(sd_bus *bus, UnitVerb verb, char *const *units, usec_t deadline_usec, UnitJob **ret,
                size_t *ret_n);

/* Takes a job back that is still there. */
void unit_job_cancel(sd_bus *bus, const UnitJob *job);

void unit_jobs_free(UnitJob *jobs, size_t n);
