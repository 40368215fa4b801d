/* SPDX-License-Identifier: MIT */
#include "dbus/bus-auth.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "agent/base/text.h"
#include "agent/log/journal.h"
#include "agent/log/log.h"
#include "agent/log/message-ids.h"
#include "dbus/bus-util.h"

#define CREDENTIALS_TIMEOUT_USEC     (10 * USEC_PER_SEC)
#define POLKIT_TIMEOUT_USEC          (10 * USEC_PER_SEC)
#define POLKIT_DIALOGUE_TIMEOUT_USEC (120 * USEC_PER_SEC)

/* CheckAuthorizationFlags of org.freedesktop.PolicyKit1.Authority */
#define POLKIT_ALLOW_USER_INTERACTION 1U

#define DENIALS_LOGGED_PER_MINUTE 6U

typedef struct Credentials {
        bool has_uid;
        uid_t uid;
        bool in_group;
} Credentials;

static int read_groups(sd_bus_message *msg, gid_t group, bool *ret_member) {
        const void *groups;
        size_t size;
        int r;

        r = sd_bus_message_enter_container(msg, 'v', "au");
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        r = sd_bus_message_read_array(msg, 'u', &groups, &size);
        if (r < 0)
                return r;

        *ret_member = false;
        for (size_t i = 0; group != (gid_t) -1 && i < size / sizeof(uint32_t); i++)
                if (((const uint32_t *) groups)[i] == group)
                        *ret_member = true;
        return sd_bus_message_exit_container(msg);
}

static int credentials_read(sd_bus_message *msg, gid_t group, Credentials *ret) {
        Credentials credentials = {};
        const char *name;
        uint32_t uid;
        int r;

        r = sd_bus_message_enter_container(msg, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(msg, 'e', "sv")) > 0) {
                r = sd_bus_message_read_basic(msg, 's', &name);
                if (r < 0)
                        return r;

                if (streq(name, "UnixUserID")) {
                        r = sd_bus_message_read(msg, "v", "u", &uid);
                        credentials.uid = uid;
                        credentials.has_uid = true;
                } else if (streq(name, "UnixGroupIDs"))
                        r = read_groups(msg, group, &credentials.in_group);
                else
                        r = sd_bus_message_skip(msg, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(msg);
        }
        if (r < 0)
                return r;

        *ret = credentials;
        return 0;
}

static int on_polkit_answer(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        BusCall *call = userdata;
        int authorized = 0, challenge = 0;

        /* No polkit, or one that does not answer, is a refusal like any other. */
        if (sd_bus_message_is_method_error(msg, NULL) ||
                        sd_bus_message_enter_container(msg, 'r', "bba{ss}") <= 0 ||
                        sd_bus_message_read(msg, "bb", &authorized, &challenge) <= 0)
                authorized = 0;
        bus_call_decide(call, authorized);
        return 0;
}

static int ask_polkit(BusCall *call) {
        CLEANUP(message_unref_ptr) sd_bus_message *question = NULL;
        sd_bus *bus = call->connection->bus;
        bool interactive = sd_bus_message_get_allow_interactive_authorization(call->message) > 0;
        int r;

        r = sd_bus_message_new_method_call(bus, &question, "org.freedesktop.PolicyKit1",
                        "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority",
                        "CheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(question, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                        sd_bus_message_get_sender(call->message), call->action, 0,
                        interactive ? POLKIT_ALLOW_USER_INTERACTION : 0U, "");
        if (r < 0)
                return r;
        return sd_bus_call_async(bus, &call->query, question, on_polkit_answer, call,
                        interactive ? POLKIT_DIALOGUE_TIMEOUT_USEC : POLKIT_TIMEOUT_USEC);
}

static int on_credentials(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        Credentials credentials = {};
        BusCall *call = userdata;

        /* A caller that is gone, or of whom the bus knows nothing, is nobody. */
        if (sd_bus_message_is_method_error(msg, NULL) ||
                        credentials_read(msg, call->connection->api->group, &credentials) < 0 ||
                        !credentials.has_uid) {
                bus_call_decide(call, false);
                return 0;
        }

        bus_call_identified(call, credentials.uid);
        if (credentials.uid == 0 || credentials.in_group) {
                bus_call_decide(call, true);
                return 0;
        }

        call->query = sd_bus_slot_unref(call->query);
        if (call->over_limit || ask_polkit(call) < 0)
                bus_call_decide(call, false);
        return 0;
}

int bus_auth_ask(BusCall *call, const char *sender) {
        CLEANUP(message_unref_ptr) sd_bus_message *question = NULL;
        sd_bus *bus = call->connection->bus;
        int r;

        r = sd_bus_message_new_method_call(bus, &question, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                        "org.freedesktop.DBus", "GetConnectionCredentials");
        if (r >= 0)
                r = sd_bus_message_append_basic(question, 's', sender);
        if (r < 0)
                return r;
        return sd_bus_call_async(
                        bus, &call->query, question, on_credentials, call, CREDENTIALS_TIMEOUT_USEC);
}

void bus_auth_log_denial(BusApi *api, uid_t uid, const char *member, const char *action) {
        usec_t now = now_monotonic_usec();
        JournalEntry entry;

        if (now - api->denials_since_usec > 60 * USEC_PER_SEC) {
                api->denials_since_usec = now;
                api->n_denials_logged = 0;
        }
        if (api->n_denials_logged++ >= DENIALS_LOGGED_PER_MINUTE)
                return;

        journal_begin(&entry, MESSAGE_ID_ACCESS_DENIED, LOG_NOTICE, AUDIT_IDENTIFIER);
        if (uid == (uid_t) -1)
                journal_add_format(&entry, "MESSAGE", "A caller that the bus does not know was refused %s",
                                member);
        else
                journal_add_format(&entry, "MESSAGE", "User %u was refused %s", (unsigned) uid, member);
        journal_add(&entry, "GPUAGENT_RESULT", action);
        journal_send(&entry);
}
