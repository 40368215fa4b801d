/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/driver/device.h"

/* What the three layouts have in common. */
typedef struct FabricInfo {
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
        uint32_t health_mask; /* 0: none */
        uint8_t health_summary;
} FabricInfo;

#define UNTOUCHED 0xffU

static uint32_t mask_field(uint32_t mask, unsigned shift, unsigned width) {
        return (mask >> shift) & ((1U << width) - 1);
}

static bool mask_is(uint32_t mask, unsigned shift, uint32_t value) {
        return mask_field(mask, shift, 2) == value;
}

FabricHealth fabric_health_from_mask(uint32_t mask) {
        uint32_t config = mask_field(mask, NVML_FABRIC_HEALTH_INCORRECT_CONFIG_SHIFT, 4);

        if (mask == 0)
                return FABRIC_HEALTH_NOT_SUPPORTED;
        if (mask_is(mask, NVML_FABRIC_HEALTH_ROUTE_UNHEALTHY_SHIFT, NVML_FABRIC_HEALTH_TRUE) ||
                        mask_is(mask, NVML_FABRIC_HEALTH_ACCESS_TIMEOUT_SHIFT, NVML_FABRIC_HEALTH_TRUE) ||
                        mask_is(mask, NVML_FABRIC_HEALTH_PARTITION_SHIFT, NVML_FABRIC_HEALTH_FALSE) ||
                        config > NVML_FABRIC_CONFIG_NONE)
                return FABRIC_HEALTH_UNHEALTHY;
        if (mask_is(mask, NVML_FABRIC_HEALTH_DEGRADED_BW_SHIFT, NVML_FABRIC_HEALTH_TRUE) ||
                        mask_is(mask, NVML_FABRIC_HEALTH_ROUTE_RECOVERY_SHIFT, NVML_FABRIC_HEALTH_TRUE))
                return FABRIC_HEALTH_LIMITED_CAPACITY;
        return FABRIC_HEALTH_HEALTHY;
}

/* A driver that does not know a layout says so by one of these. */
static bool is_too_new(NvmlReturn result) {
        return result == NVML_ARGUMENT_VERSION_MISMATCH || result == NVML_FUNCTION_NOT_FOUND ||
                        result == NVML_INVALID_ARGUMENT;
}

static NvmlReturn info_get_versioned(const Nvml *nvml, NvmlDevice device, FabricInfo *info) {
        NvmlFabricInfoV3 v3;
        NvmlFabricInfoV2 v2;
        NvmlReturn result;

        if (!nvml->nvmlDeviceGetGpuFabricInfoV)
                return NVML_FUNCTION_NOT_FOUND;

        memset(&v3, UNTOUCHED, sizeof v3);
        v3.version = NVML_FABRIC_INFO_V3_VERSION;
        result = nvml->nvmlDeviceGetGpuFabricInfoV(device, &v3);
        if (result == NVML_OK) {
                *info = (FabricInfo){ .status = v3.status,
                        .clique_id = v3.clique_id,
                        .state = v3.state,
                        .health_mask = v3.health_mask,
                        .health_summary = v3.health_summary };
                memcpy(info->cluster_uuid, v3.cluster_uuid, sizeof info->cluster_uuid);
        }
        if (!is_too_new(result))
                return result;

        memset(&v2, UNTOUCHED, sizeof v2);
        v2.version = NVML_FABRIC_INFO_V2_VERSION;
        result = nvml->nvmlDeviceGetGpuFabricInfoV(device, &v2);
        if (result == NVML_OK) {
                *info = (FabricInfo){ .status = v2.status,
                        .clique_id = v2.clique_id,
                        .state = v2.state,
                        .health_mask = v2.health_mask,
                        .health_summary = UNTOUCHED };
                memcpy(info->cluster_uuid, v2.cluster_uuid, sizeof info->cluster_uuid);
        }
        return result;
}

static NvmlReturn info_get(const Nvml *nvml, NvmlDevice device, FabricInfo *info) {
        NvmlFabricInfo v1;
        NvmlReturn result;

        result = info_get_versioned(nvml, device, info);
        if (!is_too_new(result) || !nvml->nvmlDeviceGetGpuFabricInfo)
                return result;

        memset(&v1, UNTOUCHED, sizeof v1);
        result = nvml->nvmlDeviceGetGpuFabricInfo(device, &v1);
        if (result == NVML_OK) {
                *info = (FabricInfo){ .status = v1.status,
                        .clique_id = v1.clique_id,
                        .state = v1.state,
                        .health_summary = UNTOUCHED };
                memcpy(info->cluster_uuid, v1.cluster_uuid, sizeof info->cluster_uuid);
        }
        return result;
}

static void cluster_format(const uint8_t uuid[static 16], char *ret, size_t size) {
        static const uint8_t zero[16];

        if (memcmp(uuid, zero, sizeof zero) == 0)
                return; /* no cluster: a tray whose NVLink ends at its own switches */
        (void) snprintf(ret, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                        uuid[0], uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8],
                        uuid[9], uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
}

NvmlReturn fabric_read(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        FabricInfo info = { .state = UNTOUCHED };
        NvmlReturn result;

        result = info_get(nvml, device, &info);
        if (result != NVML_OK || info.state == UNTOUCHED)
                return result;

        sample->fabric_state = info.state;
        if (info.health_mask == UINT32_MAX)
                info.health_mask = 0; /* untouched */
        sample->fabric_health = info.health_summary < _FABRIC_HEALTH_MAX
                        ? info.health_summary
                        : (uint32_t) fabric_health_from_mask(info.health_mask);
        if (info.state != FABRIC_COMPLETED)
                return result;

        sample->fabric_status = (uint32_t) info.status;
        nvml_error_format(nvml, info.status, sample->fabric_status_text, sizeof sample->fabric_status_text);
        if (info.status == NVML_OK) {
                sample->clique_id = info.clique_id;
                cluster_format(info.cluster_uuid, sample->cluster_uuid, sizeof sample->cluster_uuid);
        }
        return result;
}
