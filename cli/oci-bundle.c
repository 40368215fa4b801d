/* SPDX-License-Identifier: MIT */
#include "cli/oci-bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "cli/json.h"

int oci_state_read(int fd, usec_t deadline_usec, char **ret, size_t *ret_size, Failure *failure) {
        CLEANUP(free_ptr) char *text = malloc(OCI_STATE_MAX + 1);
        size_t size = 0;

        if (!text)
                return failure_errno(failure, -ENOMEM, "cannot read the container's state");
        for (;;) {
                usec_t now = now_monotonic_usec();
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                ssize_t n;

                if (now >= deadline_usec)
                        return failure_set(
                                        failure, CLI_FAILED, "the container's state on stdin does not end");
                if (poll(&poll_fd, 1, (int) ((deadline_usec - now) / USEC_PER_MSEC) + 1) <= 0)
                        continue;
                n = read(fd, text + size, OCI_STATE_MAX + 1 - size);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                if (n < 0)
                        return failure_errno(failure, -errno, "cannot read the container's state");
                if (n == 0)
                        break;
                size += (size_t) n;
                if (size > OCI_STATE_MAX)
                        return failure_set(failure, CLI_FAILED,
                                        "the container's state on stdin is longer than %u bytes",
                                        OCI_STATE_MAX);
        }

        *ret = take_ptr(&text);
        *ret_size = size;
        return 0;
}

/* A member, NULL where it is missing or of another kind. */
static json_object* member(json_object *object, const char *key, json_type type) {
        json_object *value = NULL;

        if (!json_object_is_type(object, json_type_object) ||
                        !json_object_object_get_ex(object, key, &value) || !json_object_is_type(value, type))
                return NULL;
        return value;
}

static const char* text_of(json_object *object, const char *key) {
        json_object *value = member(object, key, json_type_string);

        return value ? json_object_get_string(value) : NULL;
}

static int64_t number_of(json_object *object, const char *key) {
        json_object *value = member(object, key, json_type_int);

        return value ? json_object_get_int64(value) : -1;
}

static json_object* item(json_object *array, size_t i) {
        return json_object_array_get_idx(array, i);
}

static size_t length(json_object *array) {
        return array ? json_object_array_length(array) : 0;
}

/* The pod by what containerd and CRI-O write into the annotations. CRI-O puts all those of the pod's author
 * beside its own, and containerd can be told to: where both engines seem to have written, one has not, and
 * no namespace is proven. */
static void see_pod(json_object *annotations, OciContainer *container) {
        CLEANUP(json_put_ptr) json_object *parsed = NULL;
        const char *uid = text_of(annotations, "io.kubernetes.cri.sandbox-uid");
        const char *namespace = text_of(annotations, "io.kubernetes.cri.sandbox-namespace");
        const char *labels = text_of(annotations, "io.kubernetes.cri-o.Labels");

        if (labels && json_read_object(labels, strlen(labels), &parsed) >= 0) {
                bool both = uid || namespace;

                uid = text_of(parsed, "io.kubernetes.pod.uid");
                namespace = both ? NULL : text_of(parsed, "io.kubernetes.pod.namespace");
        }
        if (uid)
                oci_see_pod(container, uid, namespace ?: "");
}

int oci_state_parse(const char *text, size_t size, OciContainer *ret, char **ret_bundle, Failure *failure) {
        CLEANUP(json_put_ptr) json_object *state = NULL;
        const char *id, *bundle;
        int64_t pid;
        char *copy;
        int r;

        r = json_read_object(text, size, &state);
        if (r == -EINVAL)
                return failure_set(failure, CLI_FAILED, "what is on stdin is no state of an OCI container");
        if (r < 0)
                return failure_errno(failure, r, "cannot read the container's state");
        id = text_of(state, "id");
        bundle = text_of(state, "bundle");
        if (!id || id[0] == '\0' || strlen(id) >= OCI_ID_SIZE)
                return failure_set(failure, CLI_FAILED, "the container's state on stdin has no id");
        if (!bundle || bundle[0] != '/')
                return failure_set(failure, CLI_FAILED, "the container's state on stdin has no bundle");
        copy = strdup(bundle);
        if (!copy)
                return failure_errno(failure, -ENOMEM, "cannot read the container's state");

        *ret = (OciContainer){};
        (void) snprintf(ret->id, sizeof ret->id, "%s", id);
        pid = number_of(state, "pid");
        ret->init = pid > 0 && pid <= INT32_MAX ? (pid_t) pid : 0;
        see_pod(member(state, "annotations", json_type_object), ret);
        *ret_bundle = copy;
        return 0;
}

