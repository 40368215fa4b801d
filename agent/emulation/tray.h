/* SPDX-License-Identifier: MIT */
/* The emulated tray's state: one file of fixed-size records that root replaces whole and everybody maps.
 * What depends on time (a reset under way, a fabric that settles) is stored as points on CLOCK_MONOTONIC and
 * worked out by the reader, so that no process has to live for it: a client may die at any instruction, and
 * a reset that has begun still ends. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "agent/emulation/model.h"

#define TRAY_DIRECTORY         "/run/gpuagent-emulation"
#define TRAY_PATH              TRAY_DIRECTORY "/tray"
#define TRAY_LOCK_PATH         TRAY_DIRECTORY "/lock"
#define TRAY_MEMORY_DIRECTORY  TRAY_DIRECTORY "/memory"  /* a file a GPU, by index, for its tenants */
#define TRAY_CLIENTS_DIRECTORY TRAY_DIRECTORY "/clients" /* the tenants' registrations */
#define TRAY_PARTITIONS_PATH   "/var/lib/gpuagent-emulation/partitions"
#define TRAY_CONFIG_PATH       "/etc/gpuagent/emulation.yaml"

#define TRAY_GPUS_MAX       4096
#define TRAY_PARTITIONS_MAX 4096
#define TRAY_NAME_SIZE      64

#define PARTITION_NONE    0
#define PARTITION_DEFAULT 32766 /* the reserved default partition of an NVLink domain */
#define PARTITION_ID_MAX  32767

/* Whose texts and exit codes nvidia-smi has. */
typedef enum Dialect {
        DIALECT_NVIDIA,
        DIALECT_AI_LAB, /* the reference lab's fake */
        _DIALECT_MAX,
        _DIALECT_INVALID = -EINVAL,
} Dialect;

/* Whether the driver answers at all. */
typedef enum Hang {
        HANG_OFF,
        HANG_SLEEP, /* a sleep that no signal but SIGKILL ends */
        HANG_FILE,  /* reading hang_path, say on a FUSE mount that never answers: no signal ends that */
} Hang;

/* What a reset that is under way will have done at its end. */
typedef enum ResetOutcome {
        RESET_OUTCOME_DONE,
        RESET_OUTCOME_FAILED,
        RESET_OUTCOME_LIES, /* reported as done, and the GPU still needs one */
} ResetOutcome;

typedef struct TrayHeader {
        char magic[8];
        uint32_t version; /* of the layout */
        uint32_t size;    /* of the file */
        uint32_t n_gpus;
        uint32_t n_partitions;
        uint64_t generation; /* counts the writes */
        uint64_t boot_usec;  /* when the tray was made */

        char name[TRAY_NAME_SIZE];
        char devices[128]; /* the folder of the nvidiaN nodes */
        char driver_version[32];
        uint8_t cluster_uuid[16];
        uint8_t chassis_serial[16];
        uint8_t slot_number;
        uint8_t tray_index;
        uint8_t dialect; /* Dialect */
        uint8_t hang;    /* Hang */
        char hang_path[256];
        int32_t init_error;       /* what nvmlInit returns instead of success */
        uint32_t init_error_left; /* how often; all ones: until it is switched off */
        uint8_t blank;            /* calls that read values succeed and leave the buffers as they are */
        uint64_t reset_usec;
        uint64_t settle_usec;
        GpuModel model;
} TrayHeader;

typedef struct TrayGpu {
        char uuid[GPU_UUID_SIZE];
        char bus_id[GPU_BUS_ID_SIZE];
        char serial[32];
        uint32_t index;
        uint32_t minor;
        uint32_t module_id;
        uint64_t fabric_guid;

        uint32_t partition;         /* the partition it is assigned to */
        uint32_t applied_partition; /* the one in effect since the last reset */
        uint32_t clique;            /* in effect */

        uint64_t reset_end_usec; /* a reset ends then; 0 for none, or none that is not applied yet */
        uint32_t reset_partition;
        uint32_t reset_clique;
        uint32_t reset_outcome; /* ResetOutcome */
        uint32_t reset_count;

        uint64_t settle_start_usec; /* the fabric begins to settle */
        uint64_t settled_usec;      /* and has; USEC_INFINITY for never */
        uint64_t settle_usec;       /* what the next reset takes for it; TRAY_SETTLE_DEFAULT: as the tray */

        uint64_t links_up; /* a bit a link */
        uint32_t recovery_action;
        uint32_t last_xid;
        uint32_t fail_resets; /* that many resets will fail */
        uint8_t reset_lies;
        uint8_t lost;
        uint8_t mig;
        uint8_t mig_pending;
        uint8_t persistence;
        uint32_t phantoms; /* processes that appear between the two calls for a list */
        uint32_t field_error_id;
        int32_t field_error;    /* what reading that field returns; 0 for none */
        uint64_t ecc_corrected; /* volatile; aggregates are kept beside */
        uint64_t ecc_uncorrected;
        uint64_t ecc_corrected_aggregate;
        uint64_t ecc_uncorrected_aggregate;
        uint8_t row_remap_pending;
        uint64_t link_bytes; /* sent by tenants whose registrations are gone */
} TrayGpu;

