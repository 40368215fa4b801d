/* SPDX-License-Identifier: MIT */
/* The NRI plugin against the other side of its connection, which is written here. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/nri/message.h"
#include "hooks/nri/plugin.h"

/* Its header, and then whole fields of two bytes. */
#define FLOOD 4000001U

#define POD_UID "a1b2c3d4-0000-1111-2222-333344445555"

static char no_text[] = "", uid[] = POD_UID, cgroup[] = "kubepods-burstable-pod" POD_UID ".slice",
            container_cgroup[] = "kubepods-burstable-pod" POD_UID ".slice:cri-containerd:c1",
            service[] = "nri.pkg.api.v1alpha1.Plugin", id[] = "c1", node[] = "/dev/nvidia2", kind[] = "c";

typedef struct Told {
        unsigned gates, ends, readies;
        int verdict; /* of the gate */
        char gpu[64], tenant[TENANT_MAX + 1], runtime[64];
} Told;

static int on_gate(const OciContainer *container, char ret_why[static PLUGIN_WHY_SIZE], void *userdata) {
        const OciRules rules = {};
        char **gpus = NULL;
        Told *told = userdata;

        told->gates++;
        told->gpu[0] = '\0';
        if (oci_gpus(container, &rules, &gpus) > 0)
                (void) snprintf(told->gpu, sizeof told->gpu, "%s", gpus[0]);
        (void) strv_free(gpus);
        assert_int_equal(oci_tenant(container, told->tenant), 0);
        (void) snprintf(ret_why, PLUGIN_WHY_SIZE, "GPU 2 is still being reset");
        return told->verdict;
}

static void on_end(const OciContainer *container, void *userdata) {
        Told *told = userdata;

        told->ends++;
        assert_int_equal(oci_tenant(container, told->tenant), 0);
}

static void on_ready(const char *runtime, const char *version, void *userdata) {
        Told *told = userdata;

        told->readies++;
        (void) snprintf(told->runtime, sizeof told->runtime, "%s %s", runtime, version);
}

typedef struct Fixture {
        Plugin plugin;
        Wire wire, back;
        Told told;
        uint32_t stream;
        int code; /* of the last answer */
        char why[PLUGIN_WHY_SIZE];
        WireBuffer payload;
} Fixture;

static void fixture_begin(Fixture *f) {
        const PluginOps ops = { on_gate, on_end, on_ready, &f->told };

        *f = (Fixture){ .stream = 1 };
        assert_int_equal(plugin_begin(&f->plugin, &ops), 0);
}

static void fixture_end(Fixture *f) {
        plugin_done(&f->plugin);
        wire_done(&f->wire);
        wire_done(&f->back);
        wire_buffer_done(&f->payload);
}

/* What the plugin says, as one message. */
static void fixture_hear(Fixture *f, WireMessage *ret) {
        assert_int_equal(wire_feed(&f->back, f->plugin.out.data, f->plugin.out.n), 0);
        wire_buffer_done(&f->plugin.out);
        assert_int_equal(wire_next(&f->back, ret), 1);
}

/* Feeds bytes in pieces and gives the plugin what comes out; as plugin_take(). */
static int fixture_feed(Fixture *f, const WireBuffer *bytes, size_t piece) {
        WireMessage message;
        int r = 0;

        for (size_t at = 0; r >= 0 && at < bytes->n; at += piece) {
                r = wire_feed(&f->wire, bytes->data + at, bytes->n - at < piece ? bytes->n - at : piece);
                while (r >= 0 && (r = wire_next(&f->wire, &message)) > 0)
                        r = plugin_take(&f->plugin, &message);
        }
        return r;
}

static void put_call(Fixture *f, const char *method, const uint8_t *data, size_t n, WireBuffer *ret) {
        WireBuffer packed;
        Nri__Call call = NRI__CALL__INIT;
        char *copy = strdup(method);

        f->stream += 2;
        call.service = service;
        call.method = copy;
        call.payload = (ProtobufCBinaryData){ .len = n, .data = (uint8_t *) (uintptr_t) data };
        assert_int_equal(message_pack(&call.base, &packed), 0);
        assert_int_equal(wire_write(ret,
                                         &(WireMessage){ .connection = WIRE_PLUGIN,
                                                         .stream = f->stream,
                                                         .type = WIRE_CALL,
                                                         .data = packed.data,
                                                         .n = packed.n }),
                        0);
        wire_buffer_done(&packed);
        free(copy);
}

