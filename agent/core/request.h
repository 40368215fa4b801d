/* SPDX-License-Identifier: MIT */
/* What a caller asked for, over one or many GPUs: every GPU ends in an outcome of its own, and the request
 * under the gravest. Made by manager_request(), which owns it. */
#pragma once

#include "agent/core/gpu.h"

typedef enum RequestKind {
        REQUEST_REFRESH,   /* a fresh probe of the tray */
        REQUEST_RESET,     /* the handover */
        REQUEST_RELEASE,   /* a tenant is done: the handover, unless the site has switched it off */
        REQUEST_VERIFY,    /* a fresh look: clean, or not and why */
        REQUEST_PROCESSES, /* who holds the GPUs: afterwards in each GPU's holders */
        _REQUEST_KIND_MAX,
} RequestKind;

typedef struct RequestOptions {
        const char *tenant;     /* valid (tenant_is_valid) or NULL */
        const char *identifier; /* log the outcome under this syslog identifier, or NULL */
        const char *reason;     /* printable, for the log, or NULL */
        usec_t timeout_usec;    /* 0: the manager's own */
} RequestOptions;

typedef struct RequestItem {
        Gpu *gpu;
        bool finished;
        Outcome outcome;
        char *detail; /* "GPU 0 is held by …" for a failure, NULL else */
} RequestItem;

typedef struct Request Request;

/* Tells the one who asked; called once, from within a manager_*() call, possibly from manager_request()
 * itself. */
typedef void (*RequestDone)(const Request *request, void *userdata);

struct Request {
        RequestKind kind;
        uint64_t number;  /* counted up over the manager's life */
        char *tenant;     /* NULL without one */
        char *identifier; /* NULL: the agent's own */
        char *reason;
        usec_t started_usec; /* monotonic */
        usec_t finished_usec;
        usec_t deadline_usec;
        bool skipped; /* a release while handover.reset is off: nothing was reset */

        RequestItem *items;
        size_t n_items;
        size_t n_unfinished;

        Outcome outcome; /* the gravest, once finished; set before for what concerns the tray and no GPU */
        char *message;   /* one line that names each GPU that failed and why; NULL on success */

        RequestDone done; /* NULL: nobody waits */
        void *userdata;

        bool needs_probe; /* what it still needs to know of the tray */
        bool needs_holders;
        bool riding; /* on the vendor request that is out */

        Request *previous, *following; /* in the manager's list, oldest first */
};

/* The caller is gone: `done` is not called; the work and its log line go on. */
void request_abandon(Request *request);

/* For the manager: an unfinished request over the GPUs (borrowed). 0 and *ret · -ENOMEM. */
int request_new(RequestKind kind, Gpu *const *gpus, size_t n_gpus, const RequestOptions *options,
                Request **ret);
Request* request_free(Request *request);

/* One GPU is through; a failure has a detail that names it. No effect on an item that is finished. */
void request_finish_item(Request *request, size_t item, Outcome outcome, const char *detail);

/* All of it fails for one reason that is the tray's. */
void request_fail_whole(Request *request, Outcome outcome, const char *message);

/* Puts the outcome and the message together once nothing is unfinished. 0 · -ENOMEM, and the outcome is set
 * all the same. */
int request_conclude(Request *request);

DEFINE_CLEANUP(Request, request_free_ptr, request_free)
