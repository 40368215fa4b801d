/* SPDX-License-Identifier: MIT */
#include "cli/oci-rules.h"

#include <errno.h>
#include <stdio.h>

/* The driver's character devices (NV_MAJOR_DEVICE_NUMBER of its nv-chardev-numbers.h, 580.95): 254 and
 * 255 are no GPUs. */
#define NVIDIA_MAJOR     195
#define NVIDIA_MINOR_MAX 253

/* More than these no machine has, and no honest container. */
#define GPUS_MAX 512

#define NODE_PREFIX   "/dev/nvidia"
#define MOUNTS_PREFIX "/var/run/nvidia-container-devices/"
#define CDI_PREFIX    "cdi.k8s.io/"

void oci_container_done(OciContainer *container) {
        (void) strv_free(container->nodes);
        (void) strv_free(container->names);
        free(container->visible_devices);
        *container = (OciContainer){};
}

static int add(char ***strv, const char *name) {
        if (name[0] == '\0' || strv_contains(*strv, name))
                return 0;
        return strv_length(*strv) < GPUS_MAX ? strv_append(strv, name) : -E2BIG;
}

static int see_node(OciContainer *container, const char *path) {
        const char *number = startswith(path, NODE_PREFIX);
        uint32_t minor;

        return number && parse_u32(number, NVIDIA_MINOR_MAX, &minor) >= 0 ? add(&container->nodes, path) : 0;
}

int oci_see_device(
                OciContainer *container, const char *path, const char *type, int64_t major, int64_t minor) {
        char node[32];

        if (major != NVIDIA_MAJOR)
                return see_node(container, path); /* of a driver that is emulated, or by a link */
        if (minor < 0 || minor > NVIDIA_MINOR_MAX || (!streq(type, "c") && !streq(type, "u")))
                return 0;
        (void) snprintf(node, sizeof node, NODE_PREFIX "%d", (int) minor);
        return add(&container->nodes, node);
}

/* "nvidia.com/gpu=0", "k8s.device-plugin.nvidia.com/gpu=GPU-…", "nvidia.com/mig=…": a device of CDI. */
static int see_cdi(OciContainer *container, const char *device) {
        const char *class = strchr(device, '/'), *name = class ? strchr(class, '=') : NULL;
        static const char vendor[] = "nvidia.com";
        size_t n;

        if (!name)
                return 0;
        n = (size_t) (class - device);
        if (n < sizeof vendor - 1 || strncmp(class - (sizeof vendor - 1), vendor, sizeof vendor - 1) != 0 ||
                        (n > sizeof vendor - 1 && class[-(ptrdiff_t) sizeof vendor] != '.'))
                return 0;
        if (startswith(class, "/gpu="))
                return add(&container->names, name + 1);
        return startswith(class, "/mig") ? add(&container->names, "MIG-of-CDI") : 0;
}

int oci_see_mount(OciContainer *container, const char *destination, const char *source) {
        const char *name = startswith(destination, MOUNTS_PREFIX),
                   *cdi = name ? startswith(name, "cdi/") : NULL;
        const char *device = cdi ? strrchr(cdi, '/') : NULL;
        CLEANUP(free_ptr) char *qualified = NULL;

        /* What runs without rights has its devices bound in, and not made. Where to is its author's choice,
         * who could book with any volume by that. */
        if (!name)
                return see_node(container, source);
        if (!streq(source, "/dev/null"))
                return 0; /* NVIDIA takes nothing else for a device */
        if (!cdi)
                return add(&container->names, name);
        if (!device)
                return 0;
        if (asprintf(&qualified, "%.*s=%s", (int) (device - cdi), cdi, device + 1) < 0)
                return -ENOMEM;
        return see_cdi(container, qualified);
}

int oci_see_variable(OciContainer *container, const char *variable) {
        const char *devices = startswith(variable, "NVIDIA_VISIBLE_DEVICES=");
        const char *version = startswith(variable, "CUDA_VERSION=");
        const char *requirement = startswith(variable, "NVIDIA_REQUIRE_CUDA=");
        char *copy;

        if (version)
                container->cuda_version = version[0] != '\0';
        if (requirement)
                container->cuda_requirement = requirement[0] != '\0';
        if (!devices)
                return 0;
        copy = strdup(devices);
        if (!copy)
                return -ENOMEM;
        free(container->visible_devices); /* the last one counts */
        container->visible_devices = copy;
        return 0;
}

/* Adds the items of a list with commas. */
static int for_each(const char *list, int (*see)(OciContainer *, const char *), OciContainer *container) {
        CLEANUP(free_ptr) char *copy = strdup(list);
        char *rest = copy, *item;
        int r = 0;

        if (!copy)
                return -ENOMEM;
        while (r >= 0 && (item = strsep(&rest, ",")))
                r = see(container, text_strip(item));
        return r;
}

