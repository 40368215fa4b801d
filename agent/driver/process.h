/* SPDX-License-Identifier: MIT */
/* Processes by pid and start time: a pid alone is given to somebody else one day. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ProcessId {
        pid_t pid;
        uint64_t start_time; /* clock ticks after boot, field 22 of /proc/PID/stat */
} ProcessId;

/* What /proc/PID/stat says, as far as we want to know. */
typedef struct ProcessStat {
        char command[32]; /* raw bytes, as the process calls itself */
        char state;       /* 'R', 'S', 'D', 'Z' … */
        uint64_t start_time;
} ProcessStat;

/* Parses the text of /proc/PID/stat; the command may hold any byte, ')' and newlines too. 0 · -EINVAL. */
int process_stat_parse(const char *text, ProcessStat *ret);

/* The real user id, from the text of /proc/PID/status. 0 · -EINVAL. */
int process_uid_parse(const char *text, uid_t *ret);

/* 0 · -ESRCH no such process · -errno. */
int process_stat_read(pid_t pid, ProcessStat *ret);
int process_uid_read(pid_t pid, uid_t *ret);
int process_id_read(pid_t pid, ProcessId *ret);

/* A pidfd of that very process; it is readable once the process is gone with all its threads.
 * 0 and *ret_fd · -ESRCH it is gone, or the pid is another process's by now · -errno. */
int process_open(const ProcessId *id, int *ret_fd);
