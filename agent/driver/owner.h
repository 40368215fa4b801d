/* SPDX-License-Identifier: MIT */
/* Whose process it is: the Slurm job, pod or systemd unit that a person would look for. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* From the text of /proc/PID/cgroup: "job 27", "pod <uid>", "unit x.service" or "user unit x.service",
 * printable and cut; "" if it tells nothing. Who may make cgroups of his own (below user.slice) cannot pass
 * for a job or pod by their names. */
void owner_from_cgroup(const char *text, char *ret, size_t size);

/* From an environment: "job 27" if it holds SLURM_JOB_ID, and SLURM_JOB_UID is `uid`; else "". That is the
 * process's own claim, made where Slurm has no cgroups, and good enough to name it. */
void owner_from_environment(const char *environment, size_t n, uid_t uid, char *ret, size_t size);

/* The above for a process, by its folder in /proc. A process that is gone has "". */
void owner_find(int process_dir_fd, uid_t uid, char *ret, size_t size);
