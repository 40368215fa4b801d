/* SPDX-License-Identifier: MIT */
/* The queue of vendor operations and the one process that carries one out. A process that does not answer by
 * its deadline is killed; while it, or a program that it ran, is not gone, nothing else is started: one
 * stuck process, not a hundred. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/driver/settings.h"
#include "agent/driver/task.h"

typedef struct Queue Queue;

/* Called once per request, also from within queue_submit(). The answer is the callee's to take from or
 * leave. */
typedef void (*QueueDone)(Answer *answer, void *userdata);

/* One request. `uuids` and `tenants`, as in Task, are handed over to the queue. */
typedef struct QueueRequest {
        TaskKind kind;
        char **uuids;
        char **tenants;
        usec_t deadline_usec; /* waiting included */
        const void *owner;    /* who asks, for queue_forget() */
        QueueDone done;
        void *userdata;
} QueueRequest;

/* `runtime_directory` holds the record, and the list of what was stopped; processes of an earlier run that
 * are named there are waited for.
 * 0 · -errno. */
int queue_new(sd_event *event, Settings *settings, const char *runtime_directory, Queue **ret);
Queue* queue_free(Queue *queue);

/* 0, and done() was or will be called · -ENOBUFS too many wait · -errno; then done() is not called. */
int queue_submit(Queue *queue, const QueueRequest *request);

/* Drops what the owner asked for and was not begun; its done() is told an error. What is at work is
 * finished. */
void queue_forget(Queue *queue, const void *owner);

/* Lets a running reset end, ends anything else, refuses what waits, and calls stopped() when all of that is
 * done. */
void queue_stop(Queue *queue, void (*stopped)(void *userdata), void *userdata);

DEFINE_CLEANUP(Queue, queue_free_ptr, queue_free)
