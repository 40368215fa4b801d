/* SPDX-License-Identifier: MIT */
/* What the vendor side finds out about GPUs: plain data that crosses from the driver's workers to the core.
 * Every string in it is printable ASCII, cut to its size and NUL-terminated (text_escape), so it may go
 * anywhere. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/clock.h"
#include "agent/base/parse.h"

/* NVML_NVLINK_MAX_LINKS is 18 up to the 580 headers and 36 from 590 on. */
#define GPU_LINKS_MAX 36

/* "Not known" for unsigned numbers and for the temperature. */
#define UNKNOWN_U32 UINT32_MAX
#define UNKNOWN_U64 UINT64_MAX
#define UNKNOWN_I32 INT32_MIN

/* nvmlGpuFabricState_t, NVML 12 and later. */
typedef enum FabricState {
        FABRIC_NOT_SUPPORTED,
        FABRIC_NOT_STARTED,
        FABRIC_IN_PROGRESS,
        FABRIC_COMPLETED,
        _FABRIC_STATE_MAX,
        _FABRIC_STATE_INVALID = -EINVAL,
} FabricState;

/* nvmlGpuFabricHealthSummary_t, NVML 13; computed from the health mask where the driver gives none. */
typedef enum FabricHealth {
        FABRIC_HEALTH_NOT_SUPPORTED,
        FABRIC_HEALTH_HEALTHY,
        FABRIC_HEALTH_UNHEALTHY,
        FABRIC_HEALTH_LIMITED_CAPACITY,
        _FABRIC_HEALTH_MAX,
        _FABRIC_HEALTH_INVALID = -EINVAL,
} FabricHealth;

/* nvmlDeviceGpuRecoveryAction_t, field 230: 0 to 4 since driver 570, 5 since 595, 6 and 7 from the 615
 * documents. The driver's number is kept as it is, also one that is not listed here. */
typedef enum RecoveryAction {
        RECOVERY_NONE,
        RECOVERY_GPU_RESET,
        RECOVERY_NODE_REBOOT,
        RECOVERY_DRAIN_P2P,
        RECOVERY_DRAIN_AND_RESET,
        RECOVERY_RECOVER_IMEX_DOMAIN,
        RECOVERY_BUS_RESET,
        RECOVERY_SYSTEM_REBOOT,
        _RECOVERY_ACTION_MAX,
        RECOVERY_UNKNOWN = -1, /* the driver cannot tell (older than 570) */
} RecoveryAction;

typedef struct GpuLink {
        uint32_t link;
        bool active;
        char remote[GPU_BUS_ID_SIZE]; /* the other end's PCI bus id, "" if unknown */
} GpuLink;

/* One GPU as a probe saw it. */
typedef struct GpuSample {
        char uuid[GPU_UUID_SIZE];
        char bus_id[GPU_BUS_ID_SIZE]; /* NVIDIA's spelling */
        char name[96];
        char serial[32];
        uint32_t index; /* NVML's */
        uint32_t minor; /* of /dev/nvidiaN; not the index in general */

        /* Why the GPU did not answer ("GPU is lost"), and what follows is unknown then; "" if it did. */
        char error[96];
        bool lost;           /* NVML_ERROR_GPU_IS_LOST */
        bool reset_required; /* NVML_ERROR_RESET_REQUIRED */

        uint32_t clique_id;          /* with cluster_uuid valid only in FABRIC_COMPLETED with status 0 */
        char cluster_uuid[40];       /* 8-4-4-4-12, "" for none (all zeros, or not valid) */
        uint32_t fabric_state;       /* FabricState */
        uint32_t fabric_status;      /* nvmlReturn_t */
        char fabric_status_text[48]; /* "Success", as nvmlErrorString has it */
        uint32_t fabric_health;      /* FabricHealth */

        uint32_t partition; /* from fabric.query; UNKNOWN_U32 where nothing tells */
        char partition_name[64];
        /* The clique to expect after the next reset; UNKNOWN_U32 where nothing tells. */
        uint32_t partition_clique;

        uint32_t n_links;
        uint32_t n_links_active;
        GpuLink links[GPU_LINKS_MAX];

        int32_t recovery_action; /* RecoveryAction */
        bool mig;
        bool persistence;     /* persistence mode */
        bool checks;          /* the site has checks to be run after a reset (handover.checks-directory) */
        uint32_t n_processes; /* compute and graphics processes by NVML; UNKNOWN_U32 where it cannot tell */

        uint64_t memory_total; /* bytes */
        uint64_t memory_used;  /* bytes */
        uint32_t utilization;  /* % */
        uint32_t power_mw;
        int32_t temperature;      /* degrees Celsius */
        uint64_t nvlink_tx_bytes; /* since the driver's load; UNKNOWN_U64 */
        uint64_t nvlink_rx_bytes;
} GpuSample;

