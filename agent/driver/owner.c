/* SPDX-License-Identifier: MIT */
#include "agent/driver/owner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/parse.h"
#include "agent/base/sluid.h"
#include "agent/base/text.h"

#define CGROUP_MAX      (64U << 10)
#define ENVIRONMENT_MAX (2U << 20)
#define DEPTH_MAX       32

/* Engines take 64 digits; a person may name one otherwise. */
#define CONTAINER_ID_LENGTH_MAX 64

/* A job by its folder, the n-th of the path, as a number as long as one of its steps can tell it. */
static void name_sluid(char *const *parts, size_t n, char *ret, size_t size) {
        char folder[PATH_MAX] = "";
        size_t used = 0;
        uint32_t number;

        for (size_t i = 0; i <= n && used < sizeof folder; i++)
                used += (size_t) snprintf(folder + used, sizeof folder - used, "/%s", parts[i]);
        if (used < sizeof folder && sluid_job(folder, used, &number) > 0)
                (void) snprintf(ret, size, "job %u", number);
        else
                (void) snprintf(ret, size, "job %s", parts[n]);
}

/* "/system.slice/slurmstepd.scope/job_27/step_0", "/system.slice/n1_slurmstepd.scope/…" (v2),
 * "/slurm_n1/uid_1000/job_27/…" (v1), and in 26.05 a SLUID in the place of job_27. */
static bool find_job(char *const *parts, size_t n, char *ret, size_t size) {
        bool slurm = false;

        for (size_t i = 0; i < n; i++) {
                const char *id = startswith(parts[i], "job_");
                uint32_t number;

                if (slurm && id && parse_u32(id, UINT32_MAX, &number) >= 0) {
                        (void) snprintf(ret, size, "job %u", number);
                        return true;
                }
                if (slurm && i + 1 < n && startswith(parts[i + 1], "step_") &&
                                is_sluid(parts[i], strlen(parts[i]))) {
                        name_sluid(parts, i, ret, size);
                        return true;
                }
                slurm = slurm || endswith(parts[i], "slurmstepd.scope") || streq(parts[i], "slurm") ||
                                startswith(parts[i], "slurm_");
        }
        return false;
}

/* "/kubepods/burstable/pod<uid>/…", "/kubepods.slice/…/kubepods-burstable-pod<uid>.slice/…" and the like
 * below kubelet's. */
static bool find_pod(char *const *parts, size_t n, char *ret, size_t size) {
        bool kubepods = false;

        for (size_t i = 0; i < n; i++) {
                const char *pod = startswith(parts[i], "pod");
                char uid[TENANT_MAX];
                size_t length;

                kubepods = kubepods || strstr(parts[i], "kubepods");
                if (!pod) {
                        pod = strstr(parts[i], "-pod");
                        pod = pod ? pod + strlen("-pod") : NULL;
                }
                length = kubepods && pod ? pod_uid_length(pod) : 0;
                if (length == 0)
                        continue;

                (void) snprintf(uid, sizeof uid, "%.*s", (int) length, pod);
                for (char *c = uid; *c; c++)
                        if (*c == '_')
                                *c = '-';
                (void) snprintf(ret, size, "pod %s", uid);
                return true;
        }
        return false;
}

/* The first service or scope on the way down; below a user's manager, the user's own. */
static bool find_unit(char *const *parts, size_t n, char *ret, size_t size) {
        const char *kind = "unit";
        char name[256];

        for (size_t i = 0; i < n; i++) {
                if (!endswith(parts[i], ".service") && !endswith(parts[i], ".scope"))
                        continue;
                text_escape(parts[i], name, sizeof name);
                (void) snprintf(ret, size, "%.9s %.200s", kind, name);
                if (!startswith(parts[i], "user@") || streq(kind, "user unit"))
                        return true;
                kind = "user unit";
        }
        return ret[0] != '\0';
}

/* One path, which is cut into pieces. */
static void owner_from_path(char *path, bool systemd, char *ret, size_t size) {
        char *parts[DEPTH_MAX], *rest = path, *part;
        bool user = false;
        size_t n = 0;

        while (n < DEPTH_MAX && (part = strtok_r(rest, "/", &rest))) {
                user = user || streq(part, "user.slice");
                parts[n++] = part;
        }
        if (!user && (find_job(parts, n, ret, size) || find_pod(parts, n, ret, size)))
                return;
        if (systemd)
                (void) find_unit(parts, n, ret, size);
}

void owner_from_cgroup(const char *text, char *ret, size_t size) {
        CLEANUP(free_ptr) char *copy = strdup(text);
        char *rest = copy, *line;

        ret[0] = '\0';
        while (copy && (line = strsep(&rest, "\n"))) {
                char *controllers = strchr(line, ':'),
                     *path = controllers ? strchr(controllers + 1, ':') : NULL;
                char found[96] = "";
                bool systemd;

                if (!path)
                        continue;
                *path++ = '\0';
                systemd = streq(controllers, ":") || streq(controllers, ":name=systemd");
                owner_from_path(path, systemd, found, sizeof found);

                /* A job or pod may stand in one hierarchy of several, and tells more than the unit in
                 * another. */
                if (found[0] && (ret[0] == '\0' || startswith(found, "job ") || startswith(found, "pod ")))
                        (void) snprintf(ret, size, "%s", found);
                if (startswith(ret, "job ") || startswith(ret, "pod "))
                        return;
        }
}

