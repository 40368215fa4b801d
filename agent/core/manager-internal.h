/* SPDX-License-Identifier: MIT */
/* The manager's own structure, shared by its files: manager.c (what others see), manager-request.c (what is
 * asked), manager-lease.c (who has what), manager-partition.c (where it belongs), manager-gate.c (bookings),
 * manager-dispatch.c (to the vendor), manager-reply.c (and back) and manager-commit.c (how it ends). */
#pragma once

#include "agent/core/handover.h"
#include "agent/core/inventory.h"
#include "agent/core/manager.h"
#include "agent/core/state.h"

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
        uint64_t out_number; /* of all that have been */
        usec_t out_since_usec;
        bool out_all;     /* it is a probe of the whole tray */
        bool look_around; /* the next probe has to be one */
        usec_t poll_at_usec;

        bool look_for_tenants; /* signs of the leaseholders are due */
        usec_t resume_at_usec; /* not before; what would not start is tried again */
        bool resume_tried;     /* in this agent's life, and since it was quiesced */

        StateTray tray;
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

/* Takes the request off the handovers that it waits for. */
void request_withdraw(Request *request);

/* 1 and *ret: what the request still has to learn, one after the other · 0: nothing. */
int request_wants(const Request *request, VendorOperation *ret);

bool manager_has_leases(const Manager *manager);
bool manager_has_no_handover(const Manager *manager);

/* All leaseholders, each once, borrowed. 0 · -ENOMEM. */
int manager_collect_tenants(const Manager *manager, char ***ret);

/* What the signs of tenants mean to their leases. */
void manager_take_tenants(Manager *manager, const VendorReply *reply, Now now);

/* Whether the leases let a release pass. 0 · -EPERM with manager_error(). */
int manager_check_release(Manager *manager, const Request *request);

/* Ends the tenant's leases on the GPUs of a release, and the bookings of them that it waits for. 0 · -ENOMEM
 * with manager_error(), and none has ended. */
int manager_end_leases(Manager *manager, Request *request, Now now);

/* The end of the leases could not be written: they are as they were. */
void manager_restore_leases(Request *request, Now now);

/* The GPUs that a release without ids is about: those leased to the tenant or on their way from it. */
size_t manager_find_leased(const Manager *manager, const char *tenant, Gpu **ret);

/* A booking: what it needs first. 0 · -EINVAL, -ENOTSUP with manager_error(). */
int manager_begin_gate(Manager *manager, Request *request);

/* Takes all bookings a step further: books, refuses, begins handovers. */
void manager_serve_gates(Manager *manager, Now now);

void manager_set_driver(Manager *manager, DriverState state, const char *error);

/* The reply to the operation that is out; it is changed where it could not be taken in. */
void manager_take_reply(Manager *manager, VendorReply *reply, Now now);

/* Ends the requests past their deadline. */
void manager_expire_requests(Manager *manager, Now now);

/* What a vendor reply means to the requests that rode on it; bookings are judged by
 * manager_serve_gates(). */
void manager_serve_requests(Manager *manager, const VendorReply *reply, Now now);