static void take_answer(Fixture *f) {
        const Nri__Answer *answer;
        WireMessage message;

        fixture_hear(f, &message);
        assert_int_equal(message.connection, WIRE_PLUGIN);
        assert_int_equal(message.stream, f->stream);
        assert_int_equal(message.type, WIRE_ANSWER);
        answer = (const Nri__Answer *) message_unpack(&nri__answer__descriptor, message.data, message.n);
        assert_non_null(answer);
        f->code = answer->status ? answer->status->code : 0;
        (void) snprintf(f->why, sizeof f->why, "%s", answer->status ? answer->status->message : "");
        wire_buffer_done(&f->payload);
        f->payload.n = answer->payload.len;
        f->payload.data = malloc(answer->payload.len + 1);
        if (answer->payload.len > 0)
                memcpy(f->payload.data, answer->payload.data, answer->payload.len);
        message_free((ProtobufCMessage *) (uintptr_t) answer);
}

static void fixture_call_bytes(Fixture *f, const char *method, const uint8_t *data, size_t n, size_t piece) {
        CLEANUP(wire_buffer_done) WireBuffer bytes = {};

        put_call(f, method, data, n, &bytes);
        assert_int_equal(fixture_feed(f, &bytes, piece), 0);
        take_answer(f);
}

static void fixture_call(Fixture *f, const char *method, const ProtobufCMessage *argument) {
        CLEANUP(wire_buffer_done) WireBuffer packed = {};

        assert_int_equal(message_pack(argument, &packed), 0);
        fixture_call_bytes(f, method, packed.data, packed.n, 65536);
}

/* A container with GPU 2, of a pod. */
typedef struct Event {
        Nri__LinuxPod pod_os;
        Nri__Pod pod;
        Nri__Device device;
        Nri__Device *devices[1];
        Nri__LinuxContainer os;
        Nri__Container container;
        Nri__ContainerEvent event;
} Event;

static void event_init(Event *e) {
        *e = (Event){ NRI__LINUX_POD__INIT, NRI__POD__INIT, NRI__DEVICE__INIT, {},
                NRI__LINUX_CONTAINER__INIT, NRI__CONTAINER__INIT, NRI__CONTAINER_EVENT__INIT };
        e->pod_os.cgroup_parent = cgroup;
        e->pod.uid = uid;
        e->pod.os = &e->pod_os;
        e->device.path = node;
        e->device.type = kind;
        e->device.major = 195;
        e->device.minor = 2;
        e->devices[0] = &e->device;
        e->os.devices = e->devices;
        e->os.n_devices = 1;
        e->os.cgroups_path = container_cgroup;
        e->container.id = id;
        e->container.os = &e->os;
        e->event.pod = &e->pod;
        e->event.container = &e->container;
}

static void test_it_registers_as_the_first_thing(void **state) {
        CLEANUP(fixture_end) Fixture f;
        const Nri__Registration *registration;
        const Nri__Call *call;
        WireMessage message;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        assert_int_equal(message.connection, WIRE_RUNTIME);
        assert_int_equal(message.type, WIRE_CALL);
        assert_int_equal(message.stream % 2, 1);
        call = (const Nri__Call *) message_unpack(&nri__call__descriptor, message.data, message.n);
        assert_string_equal(call->service, "nri.pkg.api.v1alpha1.Runtime");
        assert_string_equal(call->method, "RegisterPlugin");
        registration = (const Nri__Registration *) message_unpack(
                        &nri__registration__descriptor, call->payload.data, call->payload.len);
        assert_string_equal(registration->name, "gpuagent");
        assert_string_equal(registration->index, "99");
        message_free((ProtobufCMessage *) (uintptr_t) registration);
        message_free((ProtobufCMessage *) (uintptr_t) call);
}

static void test_it_asks_for_no_event_that_an_old_runtime_does_not_know(void **state) {
        CLEANUP(fixture_end) Fixture f;
        static char runtime[] = "containerd\n", version[] = "1.7.24";
        Nri__Configuration configuration = NRI__CONFIGURATION__INIT;
        const Nri__Subscription *subscription;
        WireMessage message;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        configuration.runtime = runtime;
        configuration.runtime_version = version;
        fixture_call(&f, "Configure", &configuration.base);
        assert_int_equal(f.code, 0);
        assert_string_equal(f.told.runtime, "containerd\\x0a 1.7.24");
        subscription = (const Nri__Subscription *) message_unpack(
                        &nri__subscription__descriptor, f.payload.data, f.payload.n);
        assert_int_equal(subscription->events, 2 | 4 | 8 | 512 | 1024);
        message_free((ProtobufCMessage *) (uintptr_t) subscription);
}

