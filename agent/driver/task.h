/* SPDX-License-Identifier: MIT */
/* One vendor operation: what the loop asks of a worker, and what the worker answers over its pipe. */
#pragma once

#include <errno.h>

#include "agent/base/cleanup.h"
#include "agent/base/sample.h"
#include "agent/config/config.h"
#include "agent/driver/protocol.h"
#include "agent/driver/table.h"

typedef enum TaskKind {
        TASK_PROBE,
        TASK_RESET,
        TASK_HOLDERS,
        TASK_LEFTOVERS,
        TASK_QUIESCE,
        TASK_RESUME,
        TASK_CHECKS,
        TASK_TENANTS,
        _TASK_KIND_MAX,
        _TASK_KIND_INVALID = -EINVAL,
} TaskKind;

typedef struct Task {
        TaskKind kind;
        const Config *config;
        const GpuTable *table; /* as the last probe left it; may be empty */
        const char *record;    /* the file that names running processes, see record.h */
        const char *quiesced;  /* the file that names what was stopped, see quiesced.h */
        char **uuids;          /* valid, none twice; NULL or empty: all GPUs */
        /* Valid; LEFTOVERS, CHECKS: one of each UUID, "" for none; TENANTS: whom to look for. */
        char **tenants;
        bool query_hangs;     /* fabric.query did not end in time lately: it is not asked */
        usec_t deadline_usec; /* the worker is killed then */
} Task;

typedef enum AnswerError {
        ANSWER_OK,
        ANSWER_MISSING,
        ANSWER_FAILED,
        ANSWER_UNRESPONSIVE,
        ANSWER_NO_SUCH_GPU,
        _ANSWER_ERROR_MAX,
        _ANSWER_ERROR_INVALID = -EINVAL,
} AnswerError;

typedef struct Answer {
        TaskKind kind;
        AnswerError error;
        /* One line for people: an error; QUIESCE, RESUME: what would not stop or start. */
        char message[FAILURE_SIZE];
        char warning[512]; /* for the log: what did not keep the task from being done; "" for none */
        char driver_version[DRIVER_VERSION_SIZE];
        bool query_hangs; /* fabric.query did not end in time */
        bool complete;    /* of a probe: these are all the GPUs of the tray */
        size_t n;
        size_t n_asked; /* the first so many are what was asked for, in that order */
        union {         /* by kind; owned */
                GpuSample *samples;
                GpuReset *resets;   /* RESET, CHECKS */
                GpuHolder *holders; /* HOLDERS, LEFTOVERS */
                TenantSign *tenants;
                void *items;
        };
        GpuSample *looks; /* RESET: as a probe, after it, of those that were reset; may be fewer. Owned */
        size_t n_looks;
} Answer;

/* "probe", "reset", "search for processes" …, for messages. NULL for a value out of range. */
const char* task_kind_to_string(TaskKind kind);
TaskKind task_kind_from_string(const char *s);

/* Whether it is about the vendor's driver at all. */
bool task_kind_needs_driver(TaskKind kind);

/* Makes it an error with that message, which is cut and escaped. What it held is freed. */
void answer_fail(Answer *answer, AnswerError error, const char *format, ...) PRINTF_FORMAT(3, 4);

/* Adds to the warning, as far as there is room. */
void answer_warn(Answer *answer, const char *format, ...) PRINTF_FORMAT(2, 3);
void answer_done(Answer *answer);

/* As bytes on a pipe, and back. The reader believes nothing about them.
 * 0 · -EBADMSG not what a worker sends for this kind · -ENOMEM · -errno of write. */
int answer_write(const Answer *answer, int fd);
int answer_parse(TaskKind kind, const void *data, size_t size, Answer *ret);

/* No answer of this kind is longer. */
size_t answer_size_max(TaskKind kind);
