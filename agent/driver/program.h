/* SPDX-License-Identifier: MIT */
/* Programs that a worker executes: nvidia-smi, fabric.query, the site's checks, quiesce.command. */
#pragma once

#include "agent/driver/task.h"

typedef struct Program {
        char *const *argv;        /* argv[0] is a path, or a name looked for in a fixed PATH */
        const char *root;         /* its root folder; NULL or "/": ours */
        char *const *environment; /* a strv: what it gets besides PATH and LC_ALL; may be NULL */
        bool errors_only;         /* what it prints to stdout is thrown away */
        bool alone;               /* what it leaves behind in its process group is killed */
        usec_t deadline_usec;
} Program;

typedef struct ProgramResult {
        int status;   /* as from waitpid() */
        char *output; /* stdout and stderr as they came, cut to PROGRAM_OUTPUT_MAX; NUL-terminated */
} ProgramResult;

#define PROGRAM_OUTPUT_MAX (256U << 10)

/* Executes it in a clean environment and in the root folder, leading a process group of its own, after it
 * was recorded. It has ended when its first process has. 0 and *ret (free its output) · -ENOENT and other
 * errors of exec · -ETIMEDOUT after it was killed at the deadline · -errno. */
int program_run(const Task *task, const Program *program, ProgramResult *ret);

/* What a program that failed has to say for itself, or that it said nothing; in its output. */
const char* program_words(const ProgramResult *result);

/* Splits a command of the configuration on blanks. 0 and *ret (a strv) · -EINVAL there is none · -ENOMEM. */
int command_split(const char *command, char ***ret);
