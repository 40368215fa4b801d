/* SPDX-License-Identifier: MIT */
/* gpuagentctl slurm-prolog: books a Slurm job's GPUs before it starts, by the environment that slurmd gives
 * its Prolog. A GPU that is not clean is handed over first; what cannot be booked ends in one line and a
 * code other than 0, which drains the node and requeues the job. */
#include <stdlib.h>

#include "cli/slurm-hook.h"

static int book(SlurmHook *hook, const Options *options, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Options request = *options;
        int r;

        /* A shard looks like a whole GPU here, so where GPUs are shared any job may have but a part of
         * one. */
        request.shared = hook->config->handover.shared == SHARED_COUNT;

        r = slurm_hook_open(hook, options, &client, &tray, failure);
        if (r >= 0)
                r = slurm_hook_find_gpus(hook, &tray, failure);
        return r < 0 ? r : slurm_hook_call(hook, client, "Acquire", hook->gpus.ids, &request, failure);
}

int verb_slurm_prolog(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(slurm_hook_done) SlurmHook hook = {};
        CLEANUP(free_ptr) char *what = NULL;
        int r;

        r = slurm_hook_read(SLURM_PROLOG, options, &hook, &failure);
        if (r < 0)
                return slurm_hook_reject(&hook, &failure);
        if (r == 0)
                return hook_succeed();

        r = book(&hook, options, &failure);
        if (r < 0) {
                if (hook.gpus.names && asprintf(&what, "GPUs %s refused", hook.gpus.names) < 0)
                        what = NULL;
                return slurm_hook_fail(&hook, what ?: "GPUs refused", &failure);
        }
        if (!options->quiet)
                print_line(stdout, "job %u: GPUs %s booked", hook.job.id, hook.gpus.names ?: "");
        return hook_succeed();
}
