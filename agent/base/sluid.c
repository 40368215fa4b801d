/* SPDX-License-Identifier: MIT */
#include "agent/base/sluid.h"

#include <ctype.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

#define SLUID_LENGTH 14
#define TEXT_MAX     (64U << 10)

bool is_sluid(const char *s, size_t n) {
        bool is = n == SLUID_LENGTH && s[0] == 's';

        for (size_t i = 1; is && i < n; i++)
                is = isalnum((unsigned char) s[i]);
        return is;
}

/* "slurmstepd: [27.extern]". 1 · 0. */
static int title_job(const char *title, uint32_t *ret) {
        const char *job = startswith(title, "slurmstepd: [");
        size_t n = job ? strspn(job, "0123456789") : 0;
        char number[16];

        if (n == 0 || n >= sizeof number || (job[n] != '.' && job[n] != '+'))
                return 0;
        (void) snprintf(number, sizeof number, "%.*s", (int) n, job);
        return parse_u32(number, UINT32_MAX, ret) >= 0;
}

/* By the first process that a step's list has. 1 · 0. */
static int step_job(const char *list, uint32_t *ret) {
        CLEANUP(free_ptr) char *pids = NULL, *title = NULL;
        char path[64];

        if (file_read(AT_FDCWD, list, TEXT_MAX, &pids, NULL) < 0)
                return 0;
        (void) snprintf(path, sizeof path, "/proc/%.*s/cmdline", (int) strspn(pids, "0123456789"), pids);
        return file_read(AT_FDCWD, path, TEXT_MAX, &title, NULL) >= 0 && title_job(title, ret) > 0;
}

int sluid_job(const char *path, size_t n, uint32_t *ret) {
        char pattern[PATH_MAX];
        glob_t found = {};
        int r = 0;

        if ((size_t) snprintf(pattern, sizeof pattern, "/sys/fs/cgroup/%.*s/step_*/slurm/cgroup.procs",
                            (int) n, path) >= sizeof pattern ||
                        glob(pattern, GLOB_NOSORT | GLOB_NOESCAPE, NULL, &found) != 0)
                return 0;
        for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
                r = step_job(found.gl_pathv[i], ret);
        globfree(&found);
        return r;
}
