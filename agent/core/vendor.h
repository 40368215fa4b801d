/* SPDX-License-Identifier: MIT */
/* The one way from the core to the vendor side: a request, and later its reply. There is never more than one
 * request out at a time. The driver link implements it; the tests' fake does too. */
#pragma once

#include <stddef.h>

#include "agent/base/sample.h"

typedef enum VendorOperation {
        VENDOR_PROBE,   /* read the state of GPUs */
        VENDOR_RESET,   /* reset them, all in one go */
        VENDOR_HOLDERS, /* find the processes that hold them */
        /* end the processes on them that are proven to be their ended tenants', then as HOLDERS */
        VENDOR_LEFTOVERS,
        VENDOR_QUIESCE, /* stop the monitoring that the site has listed, and remember what was stopped */
        VENDOR_RESUME,  /* start again what was stopped */
        VENDOR_CHECKS,  /* run the site's checks on GPUs that were reset */
        VENDOR_TENANTS, /* look for signs of life of tenants on this node */
        _VENDOR_OPERATION_MAX,
} VendorOperation;

/* "a probe", "the site's checks": for people. */
const char* vendor_operation_describe(VendorOperation operation);

typedef struct VendorRequest {
        VendorOperation operation;
        /* a strv; an empty one means all GPUs (VENDOR_PROBE only). Borrowed for the call. */
        char *const *uuids;
        /* LEFTOVERS, CHECKS: of each UUID its tenant ("" for none); TENANTS: whom to look for */
        char *const *tenants;
        usec_t timeout_usec; /* for all of it */
} VendorRequest;

typedef struct VendorReply {
        VendorOperation operation;
        /* other than DRIVER_OK: nothing was read and nothing is known to have been done */
        DriverState driver_state;
        const char *driver_error;   /* one line, printable; "" with DRIVER_OK */
        const char *driver_version; /* of a probe, "" else */
        /* QUIESCE, RESUME: one line that names what would not stop or start; "" for success */
        const char *failure;
        bool complete; /* a probe of all GPUs: one that is missing here is gone */
        /* PROBE; RESET: of GPUs that were reset, how each looked after it, as far as somebody looked */
        const GpuSample *samples;
        size_t n_samples;
        /* RESET; CHECKS, where RESET_DONE is passed and RESET_FAILED has the reason in detail */
        const GpuReset *resets;
        size_t n_resets;
        const GpuHolder *holders; /* HOLDERS, LEFTOVERS: who holds the GPUs now */
        size_t n_holders;
        const TenantSign *tenants; /* TENANTS */
        size_t n_tenants;
} VendorReply;

typedef struct VendorOps {
        /* Starts the request; manager_vendor_done() brings its reply, later and exactly once. 0 · -errno: it
         * could not be started, and no reply will come. */
        int (*start)(const VendorRequest *request, void *userdata);
        void *userdata;
} VendorOps;