static void test_a_list_that_goes_on_is_let_go_on(void **state) {
        CLEANUP(fixture_end) Fixture f;
        Nri__Known known = NRI__KNOWN__INIT;
        WireMessage message;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        for (unsigned more = 0; more < 2; more++) {
                const Nri__KnownAnswer *answer;

                known.more = more;
                fixture_call(&f, "Synchronize", &known.base);
                answer = (const Nri__KnownAnswer *) message_unpack(
                                &nri__known_answer__descriptor, f.payload.data, f.payload.n);
                assert_int_equal(answer->more, more);
                message_free((ProtobufCMessage *) (uintptr_t) answer);
        }
}

static void test_a_container_goes_through_the_gate_before_it_is_made(void **state) {
        CLEANUP(fixture_end) Fixture f;
        WireMessage message;
        Event e;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        event_init(&e);
        fixture_call(&f, "CreateContainer", &e.event.base);
        assert_int_equal(f.code, 0);
        assert_int_equal(f.told.gates, 1);
        assert_string_equal(f.told.gpu, node);
        assert_string_equal(f.told.tenant, "pod/" POD_UID);

        f.told.verdict = -EIO;
        fixture_call(&f, "CreateContainer", &e.event.base);
        assert_int_equal(f.code, 9);
        assert_string_equal(f.why, "gpuagent: GPU 2 is still being reset");
        assert_int_equal(f.told.ends, 0);
}

static void test_an_annotation_of_the_pods_author_books_nothing(void **state) {
        CLEANUP(fixture_end) Fixture f;
        static char key[] = "cdi.k8s.io/x", value[] = "nvidia.com/gpu=1";
        Nri__Entry entry = NRI__ENTRY__INIT, *entries[] = { &entry };
        WireMessage message;
        Event e;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        event_init(&e);
        entry.key = key;
        entry.value = value;
        e.os.n_devices = 0;
        e.container.annotations = entries;
        e.container.n_annotations = 1;
        fixture_call(&f, "CreateContainer", &e.event.base);
        assert_string_equal(f.told.gpu, "1");

        /* As CRI-O passes it on. */
        e.pod.annotations = entries;
        e.pod.n_annotations = 1;
        fixture_call(&f, "CreateContainer", &e.event.base);
        assert_int_equal(f.told.gates, 2);
        assert_string_equal(f.told.gpu, "");
}

static void test_what_a_pod_has_ends_with_the_pod(void **state) {
        CLEANUP(fixture_end) Fixture f;
        Nri__StateEvent change = NRI__STATE_EVENT__INIT;
        Nri__PodEvent end = NRI__POD_EVENT__INIT;
        WireMessage message;
        Event e;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        event_init(&e);
        fixture_call(&f, "StopContainer", &e.event.base);
        fixture_call(&f, "RemoveContainer", &e.event.base);
        assert_int_equal(f.told.ends, 0);

        end.pod = change.pod = &e.pod;
        fixture_call(&f, "StopPodSandbox", &end.base);
        assert_int_equal(f.told.ends, 1);
        assert_string_equal(f.told.tenant, "pod/" POD_UID);
        fixture_call(&f, "RemovePodSandbox", &end.base);
        assert_int_equal(f.told.ends, 2);
        for (int event = 1; event <= 15; event++) {
                change.event = event;
                fixture_call(&f, "StateChange", &change.base);
                assert_int_equal(f.code, event == 11 ? 3 : 0); /* the removal of no container is nonsense */
        }
        assert_int_equal(f.told.ends, 4);
}

