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
} VendorOperation;

typedef struct VendorRequest {
        VendorOperation operation;
        char *const *uuids; /* a strv; an empty one means all GPUs (VENDOR_PROBE only). Borrowed. */
        usec_t timeout_usec;
} VendorRequest;

typedef struct VendorReply {
        VendorOperation operation;
        DriverState driver_state;   /* other than DRIVER_OK: nothing was read, nothing is known to be done */
        const char *driver_error;   /* one line, printable; "" with DRIVER_OK */
        const char *driver_version; /* of a probe, "" else */
        bool complete;              /* a probe of all GPUs: one that is missing here is gone */
        const GpuSample *samples;
        size_t n_samples;
        const GpuReset *resets;
        size_t n_resets;
        const GpuHolder *holders;
        size_t n_holders;
} VendorReply;

typedef struct VendorOps {
        /* Starts the request; manager_vendor_done() brings its reply, later and exactly once. 0 · -errno: it
         * could not be started, and no reply will come. */
        int (*start)(const VendorRequest *request, void *userdata);
        void *userdata;
} VendorOps;
