/* SPDX-License-Identifier: MIT */
/* gpuagentctl slurm-epilog: the handover after a Slurm job, by the environment that slurmd gives its Epilog.
 * Whatever goes wrong ends in one line and a code other than 0, which drains the node. */
#include <stdlib.h>

#include "agent/base/text.h"
#include "cli/lease.h"
#include "cli/slurm-hook.h"

/* What was booked at the prolog counts, and not what is said of the job now. Without a lease the GPUs are
 * those of the environment: of a job from before the prolog was there, or at a site that has none. */
static int hand_over(SlurmHook *hook, const Options *options, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        int r;

        r = slurm_hook_open(hook, options, &client, &tray, failure);
        if (r < 0)
                return r;
        lease_find_ended_run(&tray, hook->job.tenant);
        if (lease_gpus(&tray, hook->job.tenant, &hook->gpus.names) == 0)
                r = slurm_hook_find_gpus(hook, &tray, failure);
        return r < 0 ? r : slurm_hook_call(hook, client, "Release", hook->gpus.ids, options, failure);
}

/* The agent has agreed. Where it may also leave a GPU as it is, one in MIG mode or that others share, only
 * the journal says which were reset. */
static const char* what_was_done(const SlurmHook *hook) {
        if (!hook->config->handover.reset)
                return "released and not reset: handover.reset is off";
        if (hook->config->mode == AGENT_MODE_OBSERVE || hook->config->handover.mig == MIG_SKIP ||
                        hook->config->handover.shared == SHARED_COUNT)
                return "released";
        return "reset";
}

int verb_slurm_epilog(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(slurm_hook_done) SlurmHook hook = {};
        CLEANUP(free_ptr) char *what = NULL;
        const char *names;
        int r;

        r = slurm_hook_read(SLURM_EPILOG, options, &hook, &failure);
        if (r < 0)
                return slurm_hook_reject(&hook, &failure);
        if (r == 0)
                return hook_succeed();

        r = hand_over(&hook, options, &failure);
        names = hook.gpus.names ?: "its GPUs";
        /* The job's time with them is over already, and what another tenant has is not ours to touch. */
        if (r < 0 && streq(failure.error, "NotHolder")) {
                print_line(stdout, "job %u: GPUs not reset: %s", hook.job.id,
                                failure.message ?: "NotHolder");
                return hook_succeed();
        }
        if (r < 0) {
                if (asprintf(&what, "GPU reset of %s failed", names) < 0)
                        what = NULL;
                return slurm_hook_fail(&hook, what ?: "GPU reset failed", &failure);
        }
        if (!options->quiet)
                print_line(stdout, "job %u: GPUs %s %s", hook.job.id, names, what_was_done(&hook));
        return hook_succeed();
}
