/* SPDX-License-Identifier: MIT */
/* gpuagentctl slurm-check: what in slurm.conf lets a job past the gate, or fails jobs for nothing. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/hook.h"
#include "cli/slurm-lint.h"

/* Where slurmd finds it; the second came from the controller. */
static const char *const places[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf" };

static const char* find_conf(int argc, char **argv) {
        const char *conf = getenv("SLURM_CONF");

        if (argc > 1)
                return argv[1];
        if (conf && conf[0] != '\0')
                return conf;
        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (access(places[i], F_OK) == 0)
                        return places[i];
        return places[0];
}

/* gres.conf stands beside it, and need not be there. */
static int read_gres(const char *path, SlurmConf *ret, Failure *failure) {
        const char *slash = strrchr(path, '/');
        char gres[PATH_MAX];

        (void) snprintf(gres, sizeof gres, "%.*sgres.conf", slash ? (int) (slash - path) + 1 : 0, path);
        return access(gres, F_OK) < 0 ? 0 : slurm_conf_read(ret, gres, failure);
}

/* The same as an array of objects. */
static int lint_as_json(SlurmLint *lint, const Options *options) {
        static const char *const columns[] = { "FILE", "LINE", "SEVERITY", "FINDING" };
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        if (r < 0)
                return r;
        lint->table = table;
        slurm_lint(lint);
        return table_print(table);
}

int verb_slurm_check(const Options *options, int argc, char **argv) {
        CLEANUP(slurm_conf_done) SlurmConf slurm = {}, gres = {};
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(failure_done) Failure failure = {};
        SlurmLint lint = {
                .path = find_conf(argc, argv),
                .slurm = &slurm,
                .gres = &gres,
                .scripts = PKGLIBDIR "/slurm",
                .runs_jobs = access("/usr/sbin/slurmd", X_OK) == 0,
                .output = options->output == OUTPUT_TABLE ? stdout : NULL,
        };
        int r = 0;

        if (argc < 2 && access(lint.path, F_OK) < 0)
                return fail_with(CLI_FAILED,
                                "%s is not there; say where it is: gpuagentctl slurm-check FILE", lint.path);
        r = slurm_conf_read(&slurm, lint.path, &failure);
        if (r >= 0)
                r = read_gres(lint.path, &gres, &failure);
        if (r >= 0)
                r = hook_read_config(options, &config, &failure);
        if (r < 0)
                return failure_report(&failure);

        lint.config = config;
        if (lint.output)
                slurm_lint(&lint);
        else
                r = lint_as_json(&lint, options);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot print the findings: %s", strerror(-r));
        if (lint.errors > 0)
                return fail_with(CLI_FAILED, "%s: %u error%s, %u warning%s", lint.path, lint.errors,
                                lint.errors == 1 ? "" : "s", lint.warnings, lint.warnings == 1 ? "" : "s");
        if (!options->quiet && lint.output)
                print_line(stdout, "%s: no job gets past the gate%s", lint.path,
                                lint.warnings > 0 ? ", with the warnings above" : "");
        return CLI_DONE;
}
