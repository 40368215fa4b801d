/* SPDX-License-Identifier: MIT */
/* gpuagentctl acquire and release: a tenant's booking of GPUs, and its end. */
#include "agent/base/text.h"
#include "cli/gpu-list.h"
#include "cli/lease.h"
#include "cli/own-job.h"

typedef struct Booking {
        const char *member; /* of the interface */
        const char *verb;
        const char *done; /* "GPUs 0,1 …" */
} Booking;

/* A container inside a Slurm job has its GPUs by the job's lease, whoever may or may not book. */
static bool has_them_by_its_job(Client *client, char **ids, const Options *options, const Failure *failure) {
        CLEANUP(failure_done) Failure ignored = {};
        CLEANUP(tray_done) Tray tray = {};
        char tenant[TENANT_MAX + 1];

        if ((!streq(failure->error, "Leased") && failure->exit_code != CLI_DENIED) ||
                        tray_read(client, &tray, &ignored) < 0 || own_job_has_gpus(&tray, ids, tenant) <= 0)
                return false;
        if (!options->quiet)
                print_line(stdout, "GPUs %s are had by %s, which this is part of", options->ids, tenant);
        return true;
}

static int run(const Booking *booking, const Options *given) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(strv_free_ptr) char **ids = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Options options = *given;
        int r;

        if (!options.tenant[0])
                return fail_with(
                                CLI_USAGE, "say for whom to %s GPUs, with --tenant or --job", booking->verb);
        r = client_open(&options, &client, &failure);
        if (r >= 0)
                r = gpu_list_for_agent(client, options.ids, &ids, &failure);
        if (r >= 0 && options.any_restart) {
                r = tray_read(client, &tray, &failure);
                if (r >= 0)
                        lease_find_restart(&tray, options.tenant);
        }
        if (r >= 0)
                r = client_call_for_tenant(client, booking->member, options.tenant, ids, &options,
                                request_timeout(&options), &failure);
        if (r < 0 && !options.host && streq(booking->verb, "acquire") &&
                        has_them_by_its_job(client, ids, &options, &failure))
                return CLI_DONE;
        if (r < 0)
                return failure_report(&failure);

        if (!options.quiet && options.ids)
                print_line(stdout, "GPUs %s %s %s", options.ids, booking->done, options.tenant);
        else if (!options.quiet)
                print_line(stdout, "%s has no GPUs any more", options.tenant);
        return CLI_DONE;
}

int verb_acquire(const Options *options, int argc, char **argv) {
        static const Booking booking = { "Acquire", "acquire", "booked for" };

        if (!options->ids)
                return fail_with(CLI_USAGE, "say which GPUs to acquire, with -i");
        return run(&booking, options);
}

int verb_release(const Options *options, int argc, char **argv) {
        static const Booking booking = { "Release", "release", "released by" };

        return run(&booking, options);
}
