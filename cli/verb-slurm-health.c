/* SPDX-License-Identifier: MIT */
/* gpuagentctl slurm-health, Slurm's HealthCheckProgram: drains the node for a GPU that the next job must not
 * get, before a job meets it, and takes back into use what was drained with a reason of ours. Slurm does not
 * look at the exit code; people do. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "agent/log/journal.h"
#include "agent/log/message-ids.h"
#include "cli/gpu.h"
#include "cli/hook.h"
#include "cli/slurm-drain.h"

/* Slurm kills a health check after 60 s. */
#define HEALTH_TIMEOUT_USEC (50 * USEC_PER_SEC)

typedef struct Health {
        Config *config;
        Tray tray;
        Client *client;
        char node[HOST_NAME_MAX + 1];
        usec_t deadline_usec;
} Health;

static void health_done(Health *health) {
        (void) config_free(health->config);
        tray_done(&health->tray);
        (void) client_free(health->client);
}

/* slurmd tells the node's name, or it is the host's. */
static void read_node(char ret[static HOST_NAME_MAX + 1]) {
        const char *node = getenv("SLURMD_NODENAME");

        if (node && node[0] != '\0')
                (void) snprintf(ret, HOST_NAME_MAX + 1, "%s", node);
        else if (gethostname(ret, HOST_NAME_MAX) == 0)
                ret[strcspn(ret, ".")] = '\0';
}

/* What keeps the next job away, for one line; "" for nothing. A GPU that a job has is its epilog's affair.
 * */
static void find_fault(const Tray *tray, char *ret, size_t size) {
        ret[0] = '\0';
        if (streq(tray->driver_state, "unresponsive")) {
                (void) snprintf(ret, size, "the GPU driver is unresponsive: %s", tray->driver_error);
                return;
        }
        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];
                char name[GPU_UUID_SIZE];

                if (gpu->tenant[0] || (!streq(gpu->state, "quarantined") && !streq(gpu->state, "lost")))
                        continue;
                gpu_view_format(gpu, name, sizeof name);
                (void) snprintf(ret, size, "GPU %s is %s%s%s", name, gpu->state,
                                gpu->state_reason[0] ? ": " : "", gpu->state_reason);
                return;
        }
}

/* stdout and the journal. */
static void say(const char *message_id, int priority, const char *result, const char *line) {
        JournalEntry entry;

        print_line(stdout, "%s", line);
        journal_begin(&entry, message_id, priority, "slurm-health");
        journal_add(&entry, "MESSAGE", line);
        journal_add(&entry, "GPUAGENT_RESULT", result);
        journal_send_quietly(&entry);
}

/* 1: it is drained now · 0: it was · negative, and *failure says why not. */
static int drain_for(const Health *health, const char *fault, Failure *failure) {
        SlurmJob nobody = { .node = health->node };
        NodeDrain drain;
        int r;

        r = node_drain_read(health->node, health->deadline_usec, &drain, failure);
        if (r < 0 || drain != NODE_IN_USE)
                return r;
        r = drain_node(&nobody, fault, health->deadline_usec, failure);
        return r < 0 ? r : 1;
}

static int health_drain(const Health *health, const char *fault, Failure *failure) {
        CLEANUP(failure_done) Failure drain = {};
        char line[PIPE_BUF];
        int r;

        r = health->config->slurm.drain ? drain_for(health, fault, &drain) : 0;
        if (r < 0)
                return failure_set(failure, CLI_FAILED, "%s; the node cannot be drained: %s", fault,
                                drain.message ?: "out of memory");
        if (r > 0) {
                (void) snprintf(line, sizeof line, "%s is drained: %s", health->node, fault);
                say(MESSAGE_ID_NODE_DRAINED, LOG_ERR, "drained", line);
        }
        return failure_set(failure, CLI_FAILED, "%s; gpuagentctl status tells what cures it", fault);
}

/* What a reset makes clean, and no job's prolog will, for none comes to a drained node: nobody has it, and
 * none has failed. */
