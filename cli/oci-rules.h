/* SPDX-License-Identifier: MIT */
/* Which GPUs a container is given, and whose they are then, by what its runtime says of it: told piece by
 * piece by whoever reads that (an OCI bundle, NRI), and decided here for all of them. What a pod's author
 * can write counts only where somebody acts on it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

/* A container's id is up to 64 digits with every engine, and what a person likes with a bare runtime. */
#define OCI_ID_SIZE        1025
#define OCI_NAMESPACE_SIZE 64

/* What the site says about its nodes. */
typedef struct OciRules {
        char *const *observers; /* a strv of namespaces whose pods look at GPUs and are no tenants */
        bool nvidia_runtime;    /* NVIDIA_VISIBLE_DEVICES is acted on, also where no hook shows it */
} OciRules;

/* Zero at first. */
typedef struct OciContainer {
        char id[OCI_ID_SIZE];
        char pod_uid[TENANT_MAX + 1];       /* "" for a container that is in no pod */
        char namespace[OCI_NAMESPACE_SIZE]; /* the pod's */
        pid_t init;                         /* its first process, 0 if nobody has told */
        char **nodes;                       /* "/dev/nvidia0" */
        char **names;                       /* by CDI annotations and NVIDIA's mounts */
        char *visible_devices;              /* NVIDIA_VISIBLE_DEVICES, NULL if unset */
        bool cuda_version, cuda_requirement;
        bool nvidia_hook; /* NVIDIA's hook is there, and acts on the variable */
        bool all_devices; /* its device cgroup allows every device: it is privileged */
        bool in_pod_cgroup;
} OciContainer;

void oci_container_done(OciContainer *container);

/* All of these: 0 · -E2BIG it names more GPUs than there can be · -ENOMEM. */
int oci_see_device(
                OciContainer *container, const char *path, const char *type, int64_t major, int64_t minor);
int oci_see_mount(OciContainer *container, const char *destination, const char *source);
int oci_see_variable(OciContainer *container, const char *variable); /* "NAME=VALUE" */
int oci_see_annotation(OciContainer *container, const char *key, const char *value);

/* A rule of its device cgroup; `type` may be NULL, numbers that are not given are negative. */
int oci_see_device_rule(OciContainer *container, bool allow, const char *type, int64_t major, int64_t minor,
                const char *access);

/* A hook that runs before the container starts. */
void oci_see_hook(OciContainer *container, const char *path);

/* The pod that it is part of, and where its cgroup is: first the one, then the other. */
void oci_see_pod(OciContainer *container, const char *uid, const char *namespace);
void oci_see_cgroup(OciContainer *container, const char *path);

/* Its GPUs: "/dev/nvidia0" by the minor, an index, a UUID, what NVIDIA calls a MIG device, or "all". 1 and
 * *ret (a strv) · 0 it has none, or only looks at them · -E2BIG, -ENOMEM. */
int oci_gpus(const OciContainer *container, const OciRules *rules, char ***ret);

/* Whether it is of a pod in one of the namespaces (a strv). */
bool oci_observes(const OciContainer *container, char *const *observers);

/* Whether one of those is a part of a GPU. */
bool oci_gpu_is_mig(const char *gpu);

/* Whether a pod's end, and not the container's, is the end of its use of the GPUs: init containers hand them
 * on, and what is started again keeps them. */
bool oci_is_pods(const OciContainer *container);

/* "pod/<uid>", else "container/<id>". 0 and *ret · -EINVAL it has no id that could be one. */
int oci_tenant(const OciContainer *container, char ret[static TENANT_MAX + 1]);
