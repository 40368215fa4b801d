/* SPDX-License-Identifier: MIT */
#include "dbus/driver-link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/text.h"
#include "agent/driver/protocol.h"
#include "dbus/bus-util.h"

/* What a living driver takes beyond the deadline that it keeps itself: to kill a worker and answer, on a
 * busy machine. */
#define SLACK_USEC (5 * USEC_PER_SEC)

#define ERROR_TEXT_SIZE 256

#define SEE_ITS_JOURNAL "see journalctl -u gpuagent-driver"

struct DriverLink {
        sd_event *event;
        Manager *manager;
        char *address;

        sd_bus *bus; /* NULL: connected at the next request */
        sd_bus_slot *call;
        bool out; /* a request waits for its reply */
        VendorOperation operation;
        bool all; /* it is about all GPUs */
        usec_t span_usec;
        sd_event_source *deadline;

        sd_event_source *later; /* a reply that start() must not bring itself */
        char error[ERROR_TEXT_SIZE];
};

static void finish_probe(DriverLink *link, sd_bus_message *msg);
static void finish_resets(DriverLink *link, sd_bus_message *msg);
static void finish_checks(DriverLink *link, sd_bus_message *msg);
static void finish_holders(DriverLink *link, sd_bus_message *msg);
static void finish_failure(DriverLink *link, sd_bus_message *msg);
static void finish_tenants(DriverLink *link, sd_bus_message *msg);

static const struct {
        const char *member;
        void (*finish)(DriverLink *link, sd_bus_message *msg);
} operation_table[_VENDOR_OPERATION_MAX] = {
        [VENDOR_PROBE] = { "Probe", finish_probe },
        [VENDOR_RESET] = { "Reset", finish_resets },
        [VENDOR_HOLDERS] = { "Holders", finish_holders },
        [VENDOR_LEFTOVERS] = { "Leftovers", finish_holders },
        [VENDOR_QUIESCE] = { "Quiesce", finish_failure },
        [VENDOR_RESUME] = { "Resume", finish_failure },
        [VENDOR_CHECKS] = { "Checks", finish_checks },
        [VENDOR_TENANTS] = { "Tenants", finish_tenants },
};

static const struct {
        const char *name;
        DriverState state;
} error_table[] = {
        { PROTOCOL_ERROR_MISSING, DRIVER_MISSING },
        { PROTOCOL_ERROR_FAILED, DRIVER_FAILED },
        { PROTOCOL_ERROR_UNRESPONSIVE, DRIVER_UNRESPONSIVE },
};

static void disconnect(DriverLink *link) {
        link->call = sd_bus_slot_unref(link->call);
        if (link->bus)
                (void) sd_bus_detach_event(link->bus);
        link->bus = sd_bus_close_unref(link->bus);
}

