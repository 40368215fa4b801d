/* SPDX-License-Identifier: MIT */
/* gpuagentctl oci-hook: books a container's GPUs before it starts and gives them back after its end, by
 * what an OCI runtime says of it. What cannot be booked ends in one line and a code other than 0, and the
 * container does not start. */
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "cli/hook.h"
#include "cli/oci-bundle.h"
#include "cli/oci-gpus.h"
#include "cli/oci-stage.h"
#include "cli/own-job.h"

/* How often the agent is asked again for a GPU that another pod has still: each time it looks whether that
 * lives. A change of the lease is heard at once. */
#define RETRY_USEC (5 * USEC_PER_SEC)

/* For the agent's look at the tenant, which comes with the booking unless the driver is at work. */
#define SEEN_USEC (2 * USEC_PER_SEC)

/* What we wait longer for the agent's answer than it has for its work. */
#define ANSWER_MARGIN_USEC USEC_PER_SEC

typedef struct OciHook {
        OciStage stage;
        Config *config;
        OciContainer container;
        char tenant[TENANT_MAX + 1];
        char **gpus; /* in the container's words; NULL at a poststop whose config.json cannot be read */
        GpuSet set;
        usec_t deadline_usec; /* monotonic: the agent's work is to be done by then */
        bool heard;           /* the agent has told of a change since this was set to false */
} OciHook;

static void oci_hook_done(OciHook *hook) {
        hook->config = config_free(hook->config);
        oci_container_done(&hook->container);
        (void) strv_free(hook->gpus);
        gpu_set_done(&hook->set);
}

/* Everything that the runtime says. 1 · 0 there is nothing to do · negative, and *failure says why. */
static int oci_hook_read(OciHook *hook, const Options *options, Failure *failure) {
        CLEANUP(free_ptr) char *state = NULL, *bundle = NULL;
        size_t size;
        int r;

        r = oci_state_read(STDIN_FILENO, usec_add(now_monotonic_usec(), OCI_STATE_TIMEOUT_USEC), &state,
                        &size, failure);
        if (r >= 0)
                r = oci_state_parse(state, size, &hook->container, &bundle, failure);
        if (r >= 0)
                r = hook_read_config(options, &hook->config, failure);
        if (r < 0)
                return r;

        r = oci_config_read(bundle, &hook->container, failure);
        if (r >= 0) {
                const OciRules rules = { hook->config->oci.observers, hook->config->oci.nvidia_runtime };

                r = oci_gpus(&hook->container, &rules, &hook->gpus);
                if (r < 0)
                        return failure_errno(failure, r, "cannot read the container's GPUs");
        } else if (hook->stage == OCI_POSTSTOP)
                r = 1; /* the lease says what it had */
        if (r <= 0)
                return r;
        if (oci_tenant(&hook->container, hook->tenant) < 0)
                return failure_set(failure, CLI_FAILED, "the container's id '%.64s' can be no tenant's",
                                hook->container.id);
        return 1;
}

static int acquire(OciHook *hook, Client *client, const Options *options, Failure *failure) {
        Options request = *options;
        usec_t now = now_monotonic_usec();

        request.timeout_usec =
                        hook->deadline_usec > now + USEC_PER_SEC ? hook->deadline_usec - now : USEC_PER_SEC;
        /* Where GPUs are shared (time-slicing, MPS) any container may have but a part of one. */
        request.shared = hook->config->handover.shared == SHARED_COUNT;

        return client_call_for_tenant(client, "Acquire", hook->tenant, hook->set.ids, &request,
                        request.timeout_usec + ANSWER_MARGIN_USEC, failure);
}

static int on_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        OciHook *hook = userdata;

        hook->heard = true;
        return 0;
}

/* Kubelet gives a GPU on once its pod has ended, and that may be before the node has seen the end: such a
 * lease is waited for. 0 · negative, and *failure says why. */
static int acquire_in_time(OciHook *hook, Client *client, const Options *options, Failure *failure) {
        int r;

        r = client_subscribe(client, on_signal, hook, NULL);
        if (r < 0)
                return failure_errno(failure, r, "cannot listen to gpuagentd");
        for (;;) {
                CLEANUP(failure_done) Failure gone = {};
                usec_t retry;

                r = acquire(hook, client, options, failure);
                if (r >= 0 || !oci_is_pods(&hook->container) || !streq(failure->error, "Leased"))
                        return r;

                retry = usec_add(now_monotonic_usec(), RETRY_USEC);
                if (retry >= hook->deadline_usec)
                        return r;
                for (hook->heard = false; !hook->heard && r != 0;) {
                        r = client_wait(client, retry, &gone);
                        if (r < 0)
                                return r; /* with what was said before */
                }
        }
}

/* A container may be gone before the agent looks for it, as one whose command does not exist; and a runtime
 * may not call us then. What was never seen would keep its GPUs. */
