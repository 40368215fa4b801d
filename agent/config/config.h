/* SPDX-License-Identifier: MIT */
/* The configuration, read whole from YAML by every program. gpuagentd.yaml(5) describes each key; the key table in
 * config.c has the defaults. */
#pragma once

#include <stdbool.h>
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

typedef struct Config {
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
                usec_t busy_grace_usec;
                uint32_t expected_nvlinks; /* 0: any number */
        } handover;
        struct {
                int gpu_index; /* GpuIndexRule */
                bool drain;
        } slurm;
        struct {
                char *query; /* a command that prints "UUID PARTITION NAME CLIQUE" lines; "" for none */
        } fabric;
        struct {
                char *group;
                int processes; /* ProcessAccess */
        } access;
        struct {
                bool nvlink;
        } metrics;
} Config;

/* Reads /usr/lib/gpuagent/gpuagentd.yaml, /usr/lib/gpuagent/gpuagentd.yaml.d/ (*.yaml by name) and the same below
 * /etc/gpuagent, a later file over an earlier one key by key; files that are not there are passed over. With `path`, that
 * file alone is read, and must exist. Defaults fill the rest.
 * 0 and *ret · -errno and *ret_message (to be freed), one line "FILE:LINE: what is wrong" that a person can act on. */
int config_load(const char *path, Config **ret, char **ret_message);
Config* config_free(Config *config);

DEFINE_CLEANUP(Config, config_free_ptr, config_free)
