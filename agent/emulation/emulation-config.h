/* SPDX-License-Identifier: MIT */
/* /etc/gpuagent/emulation.yaml: what tray is emulated. gpuagent-emulate(8) describes the keys. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/emulation/model.h"

typedef struct EmulationConfig {
        char *name; /* the tray's; its identities derive from it */
        char *preset;
        uint32_t gpus; /* 0: as many as a machine of the preset has */
        char *model;   /* NULL, as the lists: as the preset has it */
        uint64_t memory_mib;
        char **uuids;
        char **bus_ids;
        char **minors;
        char **serials;
        uint32_t nvlinks;
        char *cluster_uuid;
        uint32_t partition;
        char *partition_name;
        uint32_t clique;
        usec_t reset_usec;
        usec_t settle_usec;
        char *dialect;
        char *driver_version;
        char *devices;
        char *bmc_listen; /* ADDRESS:PORT of the tray's BMC */
} EmulationConfig;

/* Reads the file; without a path the usual one, which may be missing. Defaults fill what it does not say.
 * 0 and *ret · -errno and *ret_message (to be freed), "FILE:LINE: what is wrong". */
int emulation_config_load(const char *path, EmulationConfig **ret, char **ret_message);
EmulationConfig* emulation_config_free(EmulationConfig *config);

/* Says why in *ret_message (to be freed; NULL without memory for it). Returns the error. */
int emulation_refuse(int error, char **ret_message, const char *format, ...) PRINTF_FORMAT(3, 4);

DEFINE_CLEANUP(EmulationConfig, emulation_config_free_ptr, emulation_config_free)
