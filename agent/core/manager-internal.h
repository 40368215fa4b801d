/* SPDX-License-Identifier: MIT */
/* The manager's own structure, shared by its files: manager.c (what others see), manager-request.c (what is
 * asked), manager-dispatch.c (to the vendor and back) and manager-commit.c (how it ends). */
#pragma once

#include "agent/core/handover.h"
#include "agent/core/inventory.h"
#include "agent/core/manager.h"

#define OBSERVERS_MAX 4

struct Manager {
        const Config *config;
        VendorOps vendor;
        char *state_path;
        ManagerObserver observers[OBSERVERS_MAX];
        size_t n_observers;

        Inventory inventory;
        Request *first, *last; /* unfinished ones, oldest first */
        uint64_t requests;     /* how many there have been */

        DriverState driver_state;
        char driver_error[GPU_REASON_SIZE];
        char driver_version[80];

        bool out; /* a vendor request is under way */
        VendorOperation out_operation;
        bool out_all;     /* it is a probe of the whole tray */
        bool look_around; /* the next probe has to be one */
        uint64_t probes;  /* how many were asked for */
        usec_t poll_at_usec;

        bool state_stale; /* the file does not say what we know */
        bool stopping;    /* no more requests */
        uint32_t changes; /* ManagerChange, not yet told */
        uint32_t told_pending, told_quarantined;

        char error[GPU_REASON_SIZE];
};

/* Calls the observers that have this callback. */
#define manager_tell(manager, callback, ...)                                                     \
        do {                                                                                     \
                for (size_t _i = 0; _i < (manager)->n_observers; _i++)                           \
                        if ((manager)->observers[_i].callback)                                   \
                                (manager)->observers[_i].callback(                               \
                                                __VA_ARGS__, (manager)->observers[_i].userdata); \
        } while (0)

PRINTF_FORMAT(3, 4) int manager_fail(Manager *manager, int error, const char *format, ...);

/* Writes the state file if it is stale. 0 · -errno with manager_error(). */
int manager_write_state(Manager *manager);

/* Starts what the GPUs and requests want most, if nothing is under way. */
void manager_dispatch(Manager *manager, Now now);

/* Brings to an end what has come to its end: records, the state file, then everybody who is to be told. */
void manager_commit(Manager *manager, Now now);

/* Puts one GPU of a request on its way. 0 · -ENOMEM. */
int manager_enlist(Manager *manager, Request *request, size_t item, Now now);

/* Ends the requests past their deadline. */
void manager_expire_requests(Manager *manager, Now now);

/* What a vendor reply means to the requests that rode on it. */
void manager_serve_requests(Manager *manager, const VendorReply *reply);
