/* SPDX-License-Identifier: MIT */
/* The state file, /run/gpuagent/state: what must outlive the agent but not the boot. It is written whole, by
 * rename, before the act it guards; a file that is not whole to the last line counts as none, and then every
 * GPU is unknown. */
#pragma once

#include "agent/core/inventory.h"

/* Far above 4,096 GPUs. */
#define STATE_SIZE_MAX (16U * 1024 * 1024)

/* What is to be remembered of the tray as such. */
typedef struct StateTray {
        bool maintenance;
        char maintenance_reason[GPU_REASON_SIZE];
        bool quiesced; /* monitoring was stopped, and has to be started again */
} StateTray;

/* 0 · -errno, and the file is as it was. */
int state_write(const char *path, const Inventory *inventory, const StateTray *tray);

/* Adds the GPUs of the file, by their identity, record and leases, to an empty inventory, and fills the
 * tray's part. 1: done · 0: there is no file · -EBADMSG torn or foreign, -errno not readable, -ENOMEM:
 * nothing was added, and the tray's part is empty. */
int state_read(const char *path, Inventory *inventory, StateTray *ret_tray);

/* The same from text; `text` is changed. For state_read() and the fuzzer. 1 · -EBADMSG · -ENOMEM. */
int state_parse(char *text, Inventory *inventory, StateTray *ret_tray);
