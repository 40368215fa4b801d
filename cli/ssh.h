/* SPDX-License-Identifier: MIT */
/* A command on another host, by the user's own ssh. Nothing here goes through a shell of ours, and a
 * host's name never looks like an option. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "cli/print.h"

typedef struct Ssh {
        pid_t pid;  /* 0: not started */
        int errors; /* what it says on stderr; -1: not open */
} Ssh;

/* Starts `command` on "[USER@]TRAY". With `batch` ssh asks no questions. 0, *ret and *ret_fd, a socket to
 * the command's stdin and stdout · -EINVAL for what can be no host · negative errno. */
int ssh_start(const char *host, const char *command, bool batch, Ssh *ret, int *ret_fd);

/* Ends it, if it does not end by itself. */
void ssh_done(Ssh *ssh);

/* Once the other side is gone: puts down the last line that ssh said, or `otherwise` if there was none, as a
 * failure with CLI_NO_AGENT. Returns -EIO. */
int ssh_failure(Ssh *ssh, const char *otherwise, Failure *failure);
