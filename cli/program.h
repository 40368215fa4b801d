/* SPDX-License-Identifier: MIT */
/* Running another program, without a shell and with a deadline. */
#pragma once

#include "agent/base/clock.h"

/* Runs argv[0] (an absolute path) with an empty stdin, a fixed PATH and, of our environment, only
 * SLURM_CONF, in "/", and collects its stdout and stderr together (the first 256 KiB). It has ended when
 * its first process has. At the deadline (monotonic) it gets SIGKILL. Nothing of ours stays open in it.
 * 0 and *ret_output (to be freed): it exited 0 · 1 and *ret_output: it did not · -ETIMEDOUT · -errno: it
 * could not be run. */
int program_run(char *const argv[], usec_t deadline_usec, char **ret_output);

/* The same for what an operator has configured: in our own environment and folder, argv[0] looked for in
 * PATH. At the deadline what it has started gets SIGKILL, too. */
int program_run_as_we_are(char *const argv[], usec_t deadline_usec, char **ret_output);
