/* SPDX-License-Identifier: MIT */
#include "hooks/nri/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/nri/message.h"

#define PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"

/* The registration. Last of all: what other plugins add to a container is there, and what they refuse books
 * nothing. protobuf-c wants strings that may be written to. */
static char runtime_service[] = "nri.pkg.api.v1alpha1.Runtime";
static char register_method[] = "RegisterPlugin";
static char plugin_name[] = "gpuagent";
static char plugin_index[] = "99";

/* A client's streams have odd numbers, and ours makes one call. */
#define REGISTRATION_STREAM 1U

/* gRPC's status codes (google.rpc.Code). */
#define CODE_INVALID_ARGUMENT    3
#define CODE_RESOURCE_EXHAUSTED  8
#define CODE_FAILED_PRECONDITION 9
#define CODE_UNIMPLEMENTED       12

/* NRI's events that we want. All are there since 0.2: a runtime refuses a plugin that asks for one that it
 * does not know. */
#define EVENT_STOP_POD_SANDBOX   2
#define EVENT_REMOVE_POD_SANDBOX 3
#define EVENT_CREATE_CONTAINER   4
#define EVENT_STOP_CONTAINER     10
#define EVENT_REMOVE_CONTAINER   11
#define EVENT_BIT(event)         (1 << ((event) -1))

/* NRI's state of a container. */
#define CONTAINER_STOPPED 4

/* What a call comes to. */
typedef struct Reply {
        int code; /* 0: well */
        char why[PLUGIN_WHY_SIZE];
        WireBuffer payload;
} Reply;

static void reply_done(Reply *reply) {
        wire_buffer_done(&reply->payload);
}

static void message_free_ptr(ProtobufCMessage **message) {
        message_free(*message);
}

/* 0 · -ENOMEM. */
static int plugin_say(Plugin *plugin, uint32_t connection, uint32_t stream, uint8_t type,
                const ProtobufCMessage *m) {
        CLEANUP(wire_buffer_done) WireBuffer packed = {};
        int r;

        r = message_pack(m, &packed);
        if (r < 0)
                return r;
        return wire_write(&plugin->out,
                        &(WireMessage){ .connection = connection,
                                        .stream = stream,
                                        .type = type,
                                        .data = packed.data,
                                        .n = packed.n });
}

int plugin_begin(Plugin *plugin, const PluginOps *ops) {
        CLEANUP(wire_buffer_done) WireBuffer packed = {};
        Nri__Registration registration = NRI__REGISTRATION__INIT;
        Nri__Call call = NRI__CALL__INIT;
        int r;

        *plugin = (Plugin){ .ops = *ops };
        registration.name = plugin_name;
        registration.index = plugin_index;
        r = message_pack(&registration.base, &packed);
        if (r < 0)
                return r;
        call.service = runtime_service;
        call.method = register_method;
        call.payload = (ProtobufCBinaryData){ .len = packed.n, .data = packed.data };
        return plugin_say(plugin, WIRE_RUNTIME, REGISTRATION_STREAM, WIRE_CALL, &call.base);
}

void plugin_done(Plugin *plugin) {
        wire_buffer_done(&plugin->out);
        plugin->sandboxes = strv_free(plugin->sandboxes);
}

/* A pod gets a new sandbox when its old one has died, and kubelet stops and removes that one at any time
 * after: this is not the end of the pod, which has its GPUs. */

static char** find_sandbox(const Plugin *plugin, const Nri__Pod *pod) {
        STRV_FOREACH (known, plugin->sandboxes) {
                const char *rest = startswith(*known, pod->uid);

                if (rest && *rest == ' ')
                        return known;
        }
        return NULL;
}

static void forget_sandbox(Plugin *plugin, const Nri__Pod *pod) {
        char **known = find_sandbox(plugin, pod);

        if (!known)
                return;
        free(*known);
        do
                known[0] = known[1];
        while (*known++);
}

/* 0 · -ENOMEM. */
static int know_sandbox(Plugin *plugin, const Nri__Pod *pod) {
        CLEANUP(free_ptr) char *entry = NULL;

        forget_sandbox(plugin, pod);
        return asprintf(&entry, "%s %s", pod->uid, pod->id) < 0 ? -ENOMEM
                                                                : strv_append(&plugin->sandboxes, entry);
}

static bool is_past(const Plugin *plugin, const Nri__Pod *pod) {
        char **known = find_sandbox(plugin, pod);

        return known && !streq(*known + strlen(pod->uid) + 1, pod->id);
}

