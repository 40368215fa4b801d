/* SPDX-License-Identifier: MIT */
#include "cli/slurm-hook.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "agent/base/text.h"
#include "agent/log/journal.h"
#include "agent/log/message-ids.h"
#include "cli/slurm-drain.h"

/* Where Slurm has no limit for its epilog: longer than the agent's own deadlines for a reset with all that
 * belongs to it. A prolog has handover.acquire-timeout then. */
#define EPILOG_TIMEOUT_USEC (280 * USEC_PER_SEC)

/* Below Slurm's own limit, after which it kills the script without a word: what the agent's answer at the
 * deadline and the drain take, and a second. */
#define DRAIN_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define SCRIPT_MARGIN_USEC (SLURM_ANSWER_MARGIN_USEC + DRAIN_TIMEOUT_USEC + USEC_PER_SEC)

/* Without an agent the answer is known at once and should be given at once. */
#define DRAIN_TIMEOUT_NO_AGENT_USEC (1500 * USEC_PER_MSEC)

void slurm_hook_done(SlurmHook *hook) {
        slurm_job_done(&hook->job);
        gpu_set_done(&hook->gpus);
        hook->config = config_free(hook->config);
}

static usec_t hook_timeout(const SlurmHook *hook, const Options *options) {
        usec_t limit;

        if (options->timeout_usec > 0)
                return options->timeout_usec;
        limit = slurm_timeout(&hook->job, hook->script);
        if (limit == USEC_INFINITY)
                return hook->script == SLURM_PROLOG ? hook->config->handover.acquire_timeout_usec
                                                    : EPILOG_TIMEOUT_USEC;
        return limit > 2 * SCRIPT_MARGIN_USEC ? limit - SCRIPT_MARGIN_USEC : limit / 2;
}

int slurm_hook_read(SlurmScript script, const Options *options, SlurmHook *ret, Failure *failure) {
        int r;

        /* slurmd hands it down blocked, others do not; a reader that is gone is an error of the line, no
         * more. */
        (void) signal(SIGPIPE, SIG_IGN);

        ret->script = script;
        ret->identifier = options->identifier ?: script == SLURM_PROLOG ? "slurm-prolog" : "slurm-epilog";
        r = slurm_job_read(&ret->job, failure);
        if (r <= 0)
                return r;
        r = hook_read_config(options, &ret->config, failure);
        if (r < 0)
                return r;
        ret->deadline_usec = usec_add(now_monotonic_usec(), hook_timeout(ret, options));

        if (ret->config->handover.mig == MIG_SKIP && strstr(ret->job.visible_devices, "MIG-")) {
                print_line(stdout, "job %u: MIG devices are left alone: handover.mig is skip", ret->job.id);
                return 0;
        }
        return 1;
}

int slurm_hook_open(SlurmHook *hook, const Options *options, Client **ret_client, Tray *ret_tray,
                Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        r = client_open(options, &client, failure);
        if (r >= 0)
                r = tray_read(client, ret_tray, failure);
        if (r < 0)
                return r;

        /* A file that was changed and not reloaded is not in force. */
        hook->config->mode = streq(ret_tray->mode, "observe") ? AGENT_MODE_OBSERVE : AGENT_MODE_ENFORCE;
        hook->config->handover.reset = ret_tray->handover_reset;
        *ret_client = take_ptr(&client);
        return 0;
}

int slurm_hook_find_gpus(SlurmHook *hook, const Tray *tray, Failure *failure) {
        CLEANUP(gres_list_done) GresList places = {};
        SlurmJob *job = &hook->job;
        SlurmNaming naming;
        int r;

        r = slurm_job_read_positions(job, failure);
        if (r >= 0)
                r = slurm_naming(job, (GpuIndexRule) hook->config->slurm.gpu_index, &naming, failure);
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
                return slurm_gpus_from_indexes(job, &hook->gpus, failure);
        if (naming == SLURM_NAMES_UUID)
                return slurm_gpus_from_uuids(job, tray, &hook->gpus, failure);
        return slurm_gpus_from_minors(
                        job, naming == SLURM_NAMES_PLACE ? &places : NULL, tray, &hook->gpus, failure);
}