/* kubelet removes it while the pod is in a new one, and after the plugin was away, too. */
static void test_the_end_of_a_sandbox_before_is_no_end_of_the_pod(void **state) {
        static char old[] = "s1", new[] = "s2";

        for (unsigned away = 0; away < 2; away++) {
                CLEANUP(fixture_end) Fixture f;
                Nri__PodEvent end = NRI__POD_EVENT__INIT;
                Nri__Known known = NRI__KNOWN__INIT;
                Nri__Container gone = NRI__CONTAINER__INIT, *containers[2];
                Nri__Pod before, *pods[2];
                WireMessage message;
                Event e;

                fixture_begin(&f);
                fixture_hear(&f, &message);
                event_init(&e);
                before = e.pod;
                before.id = gone.sandbox = old;
                e.pod.id = e.container.sandbox = new;
                gone.state = 4;
                containers[0] = &e.container;
                containers[1] = &gone;
                pods[0] = &e.pod;
                pods[1] = &before;
                known.n_containers = known.n_pods = 2;
                known.pods = pods;
                known.containers = containers;
                if (away)
                        fixture_call(&f, "Synchronize", &known.base);
                else {
                        e.event.pod = &before;
                        fixture_call(&f, "CreateContainer", &e.event.base);
                        e.event.pod = &e.pod;
                        fixture_call(&f, "CreateContainer", &e.event.base);
                }

                end.pod = &before;
                fixture_call(&f, "StopPodSandbox", &end.base);
                fixture_call(&f, "RemovePodSandbox", &end.base);
                assert_int_equal(f.told.ends, 0);
                end.pod = &e.pod;
                fixture_call(&f, "StopPodSandbox", &end.base);
                assert_int_equal(f.told.ends, 1);
        }
}

static void test_a_container_of_no_pod_ends_with_itself(void **state) {
        CLEANUP(fixture_end) Fixture f;
        Nri__StateEvent change = NRI__STATE_EVENT__INIT;
        WireMessage message;
        Event e;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        event_init(&e);
        e.os.cgroups_path = e.pod_os.cgroup_parent = no_text;
        fixture_call(&f, "CreateContainer", &e.event.base);
        assert_string_equal(f.told.tenant, "container/c1");
        fixture_call(&f, "StopContainer", &e.event.base);
        assert_int_equal(f.told.ends, 1);
        change.event = 11;
        change.pod = &e.pod;
        change.container = &e.container;
        fixture_call(&f, "StateChange", &change.base);
        assert_int_equal(f.told.ends, 2);
}

static void test_what_it_does_not_know_is_unimplemented(void **state) {
        static const char *const names[] = { "UpdateContainer", "ValidateContainerAdjustment", "",
                "configure" };
        CLEANUP(fixture_end) Fixture f;
        WireMessage message;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                fixture_call_bytes(&f, names[i], (const uint8_t *) "", 0, 65536);
                assert_int_equal(f.code, 12);
        }
}

/* A connection that ends would let the container through. */
static void test_nonsense_is_refused_and_the_connection_lives(void **state) {
        CLEANUP(free_ptr) uint8_t *flood = malloc(FLOOD);
        CLEANUP(fixture_end) Fixture f;
        WireMessage message;
        Event e;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        fixture_call_bytes(&f, "CreateContainer", (const uint8_t *) "", 0, 65536);
        assert_int_equal(f.code, 3);
        fixture_call_bytes(&f, "CreateContainer", (const uint8_t *) "\xff\xff\xff", 3, 65536);
        assert_int_equal(f.code, 3);

        /* a container of two million empty environment variables */
        memcpy(flood, "\x12\xfa\x91\xf4\x01", 5);
        for (size_t i = 5; i + 1 < FLOOD; i += 2)
                memcpy(flood + i, "\x42", 2);
        flood[1] = (uint8_t) (((FLOOD - 5) & 0x7f) | 0x80);
        flood[2] = (uint8_t) ((((FLOOD - 5) >> 7) & 0x7f) | 0x80);
        flood[3] = (uint8_t) ((((FLOOD - 5) >> 14) & 0x7f) | 0x80);
        flood[4] = (uint8_t) ((FLOOD - 5) >> 21);
        fixture_call_bytes(&f, "CreateContainer", flood, FLOOD, 65536);
        assert_int_not_equal(f.code, 0);
        assert_int_equal(f.told.gates, 0);

        event_init(&e);
        fixture_call(&f, "CreateContainer", &e.event.base);
        assert_int_equal(f.code, 0);
        assert_int_equal(f.told.gates, 1);
}

static void test_messages_come_in_pieces_of_any_size(void **state) {
        static const size_t pieces[] = { 1, 2, 7, 8, 9, 10, 11, 2047, 2048, 4096 };
        CLEANUP(fixture_end) Fixture f;
        CLEANUP(wire_buffer_done) WireBuffer packed = {};
        char variable[9000];
        char *variables[5] = { variable, variable, variable, variable, variable };
        WireMessage message;
        Event e;

        memset(variable, 'A', sizeof variable - 1);
        variable[1] = '=';
        variable[sizeof variable - 1] = '\0';
        fixture_begin(&f);
        fixture_hear(&f, &message);
        event_init(&e);
        e.container.environment = variables;
        e.container.n_environment = ELEMENTSOF(variables);
        assert_int_equal(message_pack(&e.event.base, &packed), 0);
        for (size_t i = 0; i < ELEMENTSOF(pieces); i++) {
                fixture_call_bytes(&f, "CreateContainer", packed.data, packed.n, pieces[i]);
                assert_int_equal(f.code, 0);
                assert_int_equal(f.told.gates, i + 1);
        }
}

