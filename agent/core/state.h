/* SPDX-License-Identifier: MIT */
/* The state file, /run/gpuagent/state: what must outlive the agent but not the boot. It is written whole, by
 * rename, before the act it guards; a file that is not whole to the last line counts as none, and then every
 * GPU is unknown. */
#pragma once

#include "agent/core/inventory.h"

/* Far above 4,096 GPUs. */
#define STATE_SIZE_MAX (16U * 1024 * 1024)

/* 0 · -errno, and the file is as it was. */
int state_write(const char *path, const Inventory *inventory);

/* Adds the GPUs of the file, by their identity and record, to an empty inventory.
 * 1: done · 0: there is no file · -EBADMSG torn or foreign, -errno not readable, -ENOMEM: nothing was
 * added. */
int state_read(const char *path, Inventory *inventory);

/* The same from text; `text` is changed. For state_read() and the fuzzer. 1 · -EBADMSG · -ENOMEM. */
int state_parse(char *text, Inventory *inventory);
