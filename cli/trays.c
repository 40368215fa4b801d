/* SPDX-License-Identifier: MIT */
#include "cli/trays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/base/text.h"
#include "agent/config/client-config.h"
#include "cli/gpu-owner.h"
#include "cli/hosts.h"

/* How many logins are under way at a time. */
#define ASKED_MAX 128

/* Open files that are no tray's. */
#define FILES_ELSE 64

void host_trays_done(HostTrays *trays) {
        for (size_t i = 0; i < trays->n_trays; i++) {
                tray_done(&trays->trays[i].tray);
                (void) client_free(trays->trays[i].client);
                failure_done(&trays->trays[i].failure);
        }
        free(trays->trays);
        (void) sd_event_unref(trays->event);
        *trays = (HostTrays){};
}

static int hosts_without_list(const ClientConfig *config, char **named, char ***ret, Failure *failure) {
        CLEANUP(strv_free_ptr) char **hosts = NULL;
        char name[256];
        int r = 0;

        STRV_FOREACH (host, config->trays ?: named)
                if (r >= 0)
                        r = strv_append(&hosts, *host);
        if (r >= 0 && !hosts) {
                host_name_local(name, sizeof name);
                r = strv_append(&hosts, name);
        }
        if (r < 0)
                return failure_errno(failure, r, "cannot read the list of trays");

        *ret = take_ptr(&hosts);
        return 0;
}

int host_trays_named(const Options *options, char **named, ClientConfig **ret_config, char ***ret_hosts,
                Failure *failure) {
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        int r;

        r = client_config_load(options->config_path, &config, &message);
        if (r < 0)
                return failure_set(failure, CLI_FAILED, "%s", message ?: strerror(-r));
        r = options->hosts ? hosts_parse(options->hosts, ret_hosts, failure)
                           : hosts_without_list(config, named, ret_hosts, failure);
        if (r < 0)
                return r;

        *ret_config = take_ptr(&config);
        return 0;
}

/* Each has two files here. Where that is not allowed, the last ones will say so. */
static void allow_files(size_t n) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max ||
                        limit.rlim_cur > 2 * n + FILES_ELSE)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
}

static void open_and_ask(HostTray *tray, sd_event *event, const Options *options, TrayQuestion *question) {
        Options one = *options;
        int r;

        one.host = host_is_local(tray->host) ? NULL : tray->host;
        one.batch = true;
        r = client_open(&one, &tray->client, &tray->failure);
        if (r < 0)
                return;
        r = client_attach(tray->client, event);
        if (r < 0)
                (void) failure_errno(&tray->failure, r, "cannot wait for it");
        else
                (void) tray_ask(tray->client, question, &tray->failure);
}

int host_trays_read(const Options *options, char **hosts, HostTrays *ret) {
        CLEANUP(host_trays_done) HostTrays trays = {};
        CLEANUP(free_ptr) TrayQuestion *questions = NULL;
        size_t n = strv_length(hosts);
        int r;

        questions = calloc(n + 1, sizeof *questions);
        trays.trays = calloc(n + 1, sizeof *trays.trays);
        if (!questions || !trays.trays)
                return -ENOMEM;
        trays.n_trays = n;
        r = sd_event_new(&trays.event);
        if (r < 0)
                return r;

        allow_files(n);
        for (size_t i = 0, n_asked = 0; i < n; i++) {
                HostTray *tray = &trays.trays[i];

                for (; n_asked < n && n_asked < i + ASKED_MAX; n_asked++) {
                        trays.trays[n_asked].host = hosts[n_asked];
                        trays.trays[n_asked].name = host_name(hosts[n_asked]);
                        open_and_ask(&trays.trays[n_asked], trays.event, options, &questions[n_asked]);
                }
                if (host_tray_is_there(tray))
                        (void) tray_answer(tray->client, &questions[i], &tray->tray, &tray->failure);
                tray_question_done(&questions[i]);
                if (!host_tray_is_there(tray))
                        tray->client = client_free(tray->client);
        }

        *ret = trays;
        trays = (HostTrays){};
        return 0;
}

int host_trays_check_owners(const HostTrays *trays, Failure *failure) {
        CLEANUP(free_ptr) GpuOwner *owners = NULL;
        const GpuOwner *found;
        const char *other;
        size_t n = 0;

        for (size_t i = 0; i < trays->n_trays; i++)
                n += trays->trays[i].tray.n_gpus;
        owners = calloc(n + 1, sizeof *owners);
        if (!owners)
                return failure_errno(failure, -ENOMEM, "cannot compare the trays");
        n = 0;
        for (size_t i = 0; i < trays->n_trays; i++)
                for (size_t k = 0; k < trays->trays[i].tray.n_gpus; k++)
                        owners[n++] = (GpuOwner){ .uuid = trays->trays[i].tray.gpus[k].uuid,
                                .tray = trays->trays[i].name };

        found = gpu_owner_find_double(owners, n, &other);
        if (!found)
                return 0;
        return failure_set(failure, CLI_USAGE, GPU_OWNER_DOUBLE, found->tray, other, found->uuid);
}

void host_tray_node(const HostTray *tray, char ret[static HOST_NAME_MAX + 1]) {
        const char *name = tray->name;
        bool address = name[strspn(name, "0123456789.")] == '\0';

        (void) snprintf(ret, HOST_NAME_MAX + 1, "%.*s", (int) (address ? strlen(name) : strcspn(name, ".")),
                        name);
}

void host_tray_report(const HostTray *tray) {
        print_complaint("%s: %s", tray->name, tray->failure.message ?: "out of memory");
}
