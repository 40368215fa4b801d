/* SPDX-License-Identifier: MIT */
/* The list of GPUs kept up to date: on a terminal a screen that is drawn anew, elsewhere the list once more
 * at each change. */
#pragma once

#include "cli/client.h"

/* Runs until q or Ctrl-C on a terminal, else until the output is closed. A terminal survives a restart of
 * the agent; elsewhere that ends it. 0 · negative, and *failure says why. */
int watch_gpus(const Options *options, Failure *failure);
