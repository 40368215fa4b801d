/* SPDX-License-Identifier: MIT */
/* How a person names GPUs of many trays: "sched-worker2" (all of its GPUs), "sched-worker2:0-1",
 * "sched-worker2:0,2", and the same by the tray's place in client.trays, "2:0,3". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/base/parse.h"

/* More than any tray has. */
#define GPU_SPEC_INDEX_MAX 4095U

typedef struct GpuSpec {
        char tray[HOST_MAX + 1]; /* a name, or a slot */
        uint32_t *indexes;       /* ascending, each once */
        size_t n_indexes;        /* 0: all GPUs of the tray */
} GpuSpec;

void gpu_spec_done(GpuSpec *spec);

/* 0 and *ret (to be given to gpu_spec_done) · -EINVAL · -ENOMEM. */
int gpu_spec_parse(const char *text, GpuSpec *ret);

/* Which of the hosts (a strv of [USER@]TRAY) is meant: by its name, else as slot 1, 2, …; a tray that has a
 * number for its name is found by it. 0 and *ret, its place · -ENOENT. */
int gpu_spec_find(const GpuSpec *spec, char *const *hosts, size_t *ret);