/* --- The runtime's calls. Each leaves what it comes to in *reply: 0 · -ENOMEM. */

static int refuse(Reply *reply, int code, const char *why) {
        reply->code = code;
        (void) snprintf(reply->why, sizeof reply->why, "gpuagent: %s", why);
        return 0;
}

static int refuse_nonsense(Reply *reply) {
        return refuse(reply, CODE_INVALID_ARGUMENT, "the runtime's message cannot be read");
}

static int on_configure(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *message =
                        message_unpack(&nri__configuration__descriptor, payload->data, payload->len);
        const Nri__Configuration *configuration = (const Nri__Configuration *) message;
        Nri__Subscription subscription = NRI__SUBSCRIPTION__INIT;
        char runtime[64], version[64];

        if (!configuration)
                return refuse_nonsense(reply);
        text_escape(configuration->runtime, runtime, sizeof runtime);
        text_escape(configuration->runtime_version, version, sizeof version);
        plugin->ops.ready(runtime, version, plugin->ops.userdata);
        subscription.events = EVENT_BIT(EVENT_STOP_POD_SANDBOX) | EVENT_BIT(EVENT_REMOVE_POD_SANDBOX) |
                        EVENT_BIT(EVENT_CREATE_CONTAINER) | EVENT_BIT(EVENT_STOP_CONTAINER) |
                        EVENT_BIT(EVENT_REMOVE_CONTAINER);
        return message_pack(&subscription.base, &reply->payload);
}

/* The sandboxes of containers that live. 0 · -ENOMEM. */
static int know_sandboxes(Plugin *plugin, const Nri__Known *known) {
        int r = 0;

        for (size_t c = 0; c < known->n_containers; c++)
                for (size_t p = 0; r >= 0 && p < known->n_pods; p++)
                        if (known->containers[c]->state != CONTAINER_STOPPED &&
                                        streq(known->containers[c]->sandbox, known->pods[p]->id))
                                r = know_sandbox(plugin, known->pods[p]);
        return r;
}

/* What runs already had its gate, or was there before us; the agent knows its leases, and looks for their
 * pods itself. */
static int on_synchronize(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *message = message_unpack(&nri__known__descriptor, payload->data, payload->len);
        Nri__KnownAnswer answer = NRI__KNOWN_ANSWER__INIT;
        int r;

        if (!message)
                return refuse_nonsense(reply);
        r = know_sandboxes(plugin, (const Nri__Known *) message);
        if (r < 0)
                return r;
        answer.more = ((const Nri__Known *) message)->more;
        return message_pack(&answer.base, &reply->payload);
}

/* 1 and *ret · 0 it is nonsense, and refused · -ENOMEM and the like. */
static int read_container(
                const Nri__Pod *pod, const Nri__Container *container, OciContainer *ret, Reply *reply) {
        int r;

        if (!pod || !container)
                return refuse_nonsense(reply);
        r = container_from_message(pod, container, ret);
        return r < 0 ? r : 1;
}

static int on_create_container(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *message =
                        message_unpack(&nri__container_event__descriptor, payload->data, payload->len);
        const Nri__ContainerEvent *event = (const Nri__ContainerEvent *) message;
        CLEANUP(oci_container_done) OciContainer container = {};
        char why[PLUGIN_WHY_SIZE];
        int r;

        r = read_container(event ? event->pod : NULL, event ? event->container : NULL, &container, reply);
        if (r <= 0)
                return r;
        r = know_sandbox(plugin, event->pod);
        if (r >= 0 && plugin->ops.gate(&container, why, plugin->ops.userdata) < 0)
                return refuse(reply, CODE_FAILED_PRECONDITION, why);
        return r;
}

/* What a pod has it keeps for its next container. */
static int end_container(
                Plugin *plugin, const Nri__Pod *pod, const Nri__Container *container, Reply *reply) {
        CLEANUP(oci_container_done) OciContainer ended = {};
        int r;

        r = read_container(pod, container, &ended, reply);
        if (r > 0 && !oci_is_pods(&ended))
                plugin->ops.end(&ended, plugin->ops.userdata);
        return r < 0 ? r : 0;
}

/* StopContainer and, for one that never ran, RemoveContainer. */
static int on_end_container(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *message =
                        message_unpack(&nri__container_event__descriptor, payload->data, payload->len);
        const Nri__ContainerEvent *event = (const Nri__ContainerEvent *) message;

        return end_container(plugin, event ? event->pod : NULL, event ? event->container : NULL, reply);
}

