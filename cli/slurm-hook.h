/* SPDX-License-Identifier: MIT */
/* What the prolog and the epilog have in common: the job of the environment, its GPUs, the deadline below
 * Slurm's, and how an end is told. */
#pragma once

#include "agent/config/config.h"
#include "cli/client.h"
#include "cli/hook.h"
#include "cli/slurm-gpus.h"

/* What we wait longer for the agent's answer than it has for its work. */
#define SLURM_ANSWER_MARGIN_USEC USEC_PER_SEC

typedef struct SlurmHook {
        SlurmScript script;
        SlurmJob job;
        Config *config; /* the site's switches in it are the agent's own, where it answers */
        GpuSet gpus;
        usec_t deadline_usec;   /* monotonic: the agent's work is to be done by then */
        const char *identifier; /* of its lines in the journal */
} SlurmHook;

void slurm_hook_done(SlurmHook *hook);

/* Reads the environment and the configuration. 1 and *ret · 0: there is nothing to do, and a reason worth a
 * line was said · negative, and *failure says why; *ret is set where the job is known. */
int slurm_hook_read(SlurmScript script, const Options *options, SlurmHook *ret, Failure *failure);

/* It could not be read: says so, also in the journal. The exit code. */
int slurm_hook_reject(const SlurmHook *hook, const Failure *failure);

/* Connects, and learns of the tray and of the site's switches. 0 and *ret_client, *ret_tray · negative, and
 * *failure says why. */
int slurm_hook_open(SlurmHook *hook, const Options *options, Client **ret_client, Tray *ret_tray,
                Failure *failure);

/* Which GPUs the job has, by its environment. 0 · negative, and *failure says what cannot be told for
 * certain. */
int slurm_hook_find_gpus(SlurmHook *hook, const Tray *tray, Failure *failure);

/* Calls Acquire or Release for these GPUs (NULL: the tenant's own) and waits for its end. 0 · negative, and
 * *failure says why. */
int slurm_hook_call(const SlurmHook *hook, Client *client, const char *member, char **ids,
                const Options *options, Failure *failure);

/* A failure: one line for slurmd's log that begins with the job and `what`, which goes to the journal too
 * where the agent has not said it there, and the drain. The exit code, which is 0 where the site only
 * observes or does without handovers. */
int slurm_hook_fail(const SlurmHook *hook, const char *what, const Failure *failure);
