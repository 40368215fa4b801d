/* SPDX-License-Identifier: MIT */
/* Load, power, temperature and NVLink traffic of an emulated GPU, worked out from what its tenants
 * registered: each is a pulse of load, and the GPU answers it with the lag of a real one. Nothing has to run
 * for that. */
#pragma once

#include "agent/emulation/clients.h"

typedef struct Telemetry {
        uint32_t load; /* percent */
        uint32_t memory_load;
        uint32_t power_mw;
        int32_t celsius;
        uint32_t graphics_clock; /* MHz */
        uint32_t video_clock;
        uint64_t used_bytes; /* of its memory, by tenants */
        uint64_t link_bytes; /* sent, and as many received, by all links since the tray's boot */
} Telemetry;

void telemetry_read(const TrayHeader *header, const TrayGpu *gpu, const Clients *clients, usec_t now,
                Telemetry *ret);

/* Bytes that one registration's work sent over NVLink. */
uint64_t telemetry_link_bytes(const ClientRecord *record);
