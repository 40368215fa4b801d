/* SPDX-License-Identifier: MIT */
/* What gpuagentd and gpuagent-driver say to each other: an sd-bus peer connection over the driver's
 * socket, with one object. One table of fields serves the writer, the reader and the check of what a
 * worker sent.
 *
 *   Probe     as t -> s aa{sv}        driver's version, GPUs; links as a(ubs). No UUIDs: all GPUs
 *   Reset     as t -> a(sus) aa{sv}   UUID, ResetVerdict, detail; then, as in a probe, how those that were
 *                                     reset look after it: all, some or none. No UUIDs: InvalidArgs
 *   Holders   as t -> a(sutussst)     UUID, pid, start time, uid, user, command, where, used bytes. No
 *                                     UUIDs: all
 *   Leftovers a(ss) t -> a(sutussst)  UUIDs and their ended tenants: ends what is proven to be left of
 *                                     these; then as Holders
 *   Quiesce   t -> s                  what would not stop, "" for success
 *   Resume    t -> s                  what would not start, "" for success
 *   Checks    a(ss) t -> a(sus)       UUIDs and their tenants: as Reset; RESET_DONE: passed
 *   Tenants   as t -> a(su)           tenants: each with its TenantPresence, in the order that was asked
 *
 * `as` are UUIDs but for Tenants. In `a(ss)` the tenant is "" for none. `t` is the time the caller has, in
 * microseconds, waiting for other requests included. */
#pragma once

#include <systemd/sd-bus.h>

#include "agent/base/sample.h"

#define PROTOCOL_INTERFACE "org.gpuagent1.Driver"
#define PROTOCOL_PATH      "/org/gpuagent1/driver"
#define PROTOCOL_SOCKET    "/run/gpuagent-driver.socket"

#define PROTOCOL_ERROR_MISSING "org.gpuagent1.Driver.Error.Missing" /* no module or library */
#define PROTOCOL_ERROR_FAILED  "org.gpuagent1.Driver.Error.Failed"  /* NVML or the service failed */
#define PROTOCOL_ERROR_UNRESPONSIVE \
        "org.gpuagent1.Driver.Error.Unresponsive" /* no answer in time, or one is stuck */
#define PROTOCOL_ERROR_NO_SUCH_GPU \
        "org.gpuagent1.Driver.Error.NoSuchGPU" /* a UUID that is not on this tray */

/* More than a tray can have, so that a broken peer cannot make us allocate without end. */
#define PROTOCOL_GPUS_MAX         4096U
#define PROTOCOL_HOLDERS_MAX      65536U
#define PROTOCOL_TENANTS_MAX      16384U
#define PROTOCOL_TIMEOUT_MAX_USEC (3600 * USEC_PER_SEC)

#define DRIVER_VERSION_SIZE 80
#define FAILURE_SIZE        256

/* A GPU, and who has or had it. */
typedef struct GpuTenant {
        char uuid[GPU_UUID_SIZE];
        char tenant[TENANT_MAX + 1]; /* "" for nobody */
} GpuTenant;

/* The arguments of a method call: of Probe, Reset, Holders and, with tenants, Tenants; of Leftovers and
 * Checks, where each UUID has its tenant in the other strv (-EINVAL: they differ in length); of Quiesce and
 * Resume. 0 · -errno of sd-bus. */
int protocol_append_request(sd_bus_message *msg, char *const *uuids, usec_t timeout_usec);
int protocol_append_request_pairs(
                sd_bus_message *msg, char *const *uuids, char *const *tenants, usec_t timeout_usec);
int protocol_append_request_timeout(sd_bus_message *msg, usec_t timeout_usec);

/* The answers. 0 · -errno of sd-bus. */
int protocol_append_probe(
                sd_bus_message *msg, const char *driver_version, const GpuSample *samples, size_t n);
int protocol_append_samples(sd_bus_message *msg, const GpuSample *samples, size_t n);
int protocol_append_resets(sd_bus_message *msg, const GpuReset *resets, size_t n);
int protocol_append_holders(sd_bus_message *msg, const GpuHolder *holders, size_t n);
int protocol_append_tenants(sd_bus_message *msg, const TenantSign *signs, size_t n);
int protocol_append_failure(sd_bus_message *msg, const char *failure);

/* The readers believe nothing: dictionary keys that they do not know are passed over; a wrong type, a
 * string that is not printable ASCII or does not fit, a UUID, bus id or tenant that is none, a value out
 * of range, a key given twice, or too many items are -EBADMSG. 0 and *ret (to be freed; NULL if *ret_n is
 * 0) · -EBADMSG · -ENOMEM. */
int protocol_read_probe(sd_bus_message *msg, char ret_driver_version[static DRIVER_VERSION_SIZE],
                GpuSample **ret, size_t *ret_n);
int protocol_read_samples(sd_bus_message *msg, GpuSample **ret, size_t *ret_n);
int protocol_read_resets(sd_bus_message *msg, GpuReset **ret, size_t *ret_n);
int protocol_read_holders(sd_bus_message *msg, GpuHolder **ret, size_t *ret_n);
int protocol_read_tenants(sd_bus_message *msg, TenantSign **ret, size_t *ret_n);
int protocol_read_failure(sd_bus_message *msg, char ret[static FAILURE_SIZE]);

/* The pairs of a call, without its time. The same, and a UUID that is there twice is -EBADMSG. */
int protocol_read_pairs(sd_bus_message *msg, GpuTenant **ret, size_t *ret_n);

/* Makes plain structs that came from a process we do not trust fit to be read: every string NUL-terminated
 * and printable, every bool 0 or 1, counts in range. 0 · -EBADMSG: a UUID, bus id or tenant that is none,
 * or a verdict or presence out of range. */
int protocol_clean_samples(GpuSample *samples, size_t n);
int protocol_clean_resets(GpuReset *resets, size_t n);
int protocol_clean_holders(GpuHolder *holders, size_t n);
int protocol_clean_tenants(TenantSign *signs, size_t n);