int slurm_hook_call(const SlurmHook *hook, Client *client, const char *member, char **ids,
                const Options *options, Failure *failure) {
        Options request = *options;
        usec_t now = now_monotonic_usec();

        /* What was spent on finding the GPUs is no longer there for the work. */
        request.timeout_usec =
                        hook->deadline_usec > now + USEC_PER_SEC ? hook->deadline_usec - now : USEC_PER_SEC;
        request.identifier = hook->identifier;

        return client_call_for_tenant(client, member, hook->job.tenant, ids, &request,
                        request.timeout_usec + SLURM_ANSWER_MARGIN_USEC, failure);
}

/* What never reached the agent is in no audit of its. `line` has been sanitized. */
static void hook_log(const SlurmHook *hook, const char *line, const Failure *failure, bool observed) {
        JournalEntry entry;

        journal_begin(&entry,
                        observed                                       ? MESSAGE_ID_OBSERVED
                                        : hook->script == SLURM_PROLOG ? MESSAGE_ID_BOOKING_REFUSED
                                                                       : MESSAGE_ID_HANDOVER_FAILED,
                        observed ? LOG_WARNING : LOG_ERR, hook->identifier);
        journal_add(&entry, "MESSAGE", line);
        journal_add(&entry, "GPUAGENT_TENANT", hook->job.tenant);
        STRV_FOREACH (id, hook->gpus.ids)
                journal_add(&entry, "GPUAGENT_GPU", *id);
        journal_add(&entry, "GPUAGENT_RESULT", failure->exit_code == CLI_NO_AGENT ? "NoAgent" : "Failed");
        journal_send_quietly(&entry);
}

int slurm_hook_reject(const SlurmHook *hook, const Failure *failure) {
        CLEANUP(free_ptr) char *line = strdup(failure->message ?: "out of memory");

        if (line) {
                text_sanitize(line);
                hook_log(hook, line, failure, false);
        }
        return failure_report(failure);
}

/* Puts the drain reason where it belongs, and the line for slurmd's log together; NULL without memory. */
static char* hook_drain(const SlurmHook *hook, const char *what, const char *cause, const Failure *failure) {
        CLEANUP(failure_done) Failure drain = {};
        const char *undrained = "";
        usec_t timeout = failure->exit_code == CLI_NO_AGENT ? DRAIN_TIMEOUT_NO_AGENT_USEC
                                                            : DRAIN_TIMEOUT_USEC;
        char *line;

        if (hook->config->slurm.drain &&
                        drain_node(&hook->job, cause, usec_add(now_monotonic_usec(), timeout), &drain) < 0)
                undrained = drain.message ?: "out of memory";
        return asprintf(&line, "job %u: %s: %s%s%s%s", hook->job.id, what, cause,
                               undrained[0] ? " (no drain reason: " : "", undrained,
                               undrained[0] ? ")" : "") < 0
                        ? NULL
                        : line;
}

int slurm_hook_fail(const SlurmHook *hook, const char *what, const Failure *failure) {
        const char *cause = failure->message ?: "out of memory", *lenient = hook_leniency(hook->config);
        CLEANUP(free_ptr) char *line = NULL;

        if (!lenient)
                line = hook_drain(hook, what, cause, failure);
        else if (asprintf(&line, "job %u: %s: %s (%s: nothing follows)", hook->job.id, what, cause,
                                 lenient) < 0)
                line = NULL;
        print_line(lenient ? stdout : stderr, "%s", line ?: cause);
        if (line && !failure->error[0]) {
                text_sanitize(line);
                hook_log(hook, line, failure, lenient);
        }

        return lenient ? hook_succeed() : hook_refuse(failure);
}