static void wait_until_seen(const OciHook *hook, Client *client) {
        usec_t limit = usec_add(now_monotonic_usec(), SEEN_USEC);
        int r = 1;

        while (r > 0) {
                CLEANUP(failure_done) Failure ignored = {};
                CLEANUP(tray_done) Tray tray = {};
                const GpuView *gpu;

                if (tray_read(client, &tray, &ignored) < 0)
                        return;
                gpu = tray_gpu_by_uuid(&tray, hook->set.ids[0]);
                if (!gpu || !streq(gpu->tenant_presence, "unknown"))
                        return;
                r = client_wait(client, limit, &ignored);
        }
}

/* What is started inside a Slurm job has its GPUs by the job's lease, whoever may or may not book. */
static bool has_them_by_its_job(const OciHook *hook, const Tray *tray, const Failure *failure) {
        char tenant[TENANT_MAX + 1];

        return (streq(failure->error, "Leased") || failure->exit_code == CLI_DENIED) &&
                        own_job_has_gpus(tray, hook->set.ids, tenant) > 0;
}

static int release(
                const OciHook *hook, Client *client, char **ids, const Options *options, Failure *failure) {
        Options request = *options;

        request.wait = false;
        return client_call_for_tenant(client, "Release", hook->tenant, ids, &request, 0, failure);
}

static bool has_ended(int pidfd) {
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

        return pidfd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

/* Somebody deleted the pod, or killed the engine, while its GPUs were got ready: the agent never sees it and
 * would not see its end. What the pod had before (`tray`) another container of it has. */
static int give_back(
                OciHook *hook, Client *client, const Tray *tray, const Options *options, Failure *failure) {
        CLEANUP(strv_free_ptr) char **ids = NULL;
        int r = 0;

        for (size_t i = 0; hook->set.ids[i] && r >= 0; i++) {
                const GpuView *gpu = tray_gpu_by_uuid(tray, hook->set.ids[i]);

                if (!gpu || !streq(gpu->tenant, hook->tenant))
                        r = strv_append(&ids, hook->set.ids[i]);
        }
        if (r < 0)
                return failure_errno(failure, r, "cannot give the GPUs of an ended container back");
        if (ids)
                r = release(hook, client, ids, options, failure);
        return r < 0 ? r : failure_set(failure, CLI_FAILED, "the container has ended before it began");
}

/* 0 · negative, and *failure says why. */
static int book(OciHook *hook, const Options *options, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        CLEANUP(fd_close) int init = -1;
        int r;

        if (hook->container.init > 0)
                init = (int) syscall(SYS_pidfd_open, hook->container.init, 0);
        r = client_open(options, &client, failure);
        if (r >= 0)
                r = tray_read(client, &tray, failure);
        if (r >= 0)
                r = oci_gpus_find(&hook->container, hook->gpus, &tray, hook->config, &hook->set, failure);
        if (r <= 0)
                return r;
        r = acquire_in_time(hook, client, options, failure);
        if (r >= 0 && has_ended(init))
                return give_back(hook, client, &tray, options, failure);
        if (r >= 0 && !oci_is_pods(&hook->container))
                wait_until_seen(hook, client); /* a pod is there for longer than any container of it */
        return r < 0 && has_them_by_its_job(hook, &tray, failure) ? 0 : r;
}

static int prestart(OciHook *hook, const Options *options) {
        CLEANUP(failure_done) Failure failure = {};
        const char *cause;
        int r;

        r = oci_hook_read(hook, options, &failure);
        if (r == 0)
                return hook_succeed();
        if (r > 0) {
                hook->deadline_usec = usec_add(now_monotonic_usec(),
                                options->timeout_usec > 0 ? options->timeout_usec
                                                          : hook->config->oci.timeout_usec);
                r = book(hook, options, &failure);
        }
        if (r >= 0)
                return hook_succeed();

        cause = failure.message ?: "out of memory";
        if (hook->config && hook_leniency(hook->config)) {
                print_line(stdout, "gpuagent: %s would be refused: %s", hook->tenant, cause);
                return hook_succeed();
        }
        print_line(stderr, "gpuagent: GPUs %s%srefused: %s", hook->set.names ?: "",
                        hook->set.names ? " " : "", cause);
        return hook_refuse(&failure);
}

/* Nobody can do anything about a failure here, and runtimes take it for their own: the line is all of it.
 * What a pod has it keeps for its next container; the agent sees its end. */
static int poststop(OciHook *hook, const Options *options) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        r = oci_hook_read(hook, options, &failure);
        if (r > 0 && !oci_is_pods(&hook->container)) {
                r = client_open(options, &client, &failure);
                if (r >= 0)
                        r = release(hook, client, NULL, options, &failure);
        }
        if (r < 0)
                print_line(stderr, "gpuagent: GPUs not given back: %s", failure.message ?: "out of memory");
        return hook_succeed();
}

int verb_oci_hook(const Options *options, int argc, char **argv) {
        CLEANUP(oci_hook_done) OciHook hook = {};

        hook.stage = argc == 2 ? oci_stage_parse(argv[1]) : _OCI_STAGE_INVALID;
        if (hook.stage < 0)
                return fail_with(CLI_USAGE, "give one stage to oci-hook: prestart or poststop");
        oci_stage_begin(hook.stage);
        return hook.stage == OCI_PRESTART ? prestart(&hook, options) : poststop(&hook, options);
}