/* Brings the reply; the manager may start the next request from within. */
static void finish(DriverLink *link, VendorReply *reply) {
        reply->operation = link->operation;
        if (!reply->driver_error)
                reply->driver_error = "";
        if (!reply->driver_version)
                reply->driver_version = "";
        if (!reply->failure)
                reply->failure = "";

        link->out = false;
        link->call = sd_bus_slot_unref(link->call);
        (void) sd_event_source_set_enabled(link->deadline, SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(link->later, SD_EVENT_OFF);
        manager_vendor_done(link->manager, reply, now_read());
}

static void finish_without(DriverLink *link, DriverState state, const char *text) {
        VendorReply reply = { .driver_state = state, .driver_error = text };

        finish(link, &reply);
}

static void finish_with_nonsense(DriverLink *link) {
        char text[ERROR_TEXT_SIZE];

        (void) snprintf(text, sizeof text, "gpuagent-driver answered %s with nonsense; " SEE_ITS_JOURNAL,
                        vendor_operation_describe(link->operation));
        finish_without(link, DRIVER_FAILED, text);
}

static void finish_probe(DriverLink *link, sd_bus_message *msg) {
        CLEANUP(free_ptr) GpuSample *samples = NULL;
        char version[DRIVER_VERSION_SIZE];
        VendorReply reply = { .driver_state = DRIVER_OK, .driver_version = version, .complete = link->all };

        if (protocol_read_probe(msg, version, &samples, &reply.n_samples) < 0) {
                finish_with_nonsense(link);
                return;
        }
        reply.samples = samples;
        finish(link, &reply);
}

static void finish_resets(DriverLink *link, sd_bus_message *msg) {
        CLEANUP(free_ptr) GpuReset *resets = NULL;
        CLEANUP(free_ptr) GpuSample *samples = NULL;
        VendorReply reply = { .driver_state = DRIVER_OK };

        /* A driver service that is older than we are, which an upgrade lets end its reset, has no looks. */
        if (protocol_read_resets(msg, &resets, &reply.n_resets) < 0 ||
                        (sd_bus_message_at_end(msg, true) == 0 &&
                                        protocol_read_samples(msg, &samples, &reply.n_samples) < 0)) {
                finish_with_nonsense(link);
                return;
        }
        reply.resets = resets;
        reply.samples = samples;
        finish(link, &reply);
}

static void finish_checks(DriverLink *link, sd_bus_message *msg) {
        CLEANUP(free_ptr) GpuReset *resets = NULL;
        VendorReply reply = { .driver_state = DRIVER_OK };

        if (protocol_read_resets(msg, &resets, &reply.n_resets) < 0) {
                finish_with_nonsense(link);
                return;
        }
        reply.resets = resets;
        finish(link, &reply);
}

static void finish_holders(DriverLink *link, sd_bus_message *msg) {
        CLEANUP(free_ptr) GpuHolder *holders = NULL;
        VendorReply reply = { .driver_state = DRIVER_OK };

        if (protocol_read_holders(msg, &holders, &reply.n_holders) < 0) {
                finish_with_nonsense(link);
                return;
        }
        reply.holders = holders;
        finish(link, &reply);
}

static void finish_failure(DriverLink *link, sd_bus_message *msg) {
        char failure[FAILURE_SIZE];
        VendorReply reply = { .driver_state = DRIVER_OK, .failure = failure };

        if (protocol_read_failure(msg, failure) < 0) {
                finish_with_nonsense(link);
                return;
        }
        finish(link, &reply);
}

static void finish_tenants(DriverLink *link, sd_bus_message *msg) {
        CLEANUP(free_ptr) TenantSign *signs = NULL;
        VendorReply reply = { .driver_state = DRIVER_OK };

        if (protocol_read_tenants(msg, &signs, &reply.n_tenants) < 0) {
                finish_with_nonsense(link);
                return;
        }
        reply.tenants = signs;
        finish(link, &reply);
}

static void finish_with_error(DriverLink *link, const sd_bus_error *error) {
        char text[ERROR_TEXT_SIZE], message[160];

        text_escape(error->message && error->message[0] != '\0' ? error->message : error->name, message,
                        sizeof message);
        for (size_t i = 0; i < ELEMENTSOF(error_table); i++)
                if (sd_bus_error_has_name(error, error_table[i].name)) {
                        finish_without(link, error_table[i].state, message);
                        return;
                }

        /* The driver works; a GPU that we know is not on its list. A probe says so by leaving it out; a
         * search that found nobody would say that nobody holds the others. */
        if (sd_bus_error_has_name(error, PROTOCOL_ERROR_NO_SUCH_GPU) && link->operation == VENDOR_PROBE) {
                finish_without(link, DRIVER_OK, "");
                return;
        }

        (void) snprintf(text, sizeof text, "gpuagent-driver refuses: %s", message);
        finish_without(link, DRIVER_FAILED, text);
}

static int on_reply(sd_bus_message *msg, void *userdata, sd_bus_error *ret_error) {
        const sd_bus_error *error = sd_bus_message_get_error(msg);
        DriverLink *link = userdata;

        if (error) {
                /* A connection that ends makes up such an answer. What it means is for Disconnected to say,
                 * which follows, or for the deadline. */
                if (!sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY))
                        finish_with_error(link, error);
                return 0;
        }

        operation_table[link->operation].finish(link, msg);
        return 0;
}

static int on_disconnected(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        DriverLink *link = userdata;
        char text[ERROR_TEXT_SIZE];

        disconnect(link); /* sd-bus holds on to the connection while it calls us */
        if (!link->out)
                return 0;
        (void) snprintf(text, sizeof text, "gpuagent-driver is gone in the middle of %s; " SEE_ITS_JOURNAL,
                        vendor_operation_describe(link->operation));
        finish_without(link, DRIVER_FAILED, text);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        DriverLink *link = userdata;
        char text[ERROR_TEXT_SIZE];

        /* What it may answer later is of no use: the connection ends, so that it cannot be taken for
         * another's answer, and so that the driver hears that nobody waits. */
        disconnect(link);
        (void) snprintf(text, sizeof text, "gpuagent-driver has not answered for %.0f s; " SEE_ITS_JOURNAL,
                        (double) link->span_usec / (double) USEC_PER_SEC);
        finish_without(link, DRIVER_UNRESPONSIVE, text);
        return 0;
}

static int on_later(sd_event_source *source, void *userdata) {
        DriverLink *link = userdata;
        char text[ERROR_TEXT_SIZE];

        (void) snprintf(text, sizeof text, "%s", link->error);
        finish_without(link, DRIVER_FAILED, text);
        return 0;
}

static int connect_driver(DriverLink *link) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_description(bus, "gpuagent-driver");
        if (r >= 0)
                r = sd_bus_set_address(bus, link->address);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus.Local",
                                "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local", "Disconnected",
                                on_disconnected, link);
        /* At the end of the loop sd-bus would flush, which waits for as long as a driver service that is not
         * there does not authenticate. */
        if (r >= 0)
                r = sd_bus_set_close_on_exit(bus, false);
        if (r >= 0)
                r = sd_bus_attach_event(bus, link->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;

        link->bus = take_ptr(&bus);
        return 0;
}

