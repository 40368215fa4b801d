/* SPDX-License-Identifier: MIT */
/* What in Slurm's configuration lets a job past the gate, or fails jobs for nothing. */
#pragma once

#include <stdbool.h>

#include "agent/config/config.h"
#include "cli/slurm-conf.h"
#include "cli/table.h"

/* Where the scripts are, and what is known besides the files. */
typedef struct SlurmLint {
        const char *path; /* of slurm.conf, for what is not set in it */
        const SlurmConf *slurm;
        const SlurmConf *gres; /* gres.conf; NULL without one */
        const Config *config;  /* gpuagentd.yaml */
        const char *scripts;   /* the folder of our scripts */
        bool runs_jobs;        /* slurmd is on this machine, so the scripts have to be */
        FILE *output;          /* a line a finding: "slurm.conf:12: error: …"; NULL: into the table */
        Table *table;          /* a row a finding, with file, line, severity and finding */
        unsigned errors;       /* with which a job can get a GPU that is not clean, or none can start */
        unsigned warnings;
} SlurmLint;

/* Looks at all of it, and counts. */
void slurm_lint(SlurmLint *lint);