static bool wants_reset(const GpuView *gpu) {
        static const char *const actions[] = { "none", "unknown", "gpu-reset", "drain-and-reset" };

        if (gpu->mig || (!streq(gpu->state, "dirty") && !streq(gpu->state, "unknown")))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (streq(gpu->recovery_action, actions[i]))
                        return true;
        return false;
}

/* Has the reset of such GPUs begun, which may take longer than Slurm lets us live: the next health check
 * finds them clean, or quarantined. 1: it has · 0: there are none · negative, and *failure says why not. */
static int health_reset(Health *health, const Options *options, Failure *failure) {
        CLEANUP(strv_free_ptr) char **ids = NULL;
        Options request = *options;
        int r = 0;

        for (size_t i = 0; i < health->tray.n_gpus && r >= 0; i++)
                if (wants_reset(&health->tray.gpus[i]))
                        r = strv_append(&ids, health->tray.gpus[i].uuid);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd for a reset");
        if (!ids)
                return 0;

        request.wait = false;
        request.identifier = "slurm-health";
        r = client_call_for_gpus(
                        health->client, "Reset", ids, &request, HEALTH_TIMEOUT_USEC / 2, NULL, failure);
        if (r < 0)
                return r;
        print_line(stdout, "%s is drained, and its GPUs are reset before it is used again", health->node);
        return 1;
}

/* Only a fresh look at all GPUs says that the node may be used. */
static int health_resume(Health *health, const Options *options, Failure *failure) {
        char line[HOST_NAME_MAX + 64];
        NodeDrain drain;
        int r;

        /* A drained node's jobs run to their end first. */
        for (size_t i = 0; i < health->tray.n_gpus; i++)
                if (health->tray.gpus[i].tenant[0])
                        return 0;
        r = node_drain_read(health->node, health->deadline_usec, &drain, failure);
        if (r < 0 || drain != NODE_DRAINED_BY_US)
                return r;
        r = health_reset(health, options, failure);
        if (r != 0)
                return r < 0 ? r : 0;

        r = client_call_for_gpus(
                        health->client, "Verify", NULL, options, HEALTH_TIMEOUT_USEC / 2, NULL, failure);
        if (r >= 0)
                r = resume_node(health->node, health->deadline_usec, failure);
        if (r < 0)
                return r;
        (void) snprintf(line, sizeof line, "%s is in use again: all GPUs are clean", health->node);
        say(MESSAGE_ID_NODE_RESUMED, LOG_NOTICE, "resumed", line);
        return 0;
}

static int health_check(Health *health, const Options *options, Failure *failure) {
        char fault[1024];
        int r;

        r = hook_read_config(options, &health->config, failure);
        if (r >= 0)
                r = client_open(options, &health->client, failure);
        if (r >= 0)
                r = tray_read(health->client, &health->tray, failure);
        if (r < 0 || health->tray.maintenance || !health->tray.handover_reset)
                return r;

        find_fault(&health->tray, fault, sizeof fault);
        if (fault[0] && streq(health->tray.mode, "observe")) {
                print_line(stdout, "%s (mode is observe: nothing follows)", fault);
                return 0;
        }
        if (fault[0])
                return health_drain(health, fault, failure);
        return health->config->slurm.resume ? health_resume(health, options, failure) : 0;
}

int verb_slurm_health(const Options *options, int argc, char **argv) {
        CLEANUP(health_done) Health health = { .deadline_usec = now_monotonic_usec() + HEALTH_TIMEOUT_USEC };
        CLEANUP(failure_done) Failure failure = {};

        (void) signal(SIGPIPE, SIG_IGN);
        /* Nodes without GPUs share slurm.conf with those that have some. */
        if (access("/run/gpuagent", F_OK) < 0)
                return hook_succeed();
        read_node(health.node);
        return health_check(&health, options, &failure) < 0 ? failure_report(&failure) : hook_succeed();
}
