/* SPDX-License-Identifier: MIT */
/* The tray: its GPUs, what has been asked for them, and the one vendor request that may be out at a time. It
 * includes no bus, reads no clock and never sleeps: the time comes as an argument, manager_next_elapse()
 * says when it wants to be called again, and manager_tick() is that call. */
#pragma once

#include "agent/config/config.h"
#include "agent/core/gpu.h"
#include "agent/core/request.h"
#include "agent/core/vendor.h"

typedef struct Manager Manager;

typedef enum ManagerChange {
        MANAGER_CHANGE_DRIVER = 1 << 0, /* driver state, error, version */
        MANAGER_CHANGE_COUNTS = 1 << 1, /* resets pending, quarantined */
        MANAGER_CHANGE_CONFIG = 1 << 2,
        MANAGER_CHANGE_MAINTENANCE = 1 << 3,
} ManagerChange;

/* Those who want to hear: the bus, the metrics file, the journal. Called when a change is committed (on
 * file, where it has to be), from within a manager_*() call; they must not call back into the manager's
 * changing functions. Any may be NULL. */
typedef struct ManagerObserver {
        void (*on_gpu_added)(Gpu *gpu, void *userdata);
        void (*on_gpu_removed)(Gpu *gpu, void *userdata); /* it is freed afterwards */
        void (*on_gpu_changed)(Gpu *gpu, uint32_t gpu_changes, void *userdata);
        void (*on_manager_changed)(uint32_t manager_changes, void *userdata);
        void (*on_reset_started)(Gpu *gpu, const char *tenant, void *userdata); /* tenant "" for none */
        void (*on_reset_finished)(
                        Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata);
        /* after that: no reset or release waited for it, whose end would tell of it */
        void (*on_handover_unasked)(
                        Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata);
        void (*on_request_finished)(const Request *request, void *userdata);
        /* the tenant is gone from this node */
        void (*on_lease_reclaimed)(Gpu *gpu, const char *tenant, void *userdata);
        void *userdata;
} ManagerObserver;

/* Reads the state file (absent, torn, foreign or not to be written: nothing is clean). `config` is borrowed
 * and must outlive the manager or be replaced by manager_set_config(). 0 and *ret, and manager_error() says
 * what is wrong with the state file, "" for nothing · -ENOMEM. */
int manager_new(const Config *config, const VendorOps *vendor, const char *state_path, Manager **ret);

/* Ends all requests without calling their `done`. Returns NULL. */
Manager* manager_free(Manager *manager);

/* Adds an observer; copied. 0 · -ENOSPC more than a handful. */
int manager_add_observer(Manager *manager, const ManagerObserver *observer);

void manager_set_config(Manager *manager, const Config *config);

/* From now on requests are refused with -ESHUTDOWN; what is under way goes on to its end. */
void manager_stop(Manager *manager);

/* No handover is under way or waits. */
bool manager_is_idle(const Manager *manager);

/* Neither that, nor is anything stopped for one: the driver service may go. */
bool manager_is_at_rest(const Manager *manager);

/* Does what is due: starts the next vendor request, ends requests past their deadline, polls. */
void manager_tick(Manager *manager, Now now);

/* When manager_tick() is due next (monotonic), USEC_INFINITY for never. */
usec_t manager_next_elapse(const Manager *manager);

/* The reply to the vendor request that is out. */
void manager_vendor_done(Manager *manager, const VendorReply *reply, Now now);