static int see_devices(json_object *linux_part, OciContainer *container) {
        json_object *devices = member(linux_part, "devices", json_type_array);
        json_object *rules = member(
                        member(linux_part, "resources", json_type_object), "devices", json_type_array);
        int r = 0;

        for (size_t i = 0; i < length(devices) && r >= 0; i++)
                r = oci_see_device(container, text_of(item(devices, i), "path") ?: "",
                                text_of(item(devices, i), "type") ?: "",
                                number_of(item(devices, i), "major"), number_of(item(devices, i), "minor"));
        for (size_t i = 0; i < length(rules) && r >= 0; i++) {
                json_object *rule = item(rules, i), *allow = member(rule, "allow", json_type_boolean);

                r = oci_see_device_rule(container, json_object_get_boolean(allow), text_of(rule, "type"),
                                number_of(rule, "major"), number_of(rule, "minor"),
                                text_of(rule, "access") ?: "");
        }
        return r;
}

static int see_mounts(json_object *mounts, OciContainer *container) {
        int r = 0;

        for (size_t i = 0; i < length(mounts) && r >= 0; i++)
                r = oci_see_mount(container, text_of(item(mounts, i), "destination") ?: "",
                                text_of(item(mounts, i), "source") ?: "");
        return r;
}

static int see_variables(json_object *process, OciContainer *container) {
        json_object *variables = member(process, "env", json_type_array);
        int r = 0;

        for (size_t i = 0; i < length(variables) && r >= 0; i++)
                if (json_object_is_type(item(variables, i), json_type_string))
                        r = oci_see_variable(container, json_object_get_string(item(variables, i)));
        return r;
}

static int see_annotations(json_object *annotations, OciContainer *container) {
        const char *kubelets = text_of(annotations, "io.kubernetes.cri-o.Annotations");
        CLEANUP(json_put_ptr) json_object *parsed = NULL;
        int r = 0;

        /* CRI-O has kubelet's alone in this one; "null" for none. */
        if (kubelets) {
                r = json_read_object(kubelets, strlen(kubelets), &parsed);
                if (r == -ENOMEM)
                        return r;
                annotations = parsed;
                r = 0;
        }
        if (!annotations)
                return 0;
        json_object_object_foreach(annotations, key, value) {
                if (r >= 0 && json_object_is_type(value, json_type_string))
                        r = oci_see_annotation(container, key, json_object_get_string(value));
        }
        return r;
}

static void see_hooks(json_object *hooks, OciContainer *container) {
        static const char *const stages[] = { "prestart", "createRuntime" };

        for (size_t s = 0; s < ELEMENTSOF(stages); s++) {
                json_object *stage = member(hooks, stages[s], json_type_array);

                for (size_t i = 0; i < length(stage); i++)
                        oci_see_hook(container, text_of(item(stage, i), "path") ?: "");
        }
}

int oci_config_parse(const char *text, size_t size, OciContainer *container, Failure *failure) {
        CLEANUP(json_put_ptr) json_object *config = NULL;
        json_object *annotations, *linux_part;
        int r;

        r = json_read_object(text, size, &config);
        if (r == -EINVAL)
                return failure_set(failure, CLI_FAILED, "the container's config.json is no configuration");

        linux_part = member(config, "linux", json_type_object);
        annotations = member(config, "annotations", json_type_object);
        if (r >= 0) {
                see_pod(annotations, container);
                oci_see_cgroup(container, text_of(linux_part, "cgroupsPath") ?: "");
                see_hooks(member(config, "hooks", json_type_object), container);
                r = see_devices(linux_part, container);
        }
        if (r >= 0)
                r = see_mounts(member(config, "mounts", json_type_array), container);
        if (r >= 0)
                r = see_variables(member(config, "process", json_type_object), container);
        if (r >= 0)
                r = see_annotations(annotations, container);
        return r < 0 ? failure_errno(failure, r, "cannot read the container's GPUs out of its config.json")
                     : 0;
}

int oci_config_read(const char *bundle, OciContainer *container, Failure *failure) {
        CLEANUP(free_ptr) char *text = NULL;
        CLEANUP(fd_close) int dir_fd = -1;
        size_t size;
        int r;

        dir_fd = open(bundle, O_DIRECTORY | O_CLOEXEC | O_PATH);
        r = dir_fd < 0 ? -errno : file_read(dir_fd, "config.json", OCI_CONFIG_MAX, &text, &size);
        if (r < 0)
                return failure_errno(failure, r, "cannot read the container's config.json");
        return oci_config_parse(text, size, container, failure);
}
