/* SPDX-License-Identifier: MIT */
#include "dbus/bus-request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "agent/base/clock.h"
#include "agent/base/text-stream.h"
#include "agent/core/verify.h"
#include "agent/log/journal.h"
#include "agent/log/log.h"
#include "agent/log/message-ids.h"
#include "dbus/bus-auth.h"
#include "dbus/bus-call.h"
#include "dbus/bus-error.h"
#include "dbus/bus-objects.h"
#include "dbus/bus-util.h"

static const char *const action_table[_REQUEST_KIND_MAX] = {
        [REQUEST_REFRESH] = ACTION_PROBE,
        [REQUEST_RESET] = ACTION_RESET,
        [REQUEST_ACQUIRE] = ACTION_RESET,
        [REQUEST_RELEASE] = ACTION_RESET,
        [REQUEST_VERIFY] = ACTION_PROBE,
        [REQUEST_PROCESSES] = ACTION_PROBE,
};

static int append_holder(sd_bus_message *reply, const char *path, const GpuHolder *holder) {
        return sd_bus_message_append(reply, "(ouussst)", path, (uint32_t) holder->pid,
                        (uint32_t) holder->uid, holder->user, holder->command, holder->where,
                        holder->used_bytes);
}

static int append_holders(sd_bus_message *reply, const Request *request) {
        char path[BUS_GPU_PATH_SIZE];
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(ouussst)");
        for (size_t i = 0; r >= 0 && i < request->n_items; i++) {
                const Gpu *gpu = request->items[i].gpu;

                bus_gpu_path(gpu, path);
                for (size_t j = 0; r >= 0 && j < gpu->n_holders; j++)
                        r = append_holder(reply, path, &gpu->holders[j]);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int reply_to(sd_bus_message *msg, const Request *request) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        if (outcome_is_failure(request->outcome)) {
                (void) bus_error_from_outcome(&error, request->outcome, request->message);
                return sd_bus_reply_method_error(msg, &error);
        }

        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0 && request->kind == REQUEST_PROCESSES)
                r = append_holders(reply, request);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void on_request_done(const Request *request, void *userdata) {
        BusCall *call = userdata;
        int r;

        call->request = NULL; /* over: there is nothing to abandon */
        r = reply_to(call->message, request);
        if (r < 0)
                (void) log_errno(r, "Cannot answer a call of %s", sd_bus_message_get_member(call->message));
        (void) bus_call_free(call);
}

/* What is wrong with a GPU, without names of processes, users and tenants; "" for nothing. */
static void explain_without_names(const Manager *manager, const Gpu *gpu, char *ret, size_t size) {
        GpuState state = gpu_state(gpu);
        char why[GPU_REASON_SIZE];

        ret[0] = '\0';
        if (state != GPU_STATE_CLEAN)
                (void) snprintf(ret, size, "GPU %u is %s%s%s", gpu->sample.index, gpu_state_to_string(state),
                                gpu->reason_counts[0] != '\0' ? ": " : "", gpu->reason_counts);
        else if (verify_sample(gpu, manager_config(manager), why, sizeof why) > 0)
                (void) snprintf(ret, size, "GPU %u %s", gpu->sample.index, why);
}

/* 0 and *ret (to be freed) · -ENOMEM. `ids` have been looked up before. */
static int message_without_names(Manager *manager, char *const *ids, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        char line[GPU_REASON_SIZE + 64];
        size_t n_gpus, n_lines = 0;
        Gpu *const *gpus = manager_gpus(manager, &n_gpus);
        bool all = !ids || !ids[0];

        if (!file)
                return -ENOMEM;
        for (size_t i = 0; all ? i < n_gpus : ids[i] != NULL; i++) {
                Gpu *gpu = NULL;

                if (all)
                        gpu = gpus[i];
                else if (manager_find(manager, ids[i], &gpu) < 0)
                        continue;
                explain_without_names(manager, gpu, line, sizeof line);
                if (line[0] != '\0')
                        (void) fprintf(file, "%s%s", n_lines++ > 0 ? "; " : "", line);
        }
        if (fflush(file) == 0)
                outcome_print_advice(file, OUTCOME_NOT_CLEAN, stream.text);
        return text_stream_take(&stream, ret);
}

/* For those who may not make the agent look anew. */
static int verify_known(const BusConnection *connection, sd_bus_message *msg, char *const *ids,
                sd_bus_error *error) {
        Manager *manager = connection->api->manager;
        CLEANUP(free_ptr) char *message = NULL, *counts = NULL;
        int r;

        r = manager_verify_known(manager, ids, &message);
        if (r < 0)
                return bus_error_from_manager(error, manager, r);
        if (r == 0)
                return sd_bus_reply_method_return(msg, NULL);

        /* Without the driver the message is about that, and names nobody. */
        if (!bus_connection_hides_names(connection) || manager_driver_state(manager) != DRIVER_OK)
                return bus_error_from_outcome(error, OUTCOME_NOT_CLEAN, message);
        r = message_without_names(manager, ids, &counts);
        if (r < 0)
                return r;
        return bus_error_from_outcome(error, OUTCOME_NOT_CLEAN, counts[0] != '\0' ? counts : "Not clean");
}

/* What is refused at once has no request that the audit could tell of. */
static int refuse(const Manager *manager, RequestKind kind, const BusOptions *options, int r,
                sd_bus_error *error) {
        const char *tenant = options->tenant ?: "", *what, *job;
        bool books = kind == REQUEST_ACQUIRE;
        JournalEntry entry;
        size_t n;

        r = bus_error_from_manager(error, manager, r);
        if (!books && kind != REQUEST_RELEASE)
                return r;

        what = books ? "booking refused" : "nothing released";
        n = tenant_job(tenant, &job);
        journal_begin(&entry, books ? MESSAGE_ID_BOOKING_REFUSED : MESSAGE_ID_RELEASE_REFUSED, LOG_NOTICE,
                        options->identifier ?: AUDIT_IDENTIFIER);
        if (n > 0)
                journal_add_format(
                                &entry, "MESSAGE", "job %.*s: %s: %s", (int) n, job, what, error->message);
        else
                journal_add_format(&entry, "MESSAGE", "%s%s%s: %s", what, tenant[0] ? " for " : "", tenant,
                                error->message);
        journal_add(&entry, "GPUAGENT_TENANT", tenant);
        journal_add(&entry, "GPUAGENT_RESULT", strrchr(error->name, '.') + 1);
        journal_send(&entry);
        return r;
}

static int request_start(BusCall *call, RequestKind kind, char *const *ids, const BusOptions *options,
                sd_bus_error *error) {
        RequestOptions request_options = {
                .tenant = options->tenant,
                .identifier = options->identifier,
                .reason = options->reason[0] != '\0' ? options->reason : NULL,
                .timeout_usec = options->timeout_usec,
                .shared = options->shared,
                .force = options->force,
                .checks = options->checks,
        };
        Manager *manager = call->connection->api->manager;
        CLEANUP(bus_call_free_ptr) BusCall *owned = call;
        Request *request = NULL;
        int r;

        if (options->no_wait) {
                r = manager_request(manager, kind, ids, &request_options, NULL, NULL, now_read(), NULL);
                if (r < 0)
                        return refuse(manager, kind, options, r, error);
                return sd_bus_reply_method_return(call->message, NULL);
        }

        r = manager_request(
                        manager, kind, ids, &request_options, on_request_done, call, now_read(), &request);
        if (r < 0)
                return refuse(manager, kind, options, r, error);

        (void) take_ptr(&owned); /* answered and freed already, or the request's end does that */
        if (request)
                call->request = request;
        return 1;
}

/* Whether the options fit the request. 0 · negative with the error set. */
static int check_options(RequestKind kind, const BusOptions *options, sd_bus_error *error) {
        static const uint32_t fit[_REQUEST_KIND_MAX] = {
                [REQUEST_ACQUIRE] = BUS_OPTION_SHARED,
                [REQUEST_RELEASE] = BUS_OPTION_FORCE,
                [REQUEST_VERIFY] = BUS_OPTION_CHECKS,
        };

        if (options->no_wait && (kind == REQUEST_VERIFY || kind == REQUEST_PROCESSES))
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_INVALID_ARGS, "Option wait must be true for a question");
        return bus_options_check(options, fit[kind], error);
}

int bus_request(BusConnection *connection, sd_bus_message *msg, RequestKind kind, char *const *ids,
                const BusOptions *options, sd_bus_error *error) {
        /* The site's checks are programs that use the GPU: more than a look. */
        const char *action = options->checks ? ACTION_RESET : action_table[kind];
        BusCall *call = NULL;
        int r;

        r = check_options(kind, options, error);
        if (r < 0)
                return r;

        if (kind == REQUEST_VERIFY && !options->checks) {
                r = bus_authorize_quietly(connection, msg, action, &call, error);
                if (r == -EACCES) {
                        sd_bus_error_free(error);
                        return verify_known(connection, msg, ids, error);
                }
        } else
                r = bus_authorize(connection, msg, action, &call, error);
        if (r < 0)
                return r;
        if (r == 0)
                return 1; /* a question is out; the message comes round again */

        if (options->force && call->uid != 0) {
                bus_auth_log_denial(connection->api, call->uid, "Release by force", action);
                (void) bus_call_free(call);
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Option force is for root");
        }
        return request_start(call, kind, ids, options, error);
}