/* Asks for work on the GPUs named by `ids` (a strv of GPU ids; empty: all GPUs, for REQUEST_RELEASE those
 * leased to the tenant, for REQUEST_ACQUIRE -EINVAL). One that cannot be resolved fails the whole request
 * before anything is done; so does a state file that cannot be written. `done` may be NULL. While
 * maintenance is on the request ends at once with OUTCOME_MAINTENANCE and nothing is done. 0 and *ret
 * (borrowed until done or request_abandon(); NULL if it is finished already; ret may be NULL) · -EINVAL
 * malformed id, or a booking without GPUs or a tenant · -ENOENT no such GPU · -EPERM a release of a GPU that
 * is leased to another tenant (the bus says NotHolder) · -ENOTSUP a shared booking where handover.shared
 * refuses it (NotSupported) · -ESHUTDOWN the manager stops · -EROFS/-ENOSPC/… the state cannot be written ·
 * -ENOMEM: nothing was done, `done` is not called, and manager_error() says why. */
int manager_request(Manager *manager, RequestKind kind, char *const *ids, const RequestOptions *options,
                RequestDone done, void *userdata, Now now, Request **ret);

/* Something has ended on this node: whether the leaseholders still live is asked at once, not at the next
 * poll. */
void manager_look_for_tenants(Manager *manager, Now now);

/* Whether the GPUs are clean by what is known, without asking the driver: 0 · -EINVAL, -ENOENT as above · 1
 * and *ret_message (to be freed): not clean, and why each. */
int manager_verify_known(Manager *manager, char *const *ids, char **ret_message);

/* One line about the last refusal by manager_request() or a lookup. */
const char* manager_error(const Manager *manager);

/* Takes a GPU that is no longer in the tray off the list, with its lease. 0 · -EINVAL, -ENOENT as
 * manager_find() · -EBUSY it is there, was not looked for yet, or is asked for by a request · -errno the
 * state cannot be written: nothing was done, and manager_error() says why. */
int manager_forget(Manager *manager, const char *id, Now now);

/* The partition that the GPUs are expected in from their next reset on; it is not asked whether the fabric
 * has them in it. `from`: the one that each has to be in, if not in that one already; NULL: wherever they
 * are. On file, and so kept over restarts. 0 · -EINVAL no GPU or a malformed id, a partition that there
 * cannot be · -ENOENT no such GPU · -EBUSY one is in another partition · -ENOMEM, -errno the state cannot be
 * written: nothing changed, and manager_error() says why. */
int manager_set_partition(Manager *manager, char *const *ids, const uint32_t *from,
                const GpuPartition *partition, Now now);

/* Printable characters without spaces, up to what GpuPartition holds, and not "-"; "" is valid. */
bool partition_name_is_valid(const char *name);

/* Maintenance: new requests end with OUTCOME_MAINTENANCE and this reason (any text, escaped here; "" for
 * none), and once running work has ended nothing is asked of the vendor side until it is switched off. On
 * file, and so kept over restarts. 0 · -errno the state cannot be written: nothing changed, and
 * manager_error() says why. */
int manager_set_maintenance(Manager *manager, bool on, const char *reason, Now now);

/* The reason ("" if none was given) while maintenance is on, NULL while it is off. */
const char* manager_maintenance(const Manager *manager);

/* The Xid of a GPU as the kernel logged it, by PCI bus id in any spelling; unknown ones are passed over. One
 * that only a reset or a reboot cures takes the clean mark away; the driver is asked at once. */
void manager_set_xid(Manager *manager, const char *bus_id, uint32_t xid, Now now);

/* The GPU by index, UUID or bus id. 0 and *ret · -EINVAL, -ENOENT with manager_error(). */
int manager_find(Manager *manager, const char *id, Gpu **ret);

/* By UUID in the form GPU_UUID_SIZE holds; NULL if there is none. O(log n). */
Gpu* manager_gpu_by_uuid(const Manager *manager, const char *uuid);

/* All GPUs in the order of their index. */
Gpu *const *manager_gpus(const Manager *manager, size_t *ret_n);

DriverState manager_driver_state(const Manager *manager);
const char* manager_driver_error(const Manager *manager);
const char* manager_driver_version(const Manager *manager);
const Config* manager_config(const Manager *manager);
uint32_t manager_resets_pending(const Manager *manager);
uint32_t manager_quarantined(const Manager *manager);
