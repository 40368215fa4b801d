/* SPDX-License-Identifier: MIT */
/* What runs inside a worker. Everything here may hang for good or be killed at any point; nothing here
 * logs. */
#pragma once

#include "agent/driver/nvml.h"
#include "agent/driver/task.h"

/* Does the task. The answer is always filled in: what went wrong is in it. */
void vendor_run(const Task *task, Answer *answer);

/* Gives up the capabilities that this kind of task has no use for, for itself and for what it executes. 0 ·
 * -errno. */
int vendor_drop_capabilities(TaskKind kind);

/* One concern each; the module is there when these are called. */
void probe_run(const Task *task, Answer *answer);
void reset_run(const Task *task, Answer *answer);
void holders_run(const Task *task, Answer *answer);
void leftovers_run(const Task *task, Answer *answer);
void checks_run(const Task *task, Answer *answer);

/* These have nothing to do with the vendor's driver, and need no module. */
void quiesce_run(const Task *task, Answer *answer);
void resume_run(const Task *task, Answer *answer);
void tenants_run(const Task *task, Answer *answer);

/* Reads a GPU that is where the table has it. 0, or an error that is in the sample · -ESTALE another GPU is
 * there now, or none. */
int probe_gpu(const Nvml *nvml, const GpuEntry *entry, GpuSample *sample);

/* Adds what is not NVML's to tell to the samples of a probe: whether there are checks, and the partitions.
 * NVML is to be closed before, since a site's program runs for it. */
void probe_complete(const Task *task, Answer *answer);

/* Opens NVML for a task. 0 · -errno, and the answer says what is wrong. */
int vendor_open(const Task *task, Answer *answer, Nvml **ret);
