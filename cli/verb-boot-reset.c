/* SPDX-License-Identifier: MIT */
/* gpuagentctl boot-reset: once per boot, before anything takes work, every GPU that is not clean in this
 * boot is reset. The agent and the driver may come later than we do; both are waited for. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/config.h"
#include "cli/gpu.h"
#include "cli/reset.h"

#define BOOT_TIMEOUT_USEC (300 * USEC_PER_SEC)

/* How often a driver that is not there is asked for; each time costs a look at whether its module is
 * loaded. */
#define RETRY_USEC USEC_PER_SEC

/* 1: a process of that name runs on this machine · 0: none · -errno of /proc. */
static int process_exists(const char *comm) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        int found = 0;

        if (!proc)
                return -errno;
        while (found == 0 && (entry = readdir(proc))) {
                CLEANUP(free_ptr) char *name = NULL;
                char path[sizeof entry->d_name + sizeof "/comm"];

                if (!isdigit((unsigned char) entry->d_name[0]))
                        continue;
                (void) snprintf(path, sizeof path, "%s/comm", entry->d_name);
                if (file_read(dirfd(proc), path, 256, &name, NULL) < 0)
                        continue; /* it has ended */
                found = streq(text_strip(name), comm);
        }
        (void) closedir(proc);
        return found;
}

/* "boot/", and the beginning of this boot's id. 0 · negative errno. */
static int boot_tenant(char *ret, size_t size) {
        CLEANUP(free_ptr) char *id = NULL;
        int r;

        r = file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &id, NULL);
        if (r < 0)
                return r;
        (void) snprintf(ret, size, "boot/%.8s", id);
        return tenant_is_valid(ret) ? 0 : -EINVAL;
}

static usec_t time_left(usec_t deadline) {
        usec_t now = now_monotonic_usec();

        return now < deadline ? deadline - now : 0;
}

/* Has the agent look for the driver. That it finds none is in the properties, so an error of the call is no
 * news. */
static void refresh(Client *client) {
        CLEANUP(failure_done) Failure ignored = {};

        (void) client_call_manager(client, "Refresh", 0, NULL, &ignored, "a{sv}", 0);
}

/* Lets time pass; what the signals say meanwhile is read anew in any case. Returns at once when the agent
 * goes. */
static void wait_a_moment(Client *client) {
        CLEANUP(failure_done) Failure failure = {};
        usec_t end = usec_add(now_monotonic_usec(), RETRY_USEC);

        while (client && client_wait(client, end, &failure) > 0)
                continue;
        if (time_left(end) > 0)
                (void) poll(NULL, 0, (int) (time_left(end) / USEC_PER_MSEC));
}

/* One look. 1 and *ret: the driver is there, and so are its GPUs · 0: not yet, and *failure says what is
 * missing · negative: it is no use to wait. */
static int look(const Options *options, Client **client, Tray *ret, Failure *failure) {
        CLEANUP(tray_done) Tray tray = {};
        int r = 0;

        if (!*client)
                r = client_open(options, client, failure);
        if (r >= 0)
                r = tray_read(*client, &tray, failure);
        if (r < 0 && failure->exit_code == CLI_NO_AGENT) {
                *client = client_free(*client);
                return 0;
        }
        if (r < 0)
                return r;

        if (tray.maintenance)
                return failure_set(failure, CLI_FAILED, "no GPU was reset: maintenance is on%s%s",
                                tray.maintenance_reason[0] ? ": " : "", tray.maintenance_reason);
        if (!streq(tray.driver_state, "ok")) {
                (void) failure_set(failure, CLI_FAILED, "no GPU was reset: the driver is %s%s%s",
                                tray.driver_state, tray.driver_error[0] ? ": " : "", tray.driver_error);
                refresh(*client);
                return 0;
        }
        *ret = tray;
        tray = (Tray){};
        return 1;
}

/* 0, *ret_client and *ret · negative at the deadline, and *failure says what is missing. */
static int wait_for_tray(
                const Options *options, usec_t deadline, Client **ret_client, Tray *ret, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;

        for (;;) {
                int r;

                r = look(options, &client, ret, failure);
                if (r > 0) {
                        *ret_client = take_ptr(&client);
                        return 0;
                }
                if (r < 0)
                        return r;
                if (time_left(deadline) < RETRY_USEC)
                        return -ETIMEDOUT;
                wait_a_moment(client);
        }
}

/* Those that were not reset in this boot. A lease is a tenant's, and not ours to end. */
static int choose_gpus(const Tray *tray, char ***ret, Failure *failure) {
        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];

                if (gpu->tenant[0])
                        return failure_set(failure, CLI_FAILED, "no GPU was reset: GPU %u is leased to %s",
                                        gpu->index, gpu->tenant);
                if (!streq(gpu->state, "clean") && strv_append(ret, gpu->uuid) < 0)
                        return failure_errno(failure, -ENOMEM, "no GPU was reset");
        }
        return 0;
}

static int reset_tray(const Options *options, usec_t deadline, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(strv_free_ptr) char **ids = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Options request = *options;
        int r;

        request.timeout_usec = 0; /* the one on the command line is for all of it, not for each call */
        r = wait_for_tray(&request, deadline, &client, &tray, failure);
        if (r >= 0)
                r = choose_gpus(&tray, &ids, failure);
        if (r < 0)
                return r;
        if (!ids) {
                if (!options->quiet)
                        print_line(stdout, "all %zu GPUs are clean in this boot already", tray.n_gpus);
                return 0;
        }

        r = boot_tenant(request.tenant, sizeof request.tenant);
        if (r < 0)
                return failure_errno(failure, r, "cannot read this boot's id");
        request.timeout_usec = time_left(deadline) > USEC_PER_SEC ? time_left(deadline) : USEC_PER_SEC;
        return reset_gpus(client, &request, ids, failure);
}

int verb_boot_reset(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        usec_t timeout = options->timeout_usec > 0 ? options->timeout_usec : BOOT_TIMEOUT_USEC;
        int r;

        r = config_load(options->config_path, &config, &message);
        if (r < 0)
                return fail_with(CLI_FAILED, "no GPU was reset: %s", message ?: strerror(-r));
        if (!config->handover.boot_reset) {
                if (!options->quiet)
                        print_line(stdout, "no GPU was reset: handover.boot-reset is off");
                return CLI_DONE;
        }

        r = process_exists("slurmstepd");
        if (r < 0)
                return fail_with(CLI_FAILED, "no GPU was reset: cannot look for running jobs: %s",
                                strerror(-r));
        if (r > 0)
                return fail_with(CLI_FAILED, "no GPU was reset: a Slurm job step runs on this tray");

        r = reset_tray(options, usec_add(now_monotonic_usec(), timeout), &failure);
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
