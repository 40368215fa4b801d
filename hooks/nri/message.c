/* SPDX-License-Identifier: MIT */
#include "hooks/nri/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A container's message is some ten kilobytes. Of the largest that ttrpc lets through, made of nothing but
 * empty parts, protobuf-c would make a gigabyte. */
#define MEMORY_MAX (64U << 20)

static void* budget_allocate(void *userdata, size_t size) {
        size_t *left = userdata;

        if (size > *left)
                return NULL;
        *left -= size;
        return malloc(size);
}

static void budget_free(void *userdata, void *pointer) {
        free(pointer);
}

ProtobufCMessage* message_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t n) {
        size_t left = MEMORY_MAX;
        ProtobufCAllocator allocator = { budget_allocate, budget_free, &left };

        return protobuf_c_message_unpack(type, &allocator, n, data);
}

void message_free(ProtobufCMessage *message) {
        ProtobufCAllocator allocator = { budget_allocate, budget_free, NULL };

        if (message)
                protobuf_c_message_free_unpacked(message, &allocator);
}

int message_pack(const ProtobufCMessage *message, WireBuffer *ret) {
        size_t n = protobuf_c_message_get_packed_size(message);
        uint8_t *data = malloc(n + 1);

        if (!data)
                return -ENOMEM;
        *ret = (WireBuffer){ .data = data, .n = protobuf_c_message_pack(message, data) };
        return 0;
}

static void see_hooks(OciContainer *ret, size_t n, Nri__Hook *const *hooks) {
        for (size_t i = 0; i < n; i++)
                oci_see_hook(ret, hooks[i]->path);
}

static int see_linux(const Nri__LinuxContainer *os, OciContainer *ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < os->n_devices; i++) {
                const Nri__Device *device = os->devices[i];

                r = oci_see_device(ret, device->path, device->type, device->major, device->minor);
        }
        for (size_t i = 0; r >= 0 && os->resources && i < os->resources->n_devices; i++) {
                const Nri__DeviceRule *rule = os->resources->devices[i];

                r = oci_see_device_rule(ret, rule->allow, rule->type, rule->major ? rule->major->value : -1,
                                rule->minor ? rule->minor->value : -1, rule->access);
        }
        return r;
}

/* CRI-O gives a container all that the pod's author has written on the pod, and acts on none of it. What
 * kubelet writes for a container is not the pod's. */
static bool is_the_pods(const Nri__Pod *pod, const Nri__Entry *annotation) {
        for (size_t i = 0; i < pod->n_annotations; i++)
                if (streq(pod->annotations[i]->key, annotation->key) &&
                                streq(pod->annotations[i]->value, annotation->value))
                        return true;
        return false;
}

static int see_container(const Nri__Pod *pod, const Nri__Container *container, OciContainer *ret) {
        int r = 0;

        (void) snprintf(ret->id, sizeof ret->id, "%s", container->id);
        for (size_t i = 0; r >= 0 && i < container->n_mounts; i++)
                r = oci_see_mount(ret, container->mounts[i]->destination, container->mounts[i]->source);
        for (size_t i = 0; r >= 0 && i < container->n_environment; i++)
                r = oci_see_variable(ret, container->environment[i]);
        for (size_t i = 0; r >= 0 && i < container->n_annotations; i++) {
                const Nri__Entry *annotation = container->annotations[i];

                if (!is_the_pods(pod, annotation))
                        r = oci_see_annotation(ret, annotation->key, annotation->value);
        }
        /* What the pod's author asked of CDI by name, as an annotation would. */
        for (size_t i = 0; r >= 0 && i < container->n_cdi_devices; i++)
                r = oci_see_annotation(ret, "cdi.k8s.io/nri", container->cdi_devices[i]->name);
        if (r >= 0 && container->os)
                r = see_linux(container->os, ret);
        if (container->hooks) {
                see_hooks(ret, container->hooks->n_prestart, container->hooks->prestart);
                see_hooks(ret, container->hooks->n_create_runtime, container->hooks->create_runtime);
                see_hooks(ret, container->hooks->n_create_container, container->hooks->create_container);
                see_hooks(ret, container->hooks->n_start_container, container->hooks->start_container);
        }
        /* NVIDIA's runtime, which is called "nvidia", "nvidia-cdi" or "nvidia-legacy", adds its hook when
         * it is called, and that is later. */
        if (startswith(pod->runtime_handler, "nvidia"))
                ret->nvidia_hook = true;
        return r;
}

int container_from_message(const Nri__Pod *pod, const Nri__Container *container, OciContainer *ret) {
        CLEANUP(oci_container_done) OciContainer seen = {};
        int r;

        oci_see_pod(&seen, pod->uid, pod->namespace_);
        /* The container's is below its pod's; some runtimes do not tell that. */
        if (pod->os && pod->os->cgroup_parent[0])
                oci_see_cgroup(&seen, pod->os->cgroup_parent);
        else if (container && container->os)
                oci_see_cgroup(&seen, container->os->cgroups_path);
        r = container ? see_container(pod, container, &seen) : 0;
        if (r < 0)
                return r;
        *ret = seen;
        seen = (OciContainer){};
        return 0;
}
