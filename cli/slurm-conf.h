/* SPDX-License-Identifier: MIT */
/* slurm.conf and its like, as far as a check of it needs them: what is set, and where. */
#pragma once

#include "cli/print.h"

typedef struct SlurmSetting {
        char *key, *value;
        char *file;
        unsigned line;
} SlurmSetting;

typedef struct SlurmConf {
        SlurmSetting *settings; /* in the order of the files */
        size_t n;
} SlurmConf;

void slurm_conf_done(SlurmConf *conf);

/* Adds the settings of a text: KEY=VALUE words, the values with or without quotes, '#' before a comment, '\'
 * at the end of a line that goes on. Included files are read, with names relative to the folder of `file`.
 * 0 · negative, and *failure names the file that cannot be read. */
int slurm_conf_parse(SlurmConf *conf, const char *file, const char *text, Failure *failure);

/* The same for a file. 0 · negative, and *failure says why. */
int slurm_conf_read(SlurmConf *conf, const char *file, Failure *failure);

/* The last setting of that key, in any spelling; NULL for none. Borrowed. */
const SlurmSetting* slurm_conf_get(const SlurmConf *conf, const char *key);
