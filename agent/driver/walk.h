/* SPDX-License-Identifier: MIT */
/* The walk of /proc: which processes have a GPU's device node open or mapped. */
#pragma once

#include "agent/base/sample.h"

/* A GPU to look for. A process holds it by the vendor's device number, wherever its node is, or by the very
 * node in driver.devices, whatever that is. */
typedef struct WalkGpu {
        char uuid[GPU_UUID_SIZE];
        uint32_t minor; /* UNKNOWN_U32: nothing to look for */
} WalkGpu;

/* Called for each pair of process and GPU, once. `process_dir_fd` is the process's folder in /proc. 0 ·
 * -errno, which ends the walk. */
typedef int (*WalkFound)(const WalkGpu *gpu, pid_t pid, int process_dir_fd, void *userdata);

/* `devices` is driver.devices. Processes `except` are passed over. A process that vanishes, or that the
 * kernel does not let us look into, is passed over, too. 0 · -errno: /proc cannot be read, or what found()
 * said. */
int walk_processes(const WalkGpu *gpus, size_t n_gpus, const char *devices, const pid_t *except,
                size_t n_except, WalkFound found, void *userdata);

/* One line of /proc/PID/maps: the device and inode of what is mapped, and the range as map_files names it.
 * 0 · -ENOENT nothing is mapped there · -EINVAL. */
int maps_line_parse(const char *line, uint32_t *ret_major, uint32_t *ret_minor, uint64_t *ret_inode,
                char *ret_range, size_t range_size);
