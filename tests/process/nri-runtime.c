/* SPDX-License-Identifier: MIT */
/* Stands in for a container runtime with NRI, of a kind that no Debian has: with a call of its own for each
 * event.
 *
 *     nri-runtime SOCKET
 *
 * Each line on stdin is an event: a method of NRI's plugin service, the pod's UID, and for containers
 * "/dev/nvidiaN" or "-". It waits for a plugin, sends the event to the last one that registered, and prints
 * the code of the answer with its message, or "gone" where none comes within NRI's 2 s: then it closes the
 * connection, as a runtime does. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "hooks/nri/message.h"

#define REQUEST_TIMEOUT_MSEC 2000

static char service[] = "nri.pkg.api.v1alpha1.Plugin", kind[] = "c", id[] = "c1";

typedef struct Runtime {
        int listen_fd, fd;
        Wire wire;
        uint32_t stream;
} Runtime;

static void die(const char *what) {
        (void) fprintf(stderr, "nri-runtime: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void runtime_send(Runtime *runtime, const WireMessage *message) {
        CLEANUP(wire_buffer_done) WireBuffer out = {};

        if (wire_write(&out, message) < 0 ||
                        send(runtime->fd, out.data, out.n, MSG_NOSIGNAL) != (ssize_t) out.n)
                (void) fprintf(stderr, "nri-runtime: not sent\n");
}

static void runtime_drop(Runtime *runtime) {
        fd_close(&runtime->fd);
        wire_done(&runtime->wire);
        runtime->wire = (Wire){};
}

/* 1 and *ret · 0 it is gone, or silent for too long. */
static int runtime_hear(Runtime *runtime, WireMessage *ret) {
        uint8_t data[4096];

        for (;;) {
                struct pollfd ready = { .fd = runtime->fd, .events = POLLIN };
                ssize_t n;

                if (wire_next(&runtime->wire, ret) > 0)
                        return 1;
                if (poll(&ready, 1, REQUEST_TIMEOUT_MSEC) <= 0)
                        return 0;
                n = read(runtime->fd, data, sizeof data);
                if (n <= 0 || wire_feed(&runtime->wire, data, (size_t) n) < 0)
                        return 0;
        }
}

/* 1 and *ret (to be freed by message_free) · 0 as above. */
static int runtime_call(
                Runtime *runtime, const char *method, const ProtobufCMessage *argument, Nri__Answer **ret) {
        CLEANUP(wire_buffer_done) WireBuffer payload = {}, packed = {};
        CLEANUP(free_ptr) char *name = strdup(method);
        Nri__Call call = NRI__CALL__INIT;
        WireMessage message;

        if (!name || message_pack(argument, &payload) < 0)
                die("no memory");
        call.service = service;
        call.method = name;
        call.payload = (ProtobufCBinaryData){ .len = payload.n, .data = payload.data };
        if (message_pack(&call.base, &packed) < 0)
                die("no memory");
        runtime->stream += 2;
        runtime_send(runtime,
                        &(WireMessage){ .connection = WIRE_PLUGIN,
                                        .stream = runtime->stream,
                                        .type = WIRE_CALL,
                                        .data = packed.data,
                                        .n = packed.n });
        if (runtime_hear(runtime, &message) == 0 || message.stream != runtime->stream)
                return 0;
        *ret = (Nri__Answer *) message_unpack(&nri__answer__descriptor, message.data, message.n);
        return *ret != NULL;
}

/* A plugin registers, and is configured and told what there is. */
static void runtime_welcome(Runtime *runtime) {
        static char name[] = "nri-runtime", version[] = "1";
        Nri__Configuration configuration = NRI__CONFIGURATION__INIT;
        Nri__Known known = NRI__KNOWN__INIT;
        Nri__Answer *answer;
        WireMessage message;

        runtime_drop(runtime);
        runtime->fd = accept4(runtime->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (runtime->fd < 0)
                die("accept");
        runtime->stream = 1;
        configuration.runtime = name;
        configuration.runtime_version = version;
        if (runtime_hear(runtime, &message) == 0)
                return;
        runtime_send(runtime,
                        &(WireMessage){ .connection = WIRE_RUNTIME,
                                        .stream = message.stream,
                                        .type = WIRE_ANSWER });
        if (runtime_call(runtime, "Configure", &configuration.base, &answer) > 0)
                message_free(&answer->base);
        if (runtime_call(runtime, "Synchronize", &known.base, &answer) > 0)
                message_free(&answer->base);
}

static void event_send(Runtime *runtime, const char *method, char *uid, char *node) {
        char cgroup[128], container_cgroup[256];
        Nri__ContainerEvent event = NRI__CONTAINER_EVENT__INIT;
        Nri__Pod pod = NRI__POD__INIT;
        Nri__LinuxPod pod_os = NRI__LINUX_POD__INIT;
        Nri__Container container = NRI__CONTAINER__INIT;
        Nri__LinuxContainer os = NRI__LINUX_CONTAINER__INIT;
        Nri__Device device = NRI__DEVICE__INIT;
        Nri__Device *devices[] = { &device };
        Nri__Answer *answer;

        (void) snprintf(cgroup, sizeof cgroup, "/kubepods/burstable/pod%s", uid);
        (void) snprintf(container_cgroup, sizeof container_cgroup, "%s/%s", cgroup, id);
        pod.uid = uid;
        pod_os.cgroup_parent = cgroup;
        pod.os = &pod_os;
        device.path = node;
        device.type = kind;
        container.id = id;
        container.os = &os;
        os.cgroups_path = container_cgroup;
        os.devices = devices;
        os.n_devices = streq(node, "-") ? 0 : 1;
        event.pod = &pod;
        event.container = &container; /* a pod's event has none, and passes it over */

        if (runtime_call(runtime, method, &event.base, &answer) > 0) {
                (void) printf("%d %s\n", answer->status ? answer->status->code : 0,
                                answer->status ? answer->status->message : "");
                message_free(&answer->base);
        } else {
                (void) printf("gone\n");
                runtime_drop(runtime);
        }
        (void) fflush(stdout);
}

int main(int argc, char **argv) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        Runtime runtime = { .fd = -1 };
        char line[512];

        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s", argc > 1 ? argv[1] : "");
        (void) unlink(address.sun_path);
        runtime.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (runtime.listen_fd < 0 ||
                        bind(runtime.listen_fd, (const struct sockaddr *) &address, sizeof address) < 0 ||
                        listen(runtime.listen_fd, 5) < 0)
                die(address.sun_path);

        while (fgets(line, sizeof line, stdin)) {
                struct pollfd waiting = { .fd = runtime.listen_fd, .events = POLLIN };
                char method[64], uid[64], node[64];

                if (sscanf(line, "%63s %63s %63s", method, uid, node) != 3)
                        continue;
                while (runtime.fd < 0 || poll(&waiting, 1, 0) > 0)
                        runtime_welcome(&runtime);
                event_send(&runtime, method, uid, node);
        }
        return 0;
}
