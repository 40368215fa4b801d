/* SPDX-License-Identifier: MIT */
/* Where the properties' values come from: one function an area, a number for each value in it. */
#pragma once

#include "cli/nvidia-smi.h"

enum {
        TRAY_TIMESTAMP,
        TRAY_DRIVER_VERSION,
        TRAY_COUNT
};

enum {
        IDENTITY_NAME,
        IDENTITY_SERIAL,
        IDENTITY_UUID,
        IDENTITY_BUS_ID,
        IDENTITY_PCI_DOMAIN,
        IDENTITY_PCI_BUS,
        IDENTITY_PCI_DEVICE,
        IDENTITY_PCI_DEVICE_ID,
        IDENTITY_PCI_SUBSYSTEM_ID,
        IDENTITY_INDEX,
        IDENTITY_MINOR,
        IDENTITY_BOARD_ID,
};

enum {
        MODEL_PCIE_GEN,
        MODEL_PCIE_GEN_MAX,
        MODEL_ADDRESSING,
        MODEL_VBIOS,
        MODEL_IMAGE,
        MODEL_COMPUTE_CAP,
        MODEL_REMAP_BANKS,
        MODEL_C2C,
        MODEL_ARCHITECTURE,
        MODEL_BOARD_PART,
        MODEL_GPU_PART,
        MODEL_BAR1,
};

enum {
        HEALTH_RECOVERY,
        HEALTH_ECC_CORRECTED_VOLATILE,
        HEALTH_ECC_CORRECTED_AGGREGATE,
        HEALTH_ECC_UNCORRECTED_VOLATILE,
        HEALTH_ECC_UNCORRECTED_AGGREGATE,
        HEALTH_REMAP_PENDING,
        HEALTH_MIG,
        HEALTH_MIG_PENDING,
        HEALTH_PERSISTENCE,
};

enum {
        CLOCK_REASONS,
        CLOCK_REASON_IDLE,
        CLOCK_GRAPHICS,
        CLOCK_MEMORY,
        CLOCK_VIDEO,
        CLOCK_GRAPHICS_MAX,
        CLOCK_VIDEO_MAX,
};

enum {
        MEMORY_TOTAL,
        MEMORY_RESERVED,
        MEMORY_USED,
        MEMORY_FREE
};

enum {
        POWER_LOAD,
        POWER_MEMORY_LOAD,
        POWER_CELSIUS,
        POWER_TLIMIT,
        POWER_DRAW,
        POWER_LIMIT,
        POWER_MIN,
        POWER_MODULE_DRAW,
        POWER_MODULE_LIMIT,
        POWER_MODULE_MIN,
        POWER_MEMORY_DRAW,
};

enum {
        FABRIC_VALUE_STATE,
        FABRIC_VALUE_STATUS,
        FABRIC_VALUE_CLIQUE,
        FABRIC_VALUE_CLUSTER,
        FABRIC_VALUE_SUMMARY,
        FABRIC_VALUE_BANDWIDTH,
        FABRIC_VALUE_ROUTE_RECOVERY,
        FABRIC_VALUE_ROUTE_UNHEALTHY,
        FABRIC_VALUE_ACCESS_TIMEOUT,
        FABRIC_VALUE_CONFIGURATION,
};

enum {
        PLATFORM_CHASSIS,
        PLATFORM_SLOT,
        PLATFORM_TRAY,
        PLATFORM_HOST,
        PLATFORM_PEER,
        PLATFORM_MODULE,
        PLATFORM_GUID,
};

void get_tray(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_identity(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_model(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_health(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_clock(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_memory(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_power(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_fabric(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
void get_platform(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
