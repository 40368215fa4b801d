/* SPDX-License-Identifier: MIT */
/* The start of a worker process. */
#pragma once

#include "agent/driver/process.h"
#include "agent/driver/task.h"

/* Forks a worker that does the task once it was recorded in the task's record, and writes its answer to a
 * pipe. 0, *ret_id, its pidfd and the pipe's end to read from (non-blocking) · -errno, and nothing runs. */
int worker_start(const Task *task, ProcessId *ret_id, int *ret_pidfd, int *ret_pipe_fd);
