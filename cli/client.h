/* SPDX-License-Identifier: MIT */
/* The connection to the agent: for root by its private socket, else, and for everybody, on the system
 * bus; to that of another tray over ssh. Nothing here waits without a deadline of its own. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agent/base/clock.h"
#include "cli/options.h"
#include "cli/print.h"

#define MANAGER_PATH      "/org/gpuagent1"
#define MANAGER_INTERFACE "org.gpuagent1.Manager"
#define GPU_INTERFACE     "org.gpuagent1.GPU"

DEFINE_CLEANUP(sd_bus_message, message_unref_ptr, sd_bus_message_unref)

typedef struct Client Client;

/* A call that is out. Zero at first. */
typedef struct Call {
        sd_bus_slot *slot;
        sd_bus_message *reply; /* NULL until it is there */
        usec_t deadline_usec;  /* monotonic */
} Call;

void call_done(Call *call);

/* Connects, to the tray of options->host if there is one. The options' timeout holds for its calls, and
 * for each way to the agent. 0 and *ret · negative, and *failure says why (CLI_NO_AGENT). ssh is not
 * waited for: what is wrong with the way to the tray is told by the first call. */
int client_open(const Options *options, Client **ret, Failure *failure);

/* Has several clients share a loop: while one is waited for, the others' calls go on, too. 0 · negative
 * errno. */
int client_attach(Client *client, sd_event *event);
Client* client_free(Client *client);

DEFINE_CLEANUP(Client, client_free_ptr, client_free)

/* A method call of org.gpuagent1 on this connection. 0 and *ret · negative errno. */
int client_message_new(Client *client, const char *path, const char *interface, const char *member,
                sd_bus_message **ret);

/* Sends it; the answer is waited for by client_finish(), so that two calls cost one round trip. A timeout of
 * 0 is that for an answer which needs no work on a GPU. 0 · negative, and *failure says why. */
int client_start(Client *client, sd_bus_message *message, usec_t timeout_usec, Call *call, Failure *failure);

/* Waits for the answer; signals are handled meanwhile. 0 and *ret_reply (may be NULL) · negative, and
 * *failure has the agent's message and the exit code for it. */
int client_finish(Client *client, Call *call, sd_bus_message **ret_reply, Failure *failure);

/* Both in one. */
int client_call(Client *client, sd_bus_message *message, usec_t timeout_usec, sd_bus_message **ret_reply,
                Failure *failure);

/* A call of org.gpuagent1.Manager with arguments of these types ("" for none). As client_call(). */
int client_call_manager(Client *client, const char *member, usec_t timeout_usec, sd_bus_message **ret_reply,
                Failure *failure, const char *types, ...);

/* Has `handler` called for every signal of the agent, while client_finish() or client_wait() run, until
 * *ret_slot is unrefed (NULL: as long as the connection). 0 · negative errno. */
int client_subscribe(
                Client *client, sd_bus_message_handler_t handler, void *userdata, sd_bus_slot **ret_slot);

/* Handles what comes. Returns when something was handled: 1 · at the deadline (monotonic): 0 · when the
 * agent is gone: negative, and *failure says so. */
int client_wait(Client *client, usec_t deadline_usec, Failure *failure);

/* Appends the ids (a strv) and the options a{sv} as Reset, Acquire, Release, Verify and ListProcesses take
 * them: what was given on the command line, and the timeout if it is not 0. 0 · negative errno. */
int message_append_request(sd_bus_message *message, char **ids, const Options *options);

/* Reset, Verify or ListProcesses of these GPUs. As client_call(). */
int client_call_for_gpus(Client *client, const char *member, char **ids, const Options *options,
                usec_t timeout_usec, sd_bus_message **ret_reply, Failure *failure);

/* Acquire or Release for a tenant. As client_call(). */
int client_call_for_tenant(Client *client, const char *member, const char *tenant, char **ids,
                const Options *options, usec_t timeout_usec, Failure *failure);

/* How long to wait for the answer to a request with these options that works on GPUs. */
usec_t request_timeout(const Options *options);

/* The exit code for an error name of the bus. */
CliExit exit_from_bus_error(const char *name);