static int end_pod(Plugin *plugin, const Nri__Pod *pod, Reply *reply) {
        CLEANUP(oci_container_done) OciContainer container = {};
        int r;

        if (!pod)
                return refuse_nonsense(reply);
        if (is_past(plugin, pod))
                return 0;
        forget_sandbox(plugin, pod);
        r = container_from_message(pod, NULL, &container);
        if (r >= 0 && oci_is_pods(&container))
                plugin->ops.end(&container, plugin->ops.userdata);
        return r;
}

/* StopPodSandbox and, should that have been missed, RemovePodSandbox: for a pod without a lease it does
 * nothing. */
static int on_end_pod(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *message = message_unpack(&nri__pod_event__descriptor, payload->data, payload->len);

        return end_pod(plugin, message ? ((const Nri__PodEvent *) message)->pod : NULL, reply);
}

/* The same for runtimes before NRI 0.12, which have a call of its own for the first two. */
static int on_state_change(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *message =
                        message_unpack(&nri__state_event__descriptor, payload->data, payload->len);
        const Nri__StateEvent *event = (const Nri__StateEvent *) message;

        if (!event)
                return refuse_nonsense(reply);
        switch (event->event) {
        case EVENT_STOP_POD_SANDBOX:
        case EVENT_REMOVE_POD_SANDBOX: return end_pod(plugin, event->pod, reply);
        case EVENT_REMOVE_CONTAINER: return end_container(plugin, event->pod, event->container, reply);
        default: return 0;
        }
}

/* The end of the connection follows, and is what counts. */
static int on_shutdown(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply) {
        return 0;
}

static const struct {
        const char *name;
        int (*call)(Plugin *plugin, const ProtobufCBinaryData *payload, Reply *reply);
} methods[] = {
        { "Configure", on_configure },
        { "Synchronize", on_synchronize },
        { "CreateContainer", on_create_container },
        { "StopContainer", on_end_container },
        { "RemoveContainer", on_end_container },
        { "StopPodSandbox", on_end_pod },
        { "RemovePodSandbox", on_end_pod },
        { "StateChange", on_state_change },
        { "Shutdown", on_shutdown },
};

static int plugin_call(Plugin *plugin, const Nri__Call *call, Reply *reply) {
        int r;

        for (size_t i = 0; i < ELEMENTSOF(methods); i++)
                if (streq(call->service, PLUGIN_SERVICE) && streq(call->method, methods[i].name)) {
                        r = methods[i].call(plugin, &call->payload, reply);
                        /* A connection that ends would let the container through. */
                        return r < 0 ? refuse(reply, CODE_RESOURCE_EXHAUSTED, strerror(-r)) : r;
                }
        return refuse(reply, CODE_UNIMPLEMENTED, "there is no such method");
}

static int take_call(Plugin *plugin, const WireMessage *message) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *call = message_unpack(&nri__call__descriptor, message->data, message->n);
        CLEANUP(reply_done) Reply reply = {};
        Nri__Status status = NRI__STATUS__INIT;
        Nri__Answer answer = NRI__ANSWER__INIT;
        int r;

        if (!call)
                return -EBADMSG;
        r = plugin_call(plugin, (const Nri__Call *) call, &reply);
        if (r < 0)
                return r;
        status.code = reply.code;
        status.message = reply.why;
        if (reply.code != 0)
                answer.status = &status;
        answer.payload = (ProtobufCBinaryData){ .len = reply.payload.n, .data = reply.payload.data };
        return plugin_say(plugin, WIRE_PLUGIN, message->stream, WIRE_ANSWER, &answer.base);
}

static int take_answer(const WireMessage *message) {
        CLEANUP(message_free_ptr)
        ProtobufCMessage *answer = message_unpack(&nri__answer__descriptor, message->data, message->n);
        const Nri__Status *status = answer ? ((const Nri__Answer *) answer)->status : NULL;

        if (!answer || message->stream != REGISTRATION_STREAM)
                return -EBADMSG;
        return status && status->code != 0 ? -ECONNREFUSED : 0;
}

int plugin_take(Plugin *plugin, const WireMessage *message) {
        if (message->connection == WIRE_PLUGIN && message->type == WIRE_CALL)
                return take_call(plugin, message);
        if (message->connection == WIRE_RUNTIME && message->type == WIRE_ANSWER)
                return take_answer(message);
        return -EBADMSG;
}