#define TRAY_SETTLE_DEFAULT  (USEC_INFINITY - 1)
#define TRAY_COUNT_UNLIMITED UINT32_MAX

typedef struct TrayPartition {
        uint32_t id;
        uint32_t clique; /* of its GPUs, once they are reset */
        char name[TRAY_NAME_SIZE];
} TrayPartition;

/* The state as it was at one moment. Mapped from the file and never written, or a copy that is being
 * edited. */
typedef struct Tray {
        TrayHeader *header;
        TrayGpu *gpus;
        TrayPartition *partitions;
        size_t map_size; /* 0: a copy */
        dev_t device;
        ino_t inode;
        int lock_fd; /* -1 unless being edited */
} Tray;

#define TRAY_INIT ((Tray){ .lock_fd = -1 })

/* Maps the current state. 0 · -ENOENT no tray was made · -EPROTO not a tray of this version · -errno. */
int tray_open(Tray *ret);

/* Whether the file is still the one that is mapped. */
bool tray_is_current(const Tray *tray);

/* Takes the lock and a copy to be changed, with everything applied that happened until now.
 * 0 · as tray_open · -errno of the lock. */
int tray_edit(Tray *ret);

/* An empty copy under the lock, for a tray that is being made. 0 · -ENOMEM · -errno. */
int tray_make(uint32_t n_gpus, Tray *ret);

/* Replaces the file by the copy. The lock is kept until tray_done. 0 · -errno, the file is as it was. */
int tray_commit(Tray *tray);

void tray_done(Tray *tray);

/* The GPU with that index, UUID or bus id; NULL if there is none. */
TrayGpu* tray_find_gpu(const Tray *tray, const GpuId *id);
TrayPartition* tray_find_partition(const Tray *tray, uint32_t id);
TrayPartition* tray_find_partition_by_name(const Tray *tray, const char *name);

/* Appends one to a copy. 0 and *ret (valid until the next one) · -ENOMEM · -ENOSPC. */
int tray_add_partition(Tray *tray, TrayPartition **ret);

/* The clique that the GPU gets at its next reset. */
uint32_t tray_wanted_clique(const Tray *tray, const TrayGpu *gpu);

/* The GPU as it is at `now`: a reset that has ended is applied. */
void tray_gpu_at(const TrayHeader *header, TrayGpu *gpu, usec_t now);

bool tray_gpu_is_resetting(const TrayGpu *gpu, usec_t now);

/* An nvmlGpuFabricState. */
uint32_t tray_gpu_fabric_state(const TrayHeader *header, const TrayGpu *gpu, usec_t now);

/* An nvmlDeviceGpuRecoveryAction: what was injected, or a reset that a partition change waits for. */
uint32_t tray_gpu_recovery_action(const Tray *tray, const TrayGpu *gpu);

/* The health mask and its summary, as the resource manager derives the one from the other. */
uint32_t tray_gpu_fabric_health(const TrayHeader *header, const TrayGpu *gpu);
uint32_t fabric_health_summary(uint32_t mask);

/* Waits for as long as the driver hangs. Returns at once otherwise. */
void tray_hang(const Tray *tray);

/* The path of the GPU's device node. 0 · -ENAMETOOLONG. */
int tray_node_path(const TrayHeader *header, const TrayGpu *gpu, char *ret, size_t size);

const char* dialect_to_string(Dialect dialect);
Dialect dialect_from_string(const char *s);
