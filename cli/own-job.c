/* SPDX-License-Identifier: MIT */
#include "cli/own-job.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/io.h"
#include "agent/base/sluid.h"
#include "agent/base/text.h"
#include "cli/gpu-list.h"

#define CGROUP_MAX (64U << 10)

/* The next folder of a path: its length, 0 at the end. */
static size_t next_part(const char **path) {
        *path += strspn(*path, "/");
        return strcspn(*path, "/");
}

static bool part_ends(const char *part, size_t n, const char *end) {
        return n >= strlen(end) && strncmp(part + n - strlen(end), end, strlen(end)) == 0;
}

/* "/system.slice/slurmstepd.scope/job_27/…", "/system.slice/n1_slurmstepd.scope/job_27/…" (v2), with a SLUID
 * for job_27 in 26.05, and "/slurm/uid_1000/job_27/…", "/slurm_n1/uid_1000/job_27/…" (v1). */
static int job_of_path(const char *path, uint32_t *ret) {
        const char *part = path;
        size_t n = next_part(&part);
        char number[16];
        bool v2 = n == strlen("system.slice") && startswith(part, "system.slice");

        if (!v2 && !((n == strlen("slurm") && startswith(part, "slurm")) || startswith(part, "slurm_")))
                return 0;
        part += n;
        n = next_part(&part);
        if (v2 ? !part_ends(part, n, "slurmstepd.scope") : !startswith(part, "uid_"))
                return 0;
        part += n;
        n = next_part(&part);
        if (v2 && is_sluid(part, n))
                return sluid_job(path, (size_t) (part - path) + n, ret);
        if (!startswith(part, "job_") || n - strlen("job_") >= sizeof number)
                return 0;
        (void) snprintf(number, sizeof number, "%.*s", (int) (n - strlen("job_")), part + strlen("job_"));
        return parse_u32(number, UINT32_MAX, ret) >= 0;
}

int own_job_parse(const char *cgroups, uint32_t *ret) {
        CLEANUP(free_ptr) char *copy = strdup(cgroups);
        char *rest = copy, *line;

        while (copy && (line = strsep(&rest, "\n"))) {
                char *controllers = strchr(line, ':'),
                     *path = controllers ? strchr(controllers + 1, ':') : NULL;

                if (path && job_of_path(path + 1, ret) > 0)
                        return 1;
        }
        return 0;
}

/* "slurm/27.0" among the tenants of a Tenant property, for job 27. */
static bool find_run(const char *tenants, uint32_t job, char ret[static TENANT_MAX + 1]) {
        char wanted[TENANT_MAX + 1];

        (void) snprintf(wanted, sizeof wanted, "slurm/%u.", job);
        for (const char *found = tenants; (found = strstr(found, wanted)); found++) {
                if (found != tenants && found[-1] != ' ')
                        continue;
                (void) snprintf(ret, TENANT_MAX + 1, "%.*s", (int) strcspn(found, ", "), found);
                return true;
        }
        return false;
}

int own_job_has_gpus(const Tray *tray, char **ids, char ret_tenant[static TENANT_MAX + 1]) {
        CLEANUP(free_ptr) char *cgroups = NULL;
        char tenant[TENANT_MAX + 1] = "";
        uint32_t job;

        if (file_read(AT_FDCWD, "/proc/self/cgroup", CGROUP_MAX, &cgroups, NULL) < 0 ||
                        own_job_parse(cgroups, &job) <= 0)
                return 0;
        STRV_FOREACH (id, ids) {
                CLEANUP(failure_done) Failure failure = {};
                const GpuView *gpu;

                if (gpu_list_find(tray, *id, &gpu, &failure) < 0 || !find_run(gpu->tenant, job, tenant))
                        return 0;
        }
        if (!tenant[0])
                return 0;
        (void) memcpy(ret_tenant, tenant, sizeof tenant);
        return 1;
}
