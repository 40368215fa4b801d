/* SPDX-License-Identifier: MIT */
#include "dbus/bus-call.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/text.h"
#include "dbus/bus-auth.h"

BusCall* bus_call_free(BusCall *call) {
        BusApi *api;

        if (!call)
                return NULL;
        api = call->connection->api;

        for (BusCall **link = &api->calls; *link; link = &(*link)->next)
                if (*link == call) {
                        *link = call->next;
                        break;
                }

        if (call->request)
                request_abandon(call->request);
        if (--call->connection->n_calls == 0)
                call->connection->watch = sd_bus_slot_unref(call->connection->watch);
        api->n_calls--;
        (void) sd_bus_slot_unref(call->query);
        (void) sd_bus_message_unref(call->message);
        free(call);
        return NULL;
}

void bus_calls_abandon(BusConnection *connection) {
        BusCall *next;

        for (BusCall *call = connection->api->calls; call; call = next) {
                next = call->next;
                if (call->connection == connection)
                        (void) bus_call_free(call);
        }
}

static int call_new(BusConnection *connection, sd_bus_message *msg, const char *action, BusCall **ret) {
        BusCall *call;

        call = calloc(1, sizeof *call);
        if (!call)
                return -ENOMEM;
        *call = (BusCall){
                .connection = connection,
                .message = sd_bus_message_ref(msg),
                .action = action,
                .uid = (uid_t) -1,
                .next = connection->api->calls,
        };
        connection->api->calls = call;
        connection->api->n_calls++;
        connection->n_calls++;
        *ret = call;
        return 0;
}

static BusCall* call_find(BusApi *api, const sd_bus_message *msg) {
        for (BusCall *call = api->calls; call; call = call->next)
                if (call->message == msg)
                        return call;
        return NULL;
}

/* Before its user is known, a caller is counted by its name on the bus. */
static bool sender_over_limit(const BusApi *api, const char *sender) {
        size_t n = 0;

        for (const BusCall *call = api->calls; call; call = call->next) {
                const char *other = sd_bus_message_get_sender(call->message);

                if (!call->connection->trusted && other && streq(other, sender))
                        n++;
        }
        return n >= BUS_CALLS_PER_USER;
}

static unsigned user_limit(uid_t uid) {
        return uid == 0 ? BUS_CALLS_OF_ROOT : BUS_CALLS_PER_USER;
}

static bool user_over_limit(const BusCall *call) {
        size_t n = 0;

        for (const BusCall *other = call->connection->api->calls; other; other = other->next)
                if (other != call && other->uid == call->uid)
                        n++;
        return n >= user_limit(call->uid);
}

void bus_call_decide(BusCall *call, bool allowed) {
        call->query = sd_bus_slot_unref(call->query);
        call->state = allowed ? BUS_CALL_ALLOWED : BUS_CALL_REFUSED;

        /* Without a second round the caller gets no answer, and its own timeout tells it. */
        if (sd_bus_enqueue_for_read(call->connection->bus, call->message) < 0)
                (void) bus_call_free(call);
}

void bus_call_identified(BusCall *call, uid_t uid) {
        call->uid = uid;
        call->over_limit = user_over_limit(call);
}

static int on_name_lost(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        BusConnection *connection = userdata;
        const char *name;
        BusCall *next;

        if (sd_bus_message_read(msg, "s", &name) <= 0)
                return 0;
        for (BusCall *call = connection->api->calls; call; call = next) {
                next = call->next;
                if (call->connection == connection && streq(sd_bus_message_get_sender(call->message), name))
                        (void) bus_call_free(call);
        }
        return 0;
}

/* One rule for whoever leaves, while any call waits: the bus limits the rules of a connection and ends one
 * that fails to add its own, so a rule a caller would be a way for callers to cut us off. It goes out before
 * the first question: a caller that leaves in between makes the question fail. */
static int watch_callers(BusConnection *connection) {
        if (connection->watch)
                return 0;
        return sd_bus_add_match_async(connection->bus, &connection->watch,
                        "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                        "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                        on_name_lost, NULL, connection);
}

static int limit_reached(uid_t uid, sd_bus_error *error) {
        return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "More than %u calls of one user are waiting", user_limit(uid));
}

static int authorize_first(
                BusConnection *connection, sd_bus_message *msg, const char *action, sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        const char *sender = sd_bus_message_get_sender(msg);
        int r;

        if (!sender)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "The caller is not known");
        if (sender_over_limit(connection->api, sender))
                return limit_reached((uid_t) -1, error);
        if (connection->api->n_calls >= BUS_CALLS_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "Too many calls are waiting");

        r = call_new(connection, msg, action, &call);
        if (r < 0)
                return r;
        r = watch_callers(connection);
        if (r >= 0)
                r = bus_auth_ask(call, sender);
        if (r < 0)
                return r;

        (void) take_ptr(&call); /* it is on the list */
        return 0;
}

static const char* admin_group(const BusApi *api) {
        const char *group = manager_config(api->manager)->access.group;

        return group[0] != '\0' ? group : "no group";
}

int bus_authorize_quietly(BusConnection *connection, sd_bus_message *msg, const char *action, BusCall **ret,
                sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        int r;

        if (connection->trusted) {
                r = call_new(connection, msg, action, &call);
                if (r < 0)
                        return r;
                bus_call_identified(call, 0);
                if (call->over_limit)
                        return limit_reached(call->uid, error);
                *ret = take_ptr(&call);
                return 1;
        }

        call = call_find(connection->api, msg);
        if (!call)
                return authorize_first(connection, msg, action, error);

        if (call->state == BUS_CALL_ASKED) {
                (void) take_ptr(&call); /* still on the list */
                return 0;
        }
        if (call->over_limit)
                return limit_reached(call->uid, error);
        if (call->state == BUS_CALL_REFUSED) {
                (void) sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
                                "%s is for root, members of %s, and whom polkit allows %s",
                                sd_bus_message_get_member(msg), admin_group(connection->api), action);
                return -EACCES;
        }

        *ret = take_ptr(&call);
        return 1;
}

int bus_authorize(BusConnection *connection, sd_bus_message *msg, const char *action, BusCall **ret,
                sd_bus_error *error) {
        const BusCall *call = call_find(connection->api, msg);
        uid_t uid = call ? call->uid : (uid_t) -1;
        int r;

        r = bus_authorize_quietly(connection, msg, action, ret, error);
        if (r == -EACCES)
                bus_auth_log_denial(connection->api, uid, sd_bus_message_get_member(msg), action);
        return r;
}
