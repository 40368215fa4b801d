/* SPDX-License-Identifier: MIT */
/* What a caller asked for, over one or many GPUs: every GPU ends in an outcome of its own, and the request
 * under the gravest. Made by manager_request(), which owns it. */
#pragma once

#include "agent/core/gpu.h"

typedef enum RequestKind {
        REQUEST_REFRESH, /* a fresh probe of the tray */
        REQUEST_RESET,   /* the handover */
        REQUEST_ACQUIRE, /* book the GPUs for a tenant, all of them or none */
        /* a tenant is done: its leases end, and the handover, unless the site has switched it off */
        REQUEST_RELEASE,
        REQUEST_VERIFY,    /* a fresh look: clean, or not and why */
        REQUEST_PROCESSES, /* who holds the GPUs: afterwards in each GPU's holders */
        _REQUEST_KIND_MAX,
} RequestKind;

typedef struct RequestOptions {
        const char *tenant;     /* valid (tenant_is_valid) or NULL */
        const char *identifier; /* log the outcome under this syslog identifier, or NULL */
        const char *reason;     /* printable, for the log, or NULL */
        usec_t timeout_usec;    /* 0: the manager's own */
        bool shared; /* ACQUIRE: other tenants may have the GPU too, where handover.shared counts */
        bool force;  /* RELEASE: end the leases of others, too */
        bool checks; /* VERIFY: run the site's checks on the GPUs that are clean */
} RequestOptions;

typedef struct RequestItem {
        Gpu *gpu;
        bool finished;
        Outcome outcome;
        char *detail; /* "GPU 0 is held by …" for a failure, NULL else */

        /* ACQUIRE: on the way to the booking. */
        bool waiting;       /* for a handover to end */
        bool ready;         /* nothing stands against the booking */
        bool searched;      /* for holders that NVML cannot tell of */
        bool asked_signs;   /* whether the present leaseholders are alive */
        bool booked;        /* by this request */
        bool was_clean;     /* before that */
        usec_t looked_usec; /* when a look for this request came back, 0 before */
        unsigned handovers; /* begun for it */

        Lease former; /* RELEASE: the lease before it, until the end is on file */
        bool kept;    /* RELEASE: others share the GPU still, and it was not reset */
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
        /* handover.reset is off: a release reset nothing, a booking did not ask for clean GPUs */
        bool skipped;
        /* mode: observe. It would have failed; `outcome` is OUTCOME_DONE, `message` and the items say why */
        bool observed;
        bool shared, force, checks; /* as in RequestOptions */
        bool abandoned; /* the caller is gone, or the tenant: a booking that is not made yet is not made */

        RequestItem *items;
        size_t n_items;
        size_t n_unfinished;

        Outcome outcome; /* the gravest, once finished; set before for what concerns the tray and no GPU */
        /* one line that names each GPU that failed and why; NULL on success unless observed */
        char *message;

        RequestDone done; /* NULL: nobody waits */
        void *userdata;

        bool needs_probe; /* what it still needs to know of the tray */
        bool needs_holders;
        bool needs_checks;
        bool needs_tenants;
        bool riding; /* on the vendor request that is out */

        Request *previous, *following; /* in the manager's list, oldest first */
};

/* The caller is gone: `done` is not called; the work and its log line go on, but nothing is booked any more:
 * nobody would know of the lease. */
void request_abandon(Request *request);

/* For the manager: an unfinished request over the GPUs (borrowed). 0 and *ret · -ENOMEM. */
int request_new(RequestKind kind, Gpu *const *gpus, size_t n_gpus, const RequestOptions *options,
                Request **ret);
Request* request_free(Request *request);

/* One GPU is through; a failure has a detail that names it. No effect on an item that is finished. */
void request_finish_item(Request *request, size_t item, Outcome outcome, const char *detail);

/* All of it fails for one reason that is the tray's. */
void request_fail_whole(Request *request, Outcome outcome, const char *message);

/* Puts the outcome and the message together once nothing is unfinished. `observe`: a booking or release that
 * failed is told as done. 0 · -ENOMEM, and the outcome is set all the same. */
int request_conclude(Request *request, bool observe);

DEFINE_CLEANUP(Request, request_free_ptr, request_free)
