/* SPDX-License-Identifier: MIT */
/* Which processes hold the emulated GPUs. On a real machine the kernel's module counts its clients; here a
 * walk over /proc finds open device nodes, and whoever has a GPU's memory mapped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/emulation/tray.h"

/* The emulated NVML opens nodes with these flags, which show in /proc/PID/fdinfo: such a process blocks a
 * reset as a real NVML client does, and as there it is in no list of compute processes. */
#define HOLDER_NVML_FLAGS (O_RDWR | O_NONBLOCK | O_DSYNC | O_CLOEXEC | O_NOCTTY)

typedef struct Holder {
        pid_t pid;
        uint32_t gpu; /* index */
        bool nvml;    /* only as a client of NVML */
} Holder;

typedef struct Holders {
        Holder *items;
        size_t n;
} Holders;

/* Looks through all processes but the caller's own for holders of the GPUs that are marked in `wanted` (an
 * array by index; NULL: all). Processes that the caller may not look into are passed over: only root sees
 * all.
 * 0 and *ret · -ENOMEM · -errno of /proc. */
int holders_find(const Tray *tray, const bool *wanted, Holders *ret);

/* The number of them on that GPU; `nvml`: with those that are only clients of NVML. */
size_t holders_count(const Holders *holders, uint32_t gpu, bool nvml);

void holders_done(Holders *holders);

/* Adds one unless it is there; a holder by more than NVML stays one. 0 · -ENOMEM. */
int holders_add(Holders *holders, pid_t pid, uint32_t gpu, bool nvml);
