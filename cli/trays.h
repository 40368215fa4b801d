/* SPDX-License-Identifier: MIT */
/* Several trays at once in one process, for what has to know all of them: the answers come in parallel,
 * by one event loop, and a tray that does not answer costs no more than its own deadline. */
#pragma once

#include <limits.h>

#include "agent/config/client-config.h"
#include "cli/gpu.h"

typedef struct HostTray {
        const char *host; /* borrowed: "[USER@]TRAY" */
        const char *name; /* TRAY of it */
        Client *client;   /* NULL: there is no way to it */
        Tray tray;        /* as it answered; without GPUs if it did not */
        Failure failure;  /* what is wrong with it; its exit code is CLI_DONE if nothing is */
} HostTray;

typedef struct HostTrays {
        HostTray *trays; /* in the order of the hosts */
        size_t n_trays;
        sd_event *event;
} HostTrays;

void host_trays_done(HostTrays *trays);

/* Reads the configuration and lists the trays that a verb is about: those of -H, else client.trays, else
 * `named` (a strv, or NULL), else this one. 0, *ret_config and *ret_hosts (a strv), both to be freed ·
 * negative, and *failure says what is wrong. */
int host_trays_named(const Options *options, char **named, ClientConfig **ret_config, char ***ret_hosts,
                Failure *failure);

/* Connects to all hosts (a strv, which stays the caller's) and reads what their agents say. What then is
 * sent with client_start() to some of them, and waited for with client_finish(), goes on in parallel,
 * too. 0 and *ret (to be given to host_trays_done), each tray with its failure · negative errno: for none
 * of them. */
int host_trays_read(const Options *options, char **hosts, HostTrays *ret);

/* Whether each GPU is on one of the trays only. 0 · negative, and *failure says which two are one. */
int host_trays_check_owners(const HostTrays *trays, Failure *failure);

/* Whether the tray has answered. */
static inline bool host_tray_is_there(const HostTray *tray) {
        return tray->failure.exit_code == CLI_DONE;
}

/* The tray as Slurm's node: the name that it was asked by, without a domain. What it calls itself does
 * not count: it could take another one's place. */
void host_tray_node(const HostTray *tray, char ret[static HOST_NAME_MAX + 1]);

/* Says "gpuagentctl: TRAY: MESSAGE" on stderr. */
void host_tray_report(const HostTray *tray);
