/* SPDX-License-Identifier: MIT */
#include "cli/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "cli/ssh.h"

#define PRIVATE_SOCKET "/run/gpuagent/private"
#define AGENT_NAME     "org.gpuagent1"

/* The agent's loop never blocks, so accepting and authenticating is a matter of milliseconds. The timeouts
 * of calls do not run until that is done, and sd-bus alone would wait for 90 s. */
#define CONNECT_TIMEOUT_USEC (5 * USEC_PER_SEC)

/* The same over ssh, which may have to ask a person for a password. */
#define SSH_TIMEOUT_USEC    (15 * USEC_PER_SEC)
#define PERSON_TIMEOUT_USEC (120 * USEC_PER_SEC)

/* What we wait longer than the agent, so that its own answer at its deadline still arrives. */
#define ANSWER_MARGIN_USEC (5 * USEC_PER_SEC)

/* For an answer that needs no work on a GPU, and for one that does: the agent has deadlines of its own for
 * each step of that, and what it says then is worth more than our giving up. */
#define READ_TIMEOUT_USEC (25 * USEC_PER_SEC)
#define WORK_TIMEOUT_USEC (900 * USEC_PER_SEC)

#define NOT_RUNNING   "gpuagentd is not running; start it with: systemctl start gpuagentd"
#define NOT_ANSWERING "gpuagentd does not answer; see: systemctl status gpuagentd"
#define WENT_AWAY     "gpuagentd went away before it answered"

struct Client {
        sd_bus *bus;
        const char *destination; /* NULL on the private socket, where there is nobody else */
        usec_t read_timeout_usec;
        sd_event *event; /* NULL: it has no loop to share */
        Ssh ssh;
        usec_t ssh_deadline_usec; /* by then the way to the tray is open; USEC_INFINITY once it is */
};

DEFINE_CLEANUP(sd_bus, bus_close_ptr, sd_bus_close_unref)

void call_done(Call *call) {
        (void) sd_bus_slot_unref(call->slot);
        (void) sd_bus_message_unref(call->reply);
        *call = (Call){};
}

Client* client_free(Client *client) {
        if (!client)
                return NULL;
        (void) sd_bus_close_unref(client->bus);
        (void) sd_event_unref(client->event);
        ssh_done(&client->ssh);
        free(client);
        return NULL;
}

/* Waits until the other side has accepted us. 0 · -ETIMEDOUT · -errno. */
static int bus_wait_ready(sd_bus *bus, usec_t timeout_usec) {
        usec_t deadline = now_monotonic_usec() + timeout_usec;

        for (;;) {
                usec_t now;
                int r;

                r = sd_bus_is_ready(bus);
                if (r != 0)
                        return r < 0 ? r : 0;
                r = sd_bus_process(bus, NULL);
                if (r < 0)
                        return r;
                if (r > 0)
                        continue;

                now = now_monotonic_usec();
                if (now >= deadline)
                        return -ETIMEDOUT;
                r = sd_bus_wait(bus, deadline - now);
                if (r < 0 && r != -EINTR)
                        return r;
        }
}

static int open_private(usec_t timeout_usec, sd_bus **ret) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_address(bus, "unix:path=" PRIVATE_SOCKET);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r >= 0)
                r = bus_wait_ready(bus, timeout_usec);
        if (r < 0)
                return r;

        *ret = take_ptr(&bus);
        return 0;
}

static int open_system(usec_t timeout_usec, sd_bus **ret) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int r;

        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = bus_wait_ready(bus, timeout_usec);
        if (r < 0)
                return r;

        *ret = take_ptr(&bus);
        return 0;
}

/* As systemctl -H does it: the tray's own system bus, with the rights of whom ssh logs in. Nothing is
 * waited for. */
static int open_ssh(Client *client, const char *host, bool batch) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int fd, r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = ssh_start(host, "systemd-stdio-bridge", batch, &client->ssh, &fd);
        if (r < 0)
                return r;

        r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        r = sd_bus_set_bus_client(bus, true);
        if (r < 0)
                return r;

        client->bus = take_ptr(&bus);
        client->destination = AGENT_NAME;
        return 0;
}