static int append_arguments(sd_bus_message *msg, const VendorRequest *request) {
        switch (request->operation) {
        case VENDOR_PROBE:
        case VENDOR_RESET:
        case VENDOR_HOLDERS: return protocol_append_request(msg, request->uuids, request->timeout_usec);
        case VENDOR_LEFTOVERS:
        case VENDOR_CHECKS:
                return protocol_append_request_pairs(
                                msg, request->uuids, request->tenants, request->timeout_usec);
        case VENDOR_QUIESCE:
        case VENDOR_RESUME: return protocol_append_request_timeout(msg, request->timeout_usec);
        case VENDOR_TENANTS: return protocol_append_request(msg, request->tenants, request->timeout_usec);
        case _VENDOR_OPERATION_MAX: break;
        }
        return -EINVAL;
}

static int send_request(DriverLink *link, const VendorRequest *request) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;
        int r;

        if (!link->bus) {
                r = connect_driver(link);
                if (r < 0)
                        return r;
        }

        r = sd_bus_message_new_method_call(link->bus, &msg, NULL, PROTOCOL_PATH, PROTOCOL_INTERFACE,
                        operation_table[request->operation].member);
        if (r >= 0)
                r = append_arguments(msg, request);
        if (r < 0)
                return r;
        /* sd-bus's own timeout does not run while the connection authenticates; `deadline` does, and comes
         * first. */
        return sd_bus_call_async(link->bus, &link->call, msg, on_reply, link,
                        usec_add(link->span_usec, USEC_PER_SEC * 60));
}

/* Arms the deadline before anything is sent. */
static int arm(DriverLink *link, const VendorRequest *request) {
        int r;

        link->span_usec = usec_add(request->timeout_usec, SLACK_USEC);
        r = sd_event_source_set_time_relative(link->deadline, link->span_usec);
        if (r >= 0)
                r = sd_event_source_set_enabled(link->deadline, SD_EVENT_ONESHOT);
        return r;
}

static int link_start(const VendorRequest *request, void *userdata) {
        VendorRequest bounded = *request;
        DriverLink *link = userdata;
        int r;

        if (link->out)
                return -EBUSY;
        if (bounded.timeout_usec > PROTOCOL_TIMEOUT_MAX_USEC)
                bounded.timeout_usec = PROTOCOL_TIMEOUT_MAX_USEC; /* more is refused */
        r = arm(link, &bounded);
        if (r < 0)
                return r;
        link->operation = request->operation;
        link->all = !request->uuids || !request->uuids[0];

        r = send_request(link, &bounded);
        if (r < 0) {
                disconnect(link);
                (void) snprintf(link->error, sizeof link->error,
                                "gpuagent-driver cannot be reached: %s; systemctl start "
                                "gpuagent-driver.socket",
                                strerror(-r));
                r = sd_event_source_set_enabled(link->later, SD_EVENT_ONESHOT);
                if (r < 0)
                        return r;
        }
        link->out = true;
        return 0;
}

void driver_link_rest(DriverLink *link) {
        if (link->bus && !link->out)
                disconnect(link);
}

VendorOps driver_link_ops(DriverLink *link) {
        return (VendorOps){ .start = link_start, .userdata = link };
}

void driver_link_set_manager(DriverLink *link, Manager *manager) {
        link->manager = manager;
}

int driver_link_new(sd_event *event, const char *socket_path, DriverLink **ret) {
        CLEANUP(driver_link_free_ptr) DriverLink *link = NULL;
        int r;

        link = calloc(1, sizeof *link);
        if (!link)
                return -ENOMEM;
        link->event = sd_event_ref(event);

        /* What an address takes as it is (D-Bus specification, server addresses); nothing else is worth the
         * escaping. */
        if (socket_path[0] != '/' ||
                        socket_path[strspn(socket_path,
                                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/"
                                        ".*")] != '\0')
                return -EINVAL;
        if (asprintf(&link->address, "unix:path=%s", socket_path) < 0)
                return -ENOMEM;

        r = sd_event_add_time(
                        event, &link->deadline, CLOCK_MONOTONIC, 0, 100 * USEC_PER_MSEC, on_deadline, link);
        if (r >= 0)
                r = sd_event_source_set_enabled(link->deadline, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &link->later, on_later, link);
        if (r >= 0)
                r = sd_event_source_set_enabled(link->later, SD_EVENT_OFF);
        if (r < 0)
                return r;

        *ret = take_ptr(&link);
        return 0;
}

DriverLink* driver_link_free(DriverLink *link) {
        if (!link)
                return NULL;
        disconnect(link);
        (void) sd_event_source_disable_unref(link->deadline);
        (void) sd_event_source_disable_unref(link->later);
        (void) sd_event_unref(link->event);
        free(link->address);
        free(link);
        return NULL;
}
