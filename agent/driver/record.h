/* SPDX-License-Identifier: MIT */
/* The file RUNTIME/worker: which processes are at work in the vendor's driver for us. It is written before
 * they start and kept until they are gone, so that a service that was killed and started again knows what
 * still runs, or hangs. */
#pragma once

#include "agent/base/clock.h"
#include "agent/driver/process.h"
#include "agent/driver/task.h"

/* The worker, and the programs that it executes at a time. More are not recorded. */
#define RECORD_PROCESSES_MAX 8

typedef struct Record {
        TaskKind kind;
        usec_t deadline_usec;
        ProcessId processes
                        [RECORD_PROCESSES_MAX]; /* the worker first; each leads a process group of its own */
        size_t n_processes;
} Record;

/* A new file with its worker alone. 0 · -errno. */
int record_write(const char *path, const Record *record);

/* Adds a program that the worker is about to execute, in the place of those that are gone. 0 · -errno. */
int record_append(const char *path, const ProcessId *id);

/* 0 · -ENOENT nothing is at work · -EBADMSG the file was not written by us · -errno. */
int record_read(const char *path, Record *ret);
int record_parse(const char *text, Record *ret);