static void test_a_refusal_of_the_registration_ends_it(void **state) {
        CLEANUP(fixture_end) Fixture f;
        CLEANUP(wire_buffer_done) WireBuffer packed = {};
        Nri__Answer answer = NRI__ANSWER__INIT;
        Nri__Status status = NRI__STATUS__INIT;
        WireMessage message;

        fixture_begin(&f);
        fixture_hear(&f, &message);
        assert_int_equal(message_pack(&answer.base, &packed), 0);
        message = (WireMessage){ .connection = WIRE_RUNTIME, .stream = 1, .type = WIRE_ANSWER };
        assert_int_equal(plugin_take(&f.plugin, &message), 0);
        status.code = 3;
        answer.status = &status;
        wire_buffer_done(&packed);
        assert_int_equal(message_pack(&answer.base, &packed), 0);
        message.data = packed.data;
        message.n = packed.n;
        assert_int_equal(plugin_take(&f.plugin, &message), -ECONNREFUSED);
}

static void test_what_is_no_ttrpc_ends_the_connection(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
        } cases[] = {
                { "\0\0\0\3\0\0\0\1x", 9 },                              /* no such connection */
                { "\0\0\0\1\0\0\0\12\0\100\0\1\0\0\0\1\1\0", 18 },       /* more than 4 MiB */
                { "\0\0\0\1\0\0\0\12\377\377\377\377\0\0\0\1\1\0", 18 }, /* much more */
                { "\0\0\0\1\0\0\0\12\0\0\0\0\0\0\0\1\3\0", 18 },         /* a type that nobody asked for */
                { "\0\0\0\2\0\0\0\12\0\0\0\0\0\0\0\1\1\0", 18 },         /* a call on our own connection */
                { "\0\0\0\1\0\0\0\13\0\0\0\1\0\0\0\1\1\0\377", 19 },     /* no call in it */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CLEANUP(fixture_end) Fixture f;
                WireBuffer bytes = { (uint8_t *) (uintptr_t) cases[i].bytes, cases[i].n };

                fixture_begin(&f);
                assert_int_equal(fixture_feed(&f, &bytes, 65536), -EBADMSG);
        }
}

static void test_no_frame_is_too_large_for_the_other_side(void **state) {
        CLEANUP(wire_buffer_done) WireBuffer out = {};
        CLEANUP(free_ptr) uint8_t *data = calloc(1, 100000);
        const WireMessage message = {
                .connection = WIRE_PLUGIN, .stream = 1, .type = WIRE_ANSWER, .data = data, .n = 100000
        };

        assert_int_equal(wire_write(&out, &message), 0);
        for (size_t at = 0; at < out.n;) {
                size_t n = (size_t) out.data[at + 6] << 8 | out.data[at + 7];

                assert_int_equal(out.data[at + 4] | out.data[at + 5], 0);
                assert_true(n > 0 && n <= 4096 - 8);
                at += 8 + n;
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_registers_as_the_first_thing),
                cmocka_unit_test(test_it_asks_for_no_event_that_an_old_runtime_does_not_know),
                cmocka_unit_test(test_a_list_that_goes_on_is_let_go_on),
                cmocka_unit_test(test_a_container_goes_through_the_gate_before_it_is_made),
                cmocka_unit_test(test_an_annotation_of_the_pods_author_books_nothing),
                cmocka_unit_test(test_what_a_pod_has_ends_with_the_pod),
                cmocka_unit_test(test_the_end_of_a_sandbox_before_is_no_end_of_the_pod),
                cmocka_unit_test(test_a_container_of_no_pod_ends_with_itself),
                cmocka_unit_test(test_what_it_does_not_know_is_unimplemented),
                cmocka_unit_test(test_nonsense_is_refused_and_the_connection_lives),
                cmocka_unit_test(test_messages_come_in_pieces_of_any_size),
                cmocka_unit_test(test_a_refusal_of_the_registration_ends_it),
                cmocka_unit_test(test_what_is_no_ttrpc_ends_the_connection),
                cmocka_unit_test(test_no_frame_is_too_large_for_the_other_side),
        };

        return cmocka_run_group_tests_name("nri", tests, NULL, NULL);
}