/* One process on one GPU. */
typedef struct GpuHolder {
        char uuid[GPU_UUID_SIZE];
        pid_t pid;
        /* Of the process, in clock ticks after boot (proc(5), field 22): with pid its identity. */
        uint64_t start_time;
        uid_t uid;
        char user[40];       /* its name, or the number where the uid has none */
        char command[24];    /* comm, never its arguments */
        char where[96];      /* "unit session-3.scope", "job 27" or "pod <uid>", "" if nothing tells */
        uint64_t used_bytes; /* GPU memory, UNKNOWN_U64 */
} GpuHolder;

typedef enum ResetVerdict {
        RESET_DONE,          /* nvidia-smi exited 0 and the GPU answered a fresh read afterwards */
        RESET_IN_USE,        /* refused: something holds the GPU; nothing was changed */
        RESET_NOT_SUPPORTED, /* this GPU cannot be reset, or is in MIG mode */
        RESET_FAILED,
        _RESET_VERDICT_MAX,
        _RESET_VERDICT_INVALID = -EINVAL,
} ResetVerdict;

/* What became of one GPU of a reset. */
typedef struct GpuReset {
        char uuid[GPU_UUID_SIZE];
        uint32_t verdict; /* ResetVerdict */
        char detail[256]; /* nvidia-smi's words, for the log */
} GpuReset;

/* Whether a tenant can be seen on this node: a Slurm job by its steps in slurmd's spool folder and its
 * cgroup, a pod by its cgroup. No sign alone proves nothing: it counts as gone only where it was seen
 * alive before. */
typedef enum TenantPresence {
        TENANT_UNKNOWN, /* of a kind that leaves no signs, or they cannot be read */
        TENANT_ALIVE,
        TENANT_NO_SIGN,
        _TENANT_PRESENCE_MAX,
        _TENANT_PRESENCE_INVALID = -EINVAL,
} TenantPresence;

typedef struct TenantSign {
        char tenant[TENANT_MAX + 1];
        uint32_t presence; /* TenantPresence */
} TenantSign;

typedef enum DriverState {
        DRIVER_UNKNOWN, /* not asked yet */
        DRIVER_OK,
        DRIVER_MISSING, /* no module, or no NVML library: nothing to ask */
        DRIVER_FAILED,  /* NVML or the driver service answered with an error */
        /* no answer within the deadline, or an earlier worker is still stuck in the driver */
        DRIVER_UNRESPONSIVE,
        _DRIVER_STATE_MAX,
        _DRIVER_STATE_INVALID = -EINVAL,
} DriverState;

/* The names used on the bus, in the CLI and in metrics. NULL for a value out of range. */
const char* fabric_state_to_string(uint32_t state);
const char* fabric_health_to_string(uint32_t health);
const char* driver_state_to_string(DriverState state);
const char* reset_verdict_to_string(uint32_t verdict);
const char* tenant_presence_to_string(uint32_t presence);

/* "none", "gpu-reset" …; a number where the driver's value has no name; "unknown". */
void recovery_action_format(int32_t action, char *ret, size_t size);

/* The clique and the cluster mean something: the fabric is at rest without an error, and there is one. */
bool gpu_sample_has_clique(const GpuSample *sample);

/* Its fabric has come to rest: it is complete, or this GPU has none. */
bool gpu_sample_has_settled(const GpuSample *sample);

/* All numbers unknown, all strings empty. */
void gpu_sample_init(GpuSample *sample);

/* "python (pid 1860, user joe, unit session-3.scope)" */
void gpu_holder_format(const GpuHolder *holder, char *ret, size_t size);
