/* SPDX-License-Identifier: MIT */
/* A method call that is not answered yet: it waits for the answer to "who is that, and may they?", and then
 * perhaps for its request. It belongs to its caller: when the caller leaves, it is forgotten, and its
 * request goes on without it. */
#pragma once

#include "dbus/bus-api.h"

#define ACTION_RESET         "org.gpuagent1.reset"
#define ACTION_PROBE         "org.gpuagent1.probe"
#define ACTION_MANAGE        "org.gpuagent1.manage"
#define ACTION_SET_PARTITION "org.gpuagent1.set-partition"

/* Calls that one user may have waiting at a time, and root. */
#define BUS_CALLS_PER_USER 128U
#define BUS_CALLS_OF_ROOT  2048U

/* All of them, on the system bus: each is looked at for each. */
#define BUS_CALLS_MAX 4096U

typedef enum BusCallState {
        BUS_CALL_ASKED, /* a question is out */
        BUS_CALL_ALLOWED,
        BUS_CALL_REFUSED,
} BusCallState;

struct BusCall {
        BusConnection *connection;
        sd_bus_message *message;
        const char *action;
        BusCallState state;
        uid_t uid; /* (uid_t) -1: not known yet */
        bool over_limit;
        sd_bus_slot *query;
        Request *request;
        BusCall *next;
};

/* Answers whether the caller may do `action`: root, access.group, or whom polkit allows. It may be asked in
 * a handler that has changed nothing so far; with 0 the handler returns 1, and is called again with the same
 * message later. 1 and *ret (to be freed by the handler, or when the call is answered) · 0 a question is out
 * · -EACCES refused: the error is set · -errno. */
int bus_authorize(BusConnection *connection, sd_bus_message *msg, const char *action, BusCall **ret,
                sd_bus_error *error);

/* The same for a method that has an answer for everyone: a refusal is not logged. */
int bus_authorize_quietly(BusConnection *connection, sd_bus_message *msg, const char *action, BusCall **ret,
                sd_bus_error *error);

/* What bus-auth.c has learnt of the call. After bus_call_decide() the call may be gone. */
void bus_call_identified(BusCall *call, uid_t uid);
void bus_call_decide(BusCall *call, bool allowed);

/* Abandons its request, if it has one. Returns NULL. */
BusCall* bus_call_free(BusCall *call);

/* All calls of a connection. */
void bus_calls_abandon(BusConnection *connection);

DEFINE_CLEANUP(BusCall, bus_call_free_ptr, bus_call_free)
