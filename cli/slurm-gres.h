/* SPDX-License-Identifier: MIT */
/* slurmd's own list of GPUs: what the numbers in SLURM_JOB_GPUS are places in. */
#pragma once

#include <stdbool.h>

#include "agent/base/clock.h"
#include "cli/slurm-job.h"

/* The list is N of /dev/nvidiaN for each place. */
typedef struct GresList {
        uint32_t *minors;
        size_t n_minors;
} GresList;

void gres_list_done(GresList *list);

/* Reads what `slurmd -G` prints: "Gres Name=gpu … Count=2 … File=/dev/nvidia[0-1] …" a line. 0 and *ret ·
 * negative, and *failure says what cannot be told for certain. */
int gres_list_parse(const char *text, GresList *ret, Failure *failure);

/* Asks slurmd, or takes what it said before when its configuration is the same.
 * 1 and *ret · 0: there is no slurm.conf on this machine · negative, and *failure says why. */
int gres_list_read(const SlurmJob *job, GresList *ret, Failure *failure);

/* Whether a Slurm configuration includes other files. A change of those goes unseen, so what depends on it
 * is not kept. */
bool slurm_conf_has_include(const char *text);

typedef enum SlurmScript {
        SLURM_PROLOG,
        SLURM_EPILOG,
} SlurmScript;

/* Slurm's limit for the script in its slurm.conf: PrologTimeout or EpilogTimeout, else PrologEpilogTimeout.
 * USEC_INFINITY if there is none. */
usec_t slurm_timeout(const SlurmJob *job, SlurmScript script);

/* The same from the text of a slurm.conf. */
usec_t slurm_timeout_parse(const char *text, SlurmScript script);