int oci_see_annotation(OciContainer *container, const char *key, const char *value) {
        return startswith(key, CDI_PREFIX) ? for_each(value, see_cdi, container) : 0;
}

void oci_see_hook(OciContainer *container, const char *path) {
        const char *name = strrchr(path, '/');

        name = name ? name + 1 : path;
        container->nvidia_hook |= startswith(name, "nvidia-container-runtime-hook") ||
                        startswith(name, "nvidia-container-toolkit");
}

int oci_see_device_rule(OciContainer *container, bool allow, const char *type, int64_t major, int64_t minor,
                const char *access) {
        bool any = !type || type[0] == '\0' || streq(type, "a");

        if (any && major < 0 && minor < 0) {
                container->all_devices = allow; /* each rule goes over those before it */
                return 0;
        }
        /* Who may open a node can make it; to make nodes alone every container may. */
        if (!allow || !(any || streq(type, "c")) || !strpbrk(access, "rw") ||
                        (major >= 0 && major != NVIDIA_MAJOR))
                return 0;
        return minor < 0 ? add(&container->names, "all")
                         : oci_see_device(container, "", "c", NVIDIA_MAJOR, minor);
}

void oci_see_pod(OciContainer *container, const char *uid, const char *namespace) {
        (void) snprintf(container->pod_uid, sizeof container->pod_uid, "%s", uid);
        (void) snprintf(container->namespace, sizeof container->namespace, "%s", namespace);
}

void oci_see_cgroup(OciContainer *container, const char *path) {
        const char *uid = container->pod_uid;
        char under[sizeof container->pod_uid];

        /* The agent looks for pods there, and could not see the end of another one. */
        if (!pod_uid_is_valid(uid))
                return;
        memcpy(under, uid, sizeof under);
        for (char *c = under; *c; c++)
                if (*c == '-')
                        *c = '_';
        container->in_pod_cgroup = strstr(path, "kubepods") && (strstr(path, uid) || strstr(path, under));
}

bool oci_gpu_is_mig(const char *gpu) {
        return startswith(gpu, "MIG-") ||
                        (gpu[0] >= '0' && gpu[0] <= '9' && strchr(gpu, ':') &&
                                        strspn(gpu, "0123456789:") == strlen(gpu) &&
                                        !strchr(strchr(gpu, ':') + 1, ':'));
}

/* What NVIDIA's runtime reads out of the variables. NULL for no GPU. */
static const char* visible_devices(const OciContainer *container, const OciRules *rules) {
        static const char *const nothing[] = { "", "void", "none" };
        const char *devices = container->visible_devices;

        /* It counts beside mounts: unless told otherwise NVIDIA's runtime does not look at those. */
        if (!(container->nvidia_hook || rules->nvidia_runtime))
                return NULL;
        /* An image from before the variable. */
        if (!devices)
                return container->cuda_version && !container->cuda_requirement ? "all" : NULL;
        for (size_t i = 0; i < ELEMENTSOF(nothing); i++)
                if (streq(devices, nothing[i]))
                        return NULL;
        return devices[0] == '/' ? NULL : devices; /* a path says that the mounts have them */
}

static int see_name(OciContainer *container, const char *name) {
        return add(&container->names, name);
}

bool oci_observes(const OciContainer *container, char *const *observers) {
        return container->namespace[0] && strv_contains(observers, container->namespace);
}

int oci_gpus(const OciContainer *container, const OciRules *rules, char ***ret) {
        bool observer = oci_observes(container, rules->observers);
        const char *visible = visible_devices(container, rules);
        bool sees_all = container->all_devices || (observer && visible && streq(visible, "all"));
        CLEANUP(oci_container_done) OciContainer found = {};
        int r = 0;

        /* Who sees every GPU as the host does has none of his own by that: it takes a name. */
        for (char **node = container->nodes; !sees_all && node && *node && r >= 0; node++)
                r = add(&found.names, *node);
        for (char **name = container->names; name && *name && r >= 0; name++)
                if (!sees_all || !streq(*name, "all"))
                        r = add(&found.names, *name);
        if (r >= 0 && visible && !observer && !(sees_all && streq(visible, "all")))
                r = for_each(visible, see_name, &found);
        if (r < 0)
                return r;

        if (!found.names)
                return 0;
        *ret = take_ptr(&found.names);
        return 1;
}

bool oci_is_pods(const OciContainer *container) {
        return container->in_pod_cgroup;
}

int oci_tenant(const OciContainer *container, char ret[static TENANT_MAX + 1]) {
        bool pod = oci_is_pods(container);
        char tenant[OCI_ID_SIZE + sizeof "container/"];

        (void) snprintf(tenant, sizeof tenant, "%s/%s", pod ? "pod" : "container",
                        pod ? container->pod_uid : container->id);
        if (!tenant_is_valid(tenant))
                return -EINVAL;
        memcpy(ret, tenant, strlen(tenant) + 1);
        return 0;
}
