/* SPDX-License-Identifier: MIT */
/* The stages of an OCI hook, and what a runtime expects of each: a gate may wait and refuses by its exit
 * code; a poststop must be over within a second and well, whatever became of it. */
#pragma once

#include "agent/base/clock.h"

/* For a state that is written at once: after it, nobody will write it any more. */
#define OCI_STATE_TIMEOUT_USEC (2 * USEC_PER_SEC)

typedef enum OciStage {
        OCI_PRESTART,
        OCI_POSTSTOP,
        _OCI_STAGE_MAX,
        _OCI_STAGE_INVALID = -22, /* -EINVAL */
} OciStage;

const char* oci_stage_to_string(OciStage stage);

/* _OCI_STAGE_INVALID for another word. */
OciStage oci_stage_parse(const char *name);

/* To be called first. From here on a poststop ends in time and with code 0, however it hangs. The time
 * goes on over an exec: the program that is executed calls this, too. */
void oci_stage_begin(OciStage stage);

/* To be called right before an exec: until the next program has begun, the end waits. */
void oci_stage_hold(void);