/* The connection has ended, or never began. Returns -EIO. */
static int client_lost(Client *client, Failure *failure) {
        if (client->ssh.pid > 0)
                return ssh_failure(&client->ssh,
                                client->ssh_deadline_usec == USEC_INFINITY
                                                ? "the connection was lost"
                                                : "ssh reaches no system bus there (by "
                                                  "systemd-stdio-bridge)",
                                failure);
        return failure_set(failure, CLI_NO_AGENT, WENT_AWAY);
}

static int client_open_ssh(Client *client, const Options *options, Failure *failure) {
        bool batch = options->batch || !isatty(STDIN_FILENO);
        usec_t timeout = batch ? SSH_TIMEOUT_USEC : PERSON_TIMEOUT_USEC;
        int r;

        if (options->timeout_usec > 0 && options->timeout_usec < timeout)
                timeout = options->timeout_usec;
        client->ssh_deadline_usec = usec_add(now_monotonic_usec(), timeout);
        r = open_ssh(client, options->host, batch);
        if (r < 0)
                return failure_set(failure, CLI_NO_AGENT, "cannot run ssh: %s", strerror(-r));
        r = sd_bus_start(client->bus);
        return r < 0 ? client_lost(client, failure) : 0; /* an ssh that fails at once is gone by then */
}

static int client_open_local(Client *client, Failure *failure) {
        usec_t connect_usec = client->read_timeout_usec < CONNECT_TIMEOUT_USEC ? client->read_timeout_usec
                                                                               : CONNECT_TIMEOUT_USEC;
        int r = -ENOENT;

        if (geteuid() == 0)
                r = open_private(connect_usec, &client->bus);
        /* An agent that hangs would hang on the bus too. Any other failure leaves that way to try. */
        if (r == -ETIMEDOUT || r == -EAGAIN)
                return failure_set(failure, CLI_NO_AGENT, NOT_ANSWERING);
        if (r < 0) {
                client->destination = AGENT_NAME;
                r = open_system(connect_usec, &client->bus);
        }
        if (r == -ENOMEM)
                return failure_errno(failure, r, "cannot connect to gpuagentd");
        if (r < 0 && geteuid() == 0)
                return failure_set(failure, CLI_NO_AGENT, NOT_RUNNING);
        if (r < 0)
                return failure_set(failure, CLI_NO_AGENT, "cannot reach gpuagentd: the system bus: %s",
                                strerror(-r));
        return 0;
}

int client_open(const Options *options, Client **ret, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        client = calloc(1, sizeof *client);
        if (!client)
                return failure_errno(failure, -ENOMEM, "cannot connect to gpuagentd");

        client->read_timeout_usec = options->timeout_usec > 0 ? options->timeout_usec : READ_TIMEOUT_USEC;
        client->ssh_deadline_usec = USEC_INFINITY;
        r = options->host ? client_open_ssh(client, options, failure) : client_open_local(client, failure);
        if (r < 0)
                return r;

        *ret = take_ptr(&client);
        return 0;
}

int client_attach(Client *client, sd_event *event) {
        int r;

        r = sd_bus_attach_event(client->bus, event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        client->event = sd_event_ref(event);
        return 0;
}

int client_message_new(Client *client, const char *path, const char *interface, const char *member,
                sd_bus_message **ret) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = sd_bus_message_new_method_call(
                        client->bus, &message, client->destination, path, interface, member);
        if (r >= 0) /* an agent that was stopped stays stopped */
                r = sd_bus_message_set_auto_start(message, false);
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(message, isatty(STDIN_FILENO));
        if (r < 0)
                return r;

        *ret = take_ptr(&message);
        return 0;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Call *call = userdata;

        call->reply = sd_bus_message_ref(reply);
        return 1;
}

