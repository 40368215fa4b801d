/* SPDX-License-Identifier: MIT */
/* Whose process it is: the Slurm job, pod or systemd unit that a person would look for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A tenant that leaves signs on its node. */
typedef struct OwnerTenant {
        char where[80];    /* as owner_from_cgroup() says it: "job 27", "pod <uid>"; and "container <id>" */
        bool is_job;       /* of Slurm */
        uint32_t restarts; /* of the job when it got its GPUs */
} OwnerTenant;

/* From the text of /proc/PID/cgroup: "job 27", "pod <uid>", "unit x.service" or "user unit x.service",
 * printable and cut; "" if it tells nothing. Who may make cgroups of his own (below user.slice) cannot pass
 * for a job or pod by their names. */
void owner_from_cgroup(const char *text, char *ret, size_t size);

/* From an environment: "job 27" if it holds SLURM_JOB_ID, and SLURM_JOB_UID is `uid`; else "". That is the
 * process's own claim, made where Slurm has no cgroups, and good enough to name it. */
void owner_from_environment(const char *environment, size_t n, uid_t uid, char *ret, size_t size);

/* From a tenant's name: "slurm/27.0", "pod/<uid>" or "container/<id>". 0 · -EOPNOTSUPP of another kind. */
int owner_tenant_parse(const char *tenant, OwnerTenant *ret);

/* Whether it is proven that a process was the tenant's, from what its cgroup and environment say. A cgroup
 * of the tenant proves it, and one of another job or pod that it is not. Without any, a job's process has
 * to have its SLURM_JOB_ID, with SLURM_JOB_UID its own uid, which is not root's. A process of a later run
 * of the job (SLURM_RESTART_COUNT) is not the tenant's. */
bool owner_proves(
                const OwnerTenant *tenant, const char *cgroup, const char *environment, size_t n, uid_t uid);

/* The same for a process, by its folder in /proc. What cannot be read proves nothing. */
bool owner_is_tenant(int process_dir_fd, uid_t uid, const OwnerTenant *tenant);

/* What a person would look for, of a process by its folder in /proc: by its cgroup, else by its
 * environment. One that is gone has "". */
void owner_find(int process_dir_fd, uid_t uid, char *ret, size_t size);
