/* SPDX-License-Identifier: MIT */
/* gpuagentctl slurm-epilog: the handover after a Slurm job, by the environment that slurmd gives its Epilog.
 * Whatever goes wrong ends in one line and a code other than 0, which drains the node. */
#include <errno.h>
#include <stdio_ext.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/config/config.h"
#include "cli/client.h"
#include "cli/slurm-drain.h"
#include "cli/slurm-gpus.h"

/* Below Slurm's own limit, after which it kills the script without a word: what the agent's answer at the
 * deadline and the drain take, and a second. Where Slurm has no limit, longer than the agent's own deadlines
 * for a reset with all that belongs to it. */
#define EPILOG_TIMEOUT_USEC (280 * USEC_PER_SEC)
#define ANSWER_MARGIN_USEC  USEC_PER_SEC
#define DRAIN_TIMEOUT_USEC  (10 * USEC_PER_SEC)
#define EPILOG_MARGIN_USEC  (ANSWER_MARGIN_USEC + DRAIN_TIMEOUT_USEC + USEC_PER_SEC)

/* Without an agent the answer is known at once and should be given at once. */
#define DRAIN_TIMEOUT_NO_AGENT_USEC (1500 * USEC_PER_MSEC)

static usec_t epilog_timeout(const SlurmJob *job, const Options *options) {
        usec_t limit;

        if (options->timeout_usec > 0)
                return options->timeout_usec;
        limit = slurm_epilog_timeout(job);
        if (limit == USEC_INFINITY)
                return EPILOG_TIMEOUT_USEC;
        return limit > 2 * EPILOG_MARGIN_USEC ? limit - EPILOG_MARGIN_USEC : limit / 2;
}

/* A file with a mistake must not drain every node of a cluster: the agent keeps its old settings then, and
 * for what is read here the defaults are the careful choice. */
static int read_config(const Options *options, Config **ret, Failure *failure) {
        CLEANUP(free_ptr) char *message = NULL, *ignored = NULL;
        int r;

        r = config_load(options->config_path, ret, &message);
        if (r < 0)
                r = config_parse("defaults", "", 0, ret, &ignored);
        return r < 0 ? failure_errno(failure, r, "cannot read the configuration") : 0;
}

static int find_gpus(
                const SlurmJob *job, GpuIndexRule rule, Client *client, SlurmGpus *ret, Failure *failure) {
        CLEANUP(gres_list_done) GresList places = {};
        CLEANUP(tray_done) Tray tray = {};
        SlurmNaming naming;
        int r;

        r = slurm_naming(job, rule, &naming, failure);
        if (r < 0)
                return r;
        if (naming == SLURM_NAMES_PLACE) {
                r = gres_list_read(job, &places, failure);
                if (r < 0)
                        return r;
                if (r == 0)
                        naming = SLURM_NAMES_INDEX;
        }
        if (naming == SLURM_NAMES_INDEX)
                return slurm_gpus_from_indexes(job, ret, failure);

        r = tray_read(client, &tray, failure);
        if (r < 0)
                return r;
        if (naming == SLURM_NAMES_UUID)
                return slurm_gpus_from_uuids(job, &tray, ret, failure);
        return slurm_gpus_from_minors(
                        job, naming == SLURM_NAMES_PLACE ? &places : NULL, &tray, ret, failure);
}

/* What was spent on finding the GPUs is no longer there for the reset. */
static int release(const SlurmJob *job, const SlurmGpus *gpus, const Options *options, usec_t deadline,
                Client *client, Failure *failure) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        usec_t now = now_monotonic_usec();
        usec_t left = deadline > now + USEC_PER_SEC ? deadline - now : USEC_PER_SEC;
        int r;

        r = client_message_new(client, MANAGER_PATH, MANAGER_INTERFACE, "Release", &message);
        if (r >= 0)
                r = sd_bus_message_append(message, "s", job->tenant);
        if (r >= 0)
                r = sd_bus_message_append_strv(message, gpus->ids);
        if (r >= 0)
                r = sd_bus_message_append(message, "a{sv}", 2, "identifier", "s",
                                options->identifier ?: "slurm-epilog", "timeout-usec", "t", left);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd for the handover");
        return client_call(client, message, left + ANSWER_MARGIN_USEC, NULL, failure);
}

static int hand_over(const SlurmJob *job, const Config *config, const Options *options, SlurmGpus *ret_gpus,
                Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        usec_t deadline = usec_add(now_monotonic_usec(), epilog_timeout(job, options));
        int r;

        r = client_open(options, &client, failure);
        if (r >= 0)
                r = find_gpus(job, (GpuIndexRule) config->slurm.gpu_index, client, ret_gpus, failure);
        if (r >= 0)
                r = release(job, ret_gpus, options, deadline, client, failure);
        return r;
}

/* One line for slurmd's log, and the drain. The exit code. */
static int report(const SlurmJob *job, const Config *config, const SlurmGpus *gpus, const Failure *failure) {
        CLEANUP(failure_done) Failure drain = {};
        const char *cause = failure->message ?: "out of memory";
        usec_t timeout = failure->exit_code == CLI_NO_AGENT ? DRAIN_TIMEOUT_NO_AGENT_USEC
                                                            : DRAIN_TIMEOUT_USEC;
        const char *undrained = "";

        if (config->slurm.drain &&
                        drain_node(job, cause, usec_add(now_monotonic_usec(), timeout), &drain) < 0)
                undrained = drain.message ?: "out of memory";
        print_line(stderr, "job %u: GPU reset of %s failed: %s%s%s%s", job->id, gpus->names ?: "its GPUs",
                        cause, undrained[0] ? " (no drain reason: " : "", undrained,
                        undrained[0] ? ")" : "");
        return failure->exit_code == CLI_DONE || failure->exit_code == CLI_USAGE ? CLI_FAILED
                                                                                 : failure->exit_code;
}

/* That nobody reads the line of a success must not drain the node. */
static int succeed(void) {
        if (fflush(stdout) != 0) {
                __fpurge(stdout);
                clearerr(stdout);
        }
        return CLI_DONE;
}

int verb_slurm_epilog(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(slurm_job_done) SlurmJob job = {};
        CLEANUP(slurm_gpus_done) SlurmGpus gpus = {};
        CLEANUP(config_free_ptr) Config *config = NULL;
        int r;

        r = slurm_job_read(&job, &failure);
        if (r == 0)
                return CLI_DONE;
        if (r > 0)
                r = read_config(options, &config, &failure);
        if (r < 0)
                return failure_report(&failure);

        r = hand_over(&job, config, options, &gpus, &failure);
        if (!config->handover.reset) {
                print_line(stdout, "job %u: GPUs not reset: handover.reset is off", job.id);
                return succeed();
        }
        if (r < 0)
                return report(&job, config, &gpus, &failure);
        if (!options->quiet)
                print_line(stdout, "job %u: GPUs %s reset", job.id, gpus.names);
        return succeed();
}