/* The value of a variable, which ends with a NUL; NULL if there is none. */
static const char* environment_get(const char *environment, size_t n, const char *name) {
        const char *end = environment + n;
        size_t length = strlen(name);

        while (environment < end) {
                size_t size = strnlen(environment, (size_t) (end - environment));

                if (environment + size == end)
                        return NULL; /* cut in the middle */
                if (size > length && memcmp(environment, name, length) == 0 && environment[length] == '=')
                        return environment + length + 1;
                environment += size + 1;
        }
        return NULL;
}

void owner_from_environment(const char *environment, size_t n, uid_t uid, char *ret, size_t size) {
        const char *job = environment_get(environment, n, "SLURM_JOB_ID");
        const char *job_uid = environment_get(environment, n, "SLURM_JOB_UID");
        uint32_t id, owner;

        ret[0] = '\0';
        if (job && job_uid && parse_u32(job, UINT32_MAX, &id) >= 0 &&
                        parse_u32(job_uid, UINT32_MAX, &owner) >= 0 && owner == uid)
                (void) snprintf(ret, size, "job %u", id);
}

void owner_find(int process_dir_fd, uid_t uid, char *ret, size_t size) {
        CLEANUP(free_ptr) char *cgroup = NULL, *environment = NULL;
        char claim[32];
        size_t n;

        ret[0] = '\0';
        if (file_read(process_dir_fd, "cgroup", CGROUP_MAX, &cgroup, NULL) >= 0)
                owner_from_cgroup(cgroup, ret, size);
        if (startswith(ret, "job ") || startswith(ret, "pod "))
                return;

        if (file_read(process_dir_fd, "environ", ENVIRONMENT_MAX, &environment, &n) < 0)
                return;
        owner_from_environment(environment, n, uid, claim, sizeof claim);
        if (claim[0])
                (void) snprintf(ret, size, "%s", claim);
}

int owner_tenant_parse(const char *tenant, OwnerTenant *ret) {
        const char *job = startswith(tenant, "slurm/"), *pod = startswith(tenant, "pod/");
        const char *container = startswith(tenant, "container/");
        OwnerTenant parsed = {};
        char id[16];
        const char *dot;
        uint32_t number;

        if (pod && pod_uid_is_valid(pod)) {
                (void) snprintf(parsed.where, sizeof parsed.where, "pod %s", pod);
                *ret = parsed;
                return 0;
        }

        if (container && strlen(container) <= CONTAINER_ID_LENGTH_MAX) {
                (void) snprintf(parsed.where, sizeof parsed.where, "container %s", container);
                *ret = parsed;
                return 0;
        }

        dot = job ? strchr(job, '.') : NULL;
        if (!dot || (size_t) (dot - job) >= sizeof id)
                return -EOPNOTSUPP;
        memcpy(id, job, (size_t) (dot - job));
        id[dot - job] = '\0';
        if (parse_u32(id, UINT32_MAX, &number) < 0 || parse_u32(dot + 1, UINT32_MAX, &parsed.restarts) < 0)
                return -EOPNOTSUPP;
        (void) snprintf(parsed.where, sizeof parsed.where, "job %u", number);
        parsed.is_job = true;
        *ret = parsed;
        return 0;
}

bool owner_proves(const OwnerTenant *tenant, const char *cgroup, const char *environment, size_t n,
                uid_t uid) {
        const char *restarts = environment_get(environment, n, "SLURM_RESTART_COUNT");
        char where[96];
        uint32_t number;

        if (tenant->is_job && restarts &&
                        (parse_u32(restarts, UINT32_MAX, &number) < 0 || number > tenant->restarts))
                return false;

        owner_from_cgroup(cgroup, where, sizeof where);
        if (startswith(where, "job ") || startswith(where, "pod "))
                return streq(where, tenant->where);
        if (!tenant->is_job || uid == 0)
                return false;
        owner_from_environment(environment, n, uid, where, sizeof where);
        return streq(where, tenant->where);
}

bool owner_is_tenant(int process_dir_fd, uid_t uid, const OwnerTenant *tenant) {
        CLEANUP(free_ptr) char *cgroup = NULL, *environment = NULL;
        size_t n = 0;

        if (file_read(process_dir_fd, "cgroup", CGROUP_MAX, &cgroup, NULL) < 0)
                return false;
        /* The cgroup may do without it. */
        (void) file_read(process_dir_fd, "environ", ENVIRONMENT_MAX, &environment, &n);
        return owner_proves(tenant, cgroup, environment ?: "", environment ? n : 0, uid);
}