int client_start(
                Client *client, sd_bus_message *message, usec_t timeout_usec, Call *call, Failure *failure) {
        int r;

        /* The deadline is ours, so that "too late" and "gone" can be told apart: sd-bus calls both
         * NoReply. */
        r = sd_bus_call_async(client->bus, &call->slot, message, on_reply, call, USEC_INFINITY);
        if (r == -ENOTCONN)
                return failure_set(failure, CLI_NO_AGENT, "gpuagentd went away");
        if (r < 0)
                return failure_errno(failure, r, "cannot send to gpuagentd");
        call->deadline_usec = usec_add(
                        now_monotonic_usec(), timeout_usec > 0 ? timeout_usec : client->read_timeout_usec);
        return 0;
}

static const struct {
        const char *name;
        CliExit exit_code;
} bus_errors[] = {
        { AGENT_NAME ".Error.NoSuchGPU", CLI_NO_GPU },
        { SD_BUS_ERROR_INVALID_ARGS, CLI_USAGE },
        { SD_BUS_ERROR_ACCESS_DENIED, CLI_DENIED },
        { SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, CLI_DENIED },
        { SD_BUS_ERROR_SERVICE_UNKNOWN, CLI_NO_AGENT },
        { SD_BUS_ERROR_NAME_HAS_NO_OWNER, CLI_NO_AGENT },
        { SD_BUS_ERROR_NO_REPLY, CLI_NO_AGENT },
        { SD_BUS_ERROR_DISCONNECTED, CLI_NO_AGENT },
};

CliExit exit_from_bus_error(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(bus_errors); i++)
                if (streq(name, bus_errors[i].name))
                        return bus_errors[i].exit_code;
        return CLI_FAILED;
}

static int failure_from_bus_error(Client *client, Failure *failure, const sd_bus_error *error) {
        CliExit exit_code = exit_from_bus_error(error->name);

        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
                        sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED))
                return client_lost(client, failure);
        if (exit_code == CLI_NO_AGENT)
                return failure_set(failure, exit_code, NOT_RUNNING);
        (void) failure_set(failure, exit_code, "%s",
                        error->message && error->message[0] ? error->message : error->name);
        if (startswith(error->name, AGENT_NAME ".Error."))
                (void) snprintf(failure->error, sizeof failure->error, "%s",
                                error->name + strlen(AGENT_NAME ".Error."));
        return -EIO;
}

int client_finish(Client *client, Call *call, sd_bus_message **ret_reply, Failure *failure) {
        while (!call->reply) {
                int r;

                r = client_wait(client, call->deadline_usec, failure);
                if (r < 0)
                        return r;
                if (r == 0)
                        return failure_set(failure, CLI_NO_AGENT, NOT_ANSWERING);
        }

        if (sd_bus_message_is_method_error(call->reply, NULL))
                return failure_from_bus_error(client, failure, sd_bus_message_get_error(call->reply));
        if (ret_reply)
                *ret_reply = take_ptr(&call->reply);
        return 0;
}

int client_call(Client *client, sd_bus_message *message, usec_t timeout_usec, sd_bus_message **ret_reply,
                Failure *failure) {
        CLEANUP(call_done) Call call = {};
        int r;

        r = client_start(client, message, timeout_usec, &call, failure);
        if (r < 0)
                return r;
        return client_finish(client, &call, ret_reply, failure);
}

int client_call_manager(Client *client, const char *member, usec_t timeout_usec, sd_bus_message **ret_reply,
                Failure *failure, const char *types, ...) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        va_list arguments;
        int r;

        r = client_message_new(client, MANAGER_PATH, MANAGER_INTERFACE, member, &message);
        if (r >= 0) {
                va_start(arguments, types);
                r = sd_bus_message_appendv(message, types, arguments);
                va_end(arguments);
        }
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd for %s", member);
        return client_call(client, message, timeout_usec, ret_reply, failure);
}

int client_subscribe(
                Client *client, sd_bus_message_handler_t handler, void *userdata, sd_bus_slot **ret_slot) {
        int r;

        r = sd_bus_match_signal_async(client->bus, ret_slot, client->destination, NULL, NULL, NULL, handler,
                        NULL, userdata);
        return r < 0 ? r : 0;
}

/* Whether the way to the tray is open yet. 0: it is, or may still be · negative, and *failure says that
 * it is not. */
