/* SPDX-License-Identifier: MIT */
/* fabric.query: a site's program that tells which partition each GPU is in, one "UUID PARTITION NAME CLIQUE"
 * line a GPU. */
#pragma once

#include "agent/driver/task.h"

typedef struct FabricLine {
        char uuid[GPU_UUID_SIZE];
        uint32_t partition;
        char name[64];   /* "" for "-" */
        uint32_t clique; /* UNKNOWN_U32 for "-" */
} FabricLine;

/* One line without its newline. 0 · -EINVAL. */
int fabric_line_parse(const char *line, FabricLine *ret);

/* Runs the program, where an answer can matter, and adds what it says to the samples, the deadline being
 * half of what the task has left, and ten seconds at most. What cannot be learned stays unknown, and the
 * answer's warning says why. */
void fabric_query_run(const Task *task, Answer *answer);
