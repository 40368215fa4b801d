/* SPDX-License-Identifier: MIT */
/* Programs that a worker executes: nvidia-smi and fabric.query. */
#pragma once

#include "agent/driver/task.h"

typedef struct ProgramResult {
        int status;   /* as from waitpid() */
        char *output; /* stdout and stderr as they came, cut to PROGRAM_OUTPUT_MAX; NUL-terminated */
} ProgramResult;

#define PROGRAM_OUTPUT_MAX (256U << 10)

/* Executes argv[0], a path or a name looked for in a fixed PATH, with `root` as its root folder where that
 * is not "/", in a clean environment, leading a process group of its own, after it was recorded. 0 and *ret
 * (free its output) · -ENOENT and other errors of exec · -ETIMEDOUT after it was killed at the deadline ·
 * -errno. */
int program_run(const Task *task, const char *root, char *const *argv, usec_t deadline_usec,
                ProgramResult *ret);
