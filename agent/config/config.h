/* SPDX-License-Identifier: MIT */
/* The configuration, read whole from YAML by every program. gpuagentd.yaml(5) describes each key; the key
 * table in keys.c has the defaults. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"

/* How nvidia-smi is told which GPU to reset. */
typedef enum ResetId {
        RESET_ID_BUS_ID,
        RESET_ID_UUID,
        RESET_ID_INDEX,
} ResetId;

/* Whether a refused gate refuses, or only says that it would have. */
typedef enum AgentMode {
        AGENT_MODE_ENFORCE,
        AGENT_MODE_OBSERVE,
} AgentMode;

/* What happens to processes that are proven to be the ended tenant's. */
typedef enum LeftoverPolicy {
        LEFTOVERS_KILL,
        LEFTOVERS_REFUSE,
} LeftoverPolicy;

/* A GPU in MIG mode: its handover fails, or it is left alone and passes. */
typedef enum MigPolicy {
        MIG_REFUSE,
        MIG_SKIP,
} MigPolicy;

/* A GPU that several tenants share (gres/shard, MPS): refused, or counted and reset with the last. */
typedef enum SharedPolicy {
        SHARED_REFUSE,
        SHARED_COUNT,
} SharedPolicy;

/* What the numbers in SLURM_JOB_GPUS mean. */
typedef enum GpuIndexRule {
        GPU_INDEX_AUTO,  /* positions in slurmd's own gres list */
        GPU_INDEX_INDEX, /* NVML's index */
        GPU_INDEX_MINOR, /* N of /dev/nvidiaN */
} GpuIndexRule;

/* Who sees holders, tenants and reasons with names in properties and signals. */
typedef enum ProcessAccess {
        PROCESS_ACCESS_ALL,
        PROCESS_ACCESS_OWN,
} ProcessAccess;

/* The strings are never NULL. */
typedef struct Config {
        int mode; /* AgentMode */
        struct {
                char *root;    /* where a containerised driver lives, "/" else */
                char *devices; /* the folder of the nvidiaN nodes */
                char *module;  /* the kernel module that must be loaded; "" is not checked */
                char *library; /* NVML, for dlopen */
                char *smi;     /* nvidia-smi: a path, or a name looked up in a fixed PATH */
                int reset_id;  /* ResetId */
                usec_t poll_interval_usec;
                usec_t probe_timeout_usec;
                usec_t reset_timeout_usec;
                usec_t fabric_timeout_usec;
        } driver;
        struct {
                bool reset;
                bool boot_reset;
                usec_t acquire_timeout_usec;
                usec_t busy_grace_usec;
                int leftovers; /* LeftoverPolicy */
                usec_t kill_grace_usec;
                int mig;                   /* MigPolicy */
                int shared;                /* SharedPolicy */
                uint32_t expected_nvlinks; /* 0: any number */
                char *checks_directory;
                usec_t check_timeout_usec;
        } handover;
        struct {
                char **units; /* a strv of systemd units that hold GPUs and may be stopped for a reset */
                /* "COMMAND stop" and "COMMAND start" for monitoring that is no unit; "" for none */
                char *command;
        } quiesce;
        struct {
                int gpu_index; /* GpuIndexRule */
                bool drain, resume;
        } slurm;
        struct {
                char **observers;    /* a strv of Kubernetes namespaces whose pods only look at GPUs */
                bool nvidia_runtime; /* NVIDIA_VISIBLE_DEVICES is acted on, also where no hook shows it */
                usec_t timeout_usec;
        } oci;
        struct {
                char *query; /* a command that prints "UUID PARTITION NAME CLIQUE" lines; "" for none */
        } fabric;
        struct {
                char *group;   /* "" for none */
                int processes; /* ProcessAccess */
        } access;
        struct {
                bool nvlink;
        } metrics;
} Config;

/* Reads /usr/lib/gpuagent/gpuagentd.yaml, /usr/lib/gpuagent/gpuagentd.yaml.d/ (*.yaml by name) and the same
 * below /etc/gpuagent, a later file over an earlier one key by key; files that are not there are passed
 * over. With `path`, that file alone is read, and must exist. Defaults fill the rest. A file that is not
 * owned by root or the reader, or that others may write, is refused: it says what root executes.
 * 0 and *ret · -errno and *ret_message (to be freed, NULL only without memory), one line "FILE:LINE: what
 * is wrong" that a person can act on. */
int config_load(const char *path, Config **ret, char **ret_message);

/* The same from other folders than /usr/lib/gpuagent and /etc/gpuagent; NULL ends the list. */
int config_load_folders(const char *const *folders, Config **ret, char **ret_message);

/* The same from `size` bytes of text, called `name` in the message. */
int config_parse(const char *name, const char *text, size_t size, Config **ret, char **ret_message);

Config* config_free(Config *config);

/* A number that is another one when a file that config_load(path, …) reads was changed, added or removed
 * since. Costs a few stat calls. */
uint64_t config_stamp(const char *path);

/* What there is to configure, in the order of the manual: the first is 0. NULL after the last. */
typedef struct ConfigKeyInfo {
        const char *section;
        const char *name;
        const char *fallback; /* the default as it is written in a file */
} ConfigKeyInfo;

const ConfigKeyInfo* config_key_info(size_t i);

DEFINE_CLEANUP(Config, config_free_ptr, config_free)
