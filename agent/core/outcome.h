/* SPDX-License-Identifier: MIT */
/* How a piece of work on a GPU ended. The order is the order of gravity: a request over several GPUs fails
 * under the gravest of theirs, and every value from OUTCOME_LEASED on is a failure. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum Outcome {
        OUTCOME_DONE,
        OUTCOME_SKIPPED,        /* left alone on the site's wish, and not clean: a GPU in MIG mode */
        OUTCOME_FABRIC_PENDING, /* reset, but the fabric had not settled in time and no clique is expected */
        OUTCOME_LEASED,
        OUTCOME_MAINTENANCE,
        OUTCOME_BUSY,
        OUTCOME_TIMED_OUT,
        OUTCOME_NOT_SUPPORTED,
        OUTCOME_NOT_CLEAN,
        OUTCOME_NO_DRIVER,
        OUTCOME_DRIVER_UNRESPONSIVE,
        OUTCOME_RESET_FAILED,
        OUTCOME_NEEDS_REBOOT,
        _OUTCOME_MAX,
        _OUTCOME_INVALID = -EINVAL,
} Outcome;

/* "done", "busy", "needs-reboot": as in ResetFinished, the journal and the metrics. */
const char* outcome_to_string(Outcome outcome);
Outcome outcome_from_string(const char *s);

/* A failure's name: "Busy", "NeedsReboot", as in the bus's errors and the journal; NULL for what is none. */
const char* outcome_error(Outcome outcome);

/* What a person does about a failure; "" where its causes say so themselves. */
const char* outcome_advice(Outcome outcome);

/* Prints "; ADVICE" behind a cause that was printed, if that does not bring what to do with it. */
void outcome_print_advice(FILE *file, Outcome outcome, const char *cause);

static inline bool outcome_is_failure(Outcome outcome) {
        return outcome >= OUTCOME_LEASED;
}

/* Whether a handover can end in it; the others are how a request ends that has none. */
static inline bool outcome_is_a_handovers(Outcome outcome) {
        return outcome != OUTCOME_LEASED && outcome != OUTCOME_MAINTENANCE && outcome != OUTCOME_TIMED_OUT;
}

static inline Outcome outcome_gravest(Outcome a, Outcome b) {
        return a > b ? a : b;
}