static int check_ssh(Client *client, usec_t now, Failure *failure) {
        if (client->ssh_deadline_usec == USEC_INFINITY)
                return 0;
        if (sd_bus_is_ready(client->bus) > 0)
                client->ssh_deadline_usec = USEC_INFINITY;
        else if (now >= client->ssh_deadline_usec)
                return failure_set(
                                failure, CLI_NO_AGENT, "ssh does not get through to its system bus in time");
        return 0;
}

/* One turn of what the client waits by. 1: something was handled · 0: nothing by the deadline · negative
 * errno: its connection is gone. */
static int client_turn(Client *client, usec_t now, usec_t deadline_usec) {
        usec_t timeout = deadline_usec == USEC_INFINITY ? USEC_INFINITY
                        : deadline_usec > now           ? deadline_usec - now
                                                        : 0;
        int r;

        if (client->event) {
                r = sd_bus_is_open(client->bus);
                if (r <= 0)
                        return r < 0 ? r : -ECONNRESET;
                return sd_event_run(client->event, timeout);
        }

        r = sd_bus_process(client->bus, NULL);
        if (r != 0 || timeout == 0)
                return r;
        r = sd_bus_wait(client->bus, timeout);
        return r < 0 && r != -EINTR ? r : 0;
}

int client_wait(Client *client, usec_t deadline_usec, Failure *failure) {
        for (;;) {
                usec_t now = now_monotonic_usec();
                int r;

                r = check_ssh(client, now, failure);
                if (r < 0)
                        return r;
                r = client_turn(client, now,
                                deadline_usec < client->ssh_deadline_usec ? deadline_usec
                                                                          : client->ssh_deadline_usec);
                if (r > 0)
                        return 1;
                if (r < 0)
                        return client_lost(client, failure);
                if (now >= deadline_usec)
                        return 0;
        }
}

static int append_option(sd_bus_message *message, const char *name, const char *value) {
        return value && value[0] != '\0' ? sd_bus_message_append(message, "{sv}", name, "s", value) : 0;
}

int message_append_request(sd_bus_message *message, char **ids, const Options *options) {
        int r;

        r = sd_bus_message_append_strv(message, ids);
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'a', "{sv}");
        if (r >= 0)
                r = append_option(message, "tenant", options->tenant);
        if (r >= 0)
                r = append_option(message, "identifier", options->identifier);
        if (r >= 0 && options->timeout_usec > 0)
                r = sd_bus_message_append(message, "{sv}", "timeout-usec", "t", options->timeout_usec);
        if (r >= 0 && !options->wait)
                r = sd_bus_message_append(message, "{sv}", "wait", "b", false);
        if (r >= 0 && options->shared)
                r = sd_bus_message_append(message, "{sv}", "shared", "b", true);
        if (r >= 0 && options->force)
                r = sd_bus_message_append(message, "{sv}", "force", "b", true);
        if (r >= 0 && options->checks)
                r = sd_bus_message_append(message, "{sv}", "checks", "b", true);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        return r < 0 ? r : 0;
}

int client_call_for_gpus(Client *client, const char *member, char **ids, const Options *options,
                usec_t timeout_usec, sd_bus_message **ret_reply, Failure *failure) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = client_message_new(client, MANAGER_PATH, MANAGER_INTERFACE, member, &message);
        if (r >= 0)
                r = message_append_request(message, ids, options);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd for %s", member);
        return client_call(client, message, timeout_usec, ret_reply, failure);
}

int client_call_for_tenant(Client *client, const char *member, const char *tenant, char **ids,
                const Options *options, usec_t timeout_usec, Failure *failure) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = client_message_new(client, MANAGER_PATH, MANAGER_INTERFACE, member, &message);
        if (r >= 0)
                r = sd_bus_message_append(message, "s", tenant);
        if (r >= 0)
                r = message_append_request(message, ids, options);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask gpuagentd for %s", member);
        return client_call(client, message, timeout_usec, NULL, failure);
}

usec_t request_timeout(const Options *options) {
        return options->timeout_usec > 0 ? usec_add(options->timeout_usec, ANSWER_MARGIN_USEC)
                                         : WORK_TIMEOUT_USEC;
}
