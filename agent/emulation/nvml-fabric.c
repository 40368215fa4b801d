/* SPDX-License-Identifier: MIT */
/* The NVLink fabric: clique and cluster, links, the place in the rack. */
#include <stdio.h>
#include <string.h>

#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-session.h"
#include "agent/emulation/nvml-values.h"

/* Everything the three versions of the struct have. */
static NvmlReturn fabric_read(const View *view, NvmlFabricInfoV3 *ret) {
        *ret = (NvmlFabricInfoV3){ .state = (uint8_t) tray_gpu_fabric_state(
                                                   &view->header, &view->gpu, view->now) };
        if (ret->state == NVML_FABRIC_NOT_SUPPORTED)
                return NVML_NOT_SUPPORTED;

        /* Cluster and clique are there when the probe is done; before, a reader finds zeros. */
        if (ret->state == NVML_FABRIC_COMPLETED) {
                memcpy(ret->cluster_uuid, view->header.cluster_uuid, sizeof ret->cluster_uuid);
                ret->clique_id = view->gpu.clique;
                ret->health_mask = tray_gpu_fabric_health(&view->header, &view->gpu);
        }
        ret->health_summary = (uint8_t) fabric_health_summary(ret->health_mask);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetGpuFabricInfo(NvmlDevice device, NvmlFabricInfo *info) {
        NvmlFabricInfoV3 fabric;
        NvmlReturn r;
        View view;

        r = view_open(device, info != NULL, &view);
        if (r != VIEW_READY)
                return r;
        r = fabric_read(&view, &fabric);
        if (r != NVML_OK)
                return r;

        *info = (NvmlFabricInfo){
                .status = fabric.status, .clique_id = fabric.clique_id, .state = fabric.state
        };
        memcpy(info->cluster_uuid, fabric.cluster_uuid, sizeof info->cluster_uuid);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetGpuFabricInfoV(NvmlDevice device, void *info) {
        NvmlFabricInfoV3 fabric;
        uint32_t version;
        NvmlReturn r;
        View view;

        r = view_open(device, info != NULL, &view);
        if (r != VIEW_READY)
                return r;
        memcpy(&version, info, sizeof version);
        if (version != NVML_FABRIC_INFO_V2_VERSION && version != NVML_FABRIC_INFO_V3_VERSION)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        r = fabric_read(&view, &fabric);
        if (r != NVML_OK)
                return r;

        /* Version 2 is the beginning of version 3. */
        fabric.version = version;
        memcpy(info, &fabric,
                        version == NVML_FABRIC_INFO_V3_VERSION ? sizeof fabric : sizeof(NvmlFabricInfoV2));
        return NVML_OK;
}

static NvmlReturn view_open_link(NvmlDevice device, unsigned link, bool complete, View *ret) {
        NvmlReturn r;

        r = view_open(device, complete, ret);
        if (r != VIEW_READY)
                return r;
        if (ret->header.model.n_links == 0)
                return NVML_NOT_SUPPORTED;
        return link < ret->header.model.n_links ? VIEW_READY : NVML_INVALID_ARGUMENT;
}

static bool link_is_active(const View *view, unsigned link) {
        return view->gpu.links_up >> link & 1;
}

EXPORT NvmlReturn nvmlDeviceGetNvLinkState(NvmlDevice device, unsigned link, int *active) {
        NvmlReturn r;
        View view;

        r = view_open_link(device, link, active != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *active = link_is_active(&view, link);
        return NVML_OK;
}

/* All links lead to switches, each to one of its own. Those of a rack are on no PCI bus of the tray; a
 * domain that no tray has stands for them. */
EXPORT NvmlReturn nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned link, NvmlPciInfo *pci) {
        const GpuModel none = {};
        char bus_id[GPU_BUS_ID_SIZE];
        NvmlReturn r;
        View view;

        r = view_open_link(device, link, pci != NULL, &view);
        if (r != VIEW_READY)
                return r;
        if (!link_is_active(&view, link))
                return NVML_NOT_SUPPORTED;
        (void) snprintf(bus_id, sizeof bus_id, "0000FFFF:%02X:00.0", (link + 1) & 0xff);
        pci_info_fill(bus_id, &none, pci);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice device, unsigned link, int *type) {
        NvmlReturn r;
        View view;

        r = view_open_link(device, link, type != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *type = link_is_active(&view, link) ? NVML_LINK_REMOTE_SWITCH : NVML_LINK_REMOTE_UNKNOWN;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetNvLinkVersion(NvmlDevice device, unsigned link, unsigned *version) {
        NvmlReturn r;
        View view;

        r = view_open_link(device, link, version != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *version = view.header.model.link_version;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetNvLinkCapability(
                NvmlDevice device, unsigned link, int capability, unsigned *value) {
        /* P2P, its atomics, and that the link is there; system memory goes over another link. */
        static const unsigned values[] = { 1, 0, 1, 0, 0, 1 };
        NvmlReturn r;
        View view;

        r = view_open_link(device, link, value && capability >= 0 && capability < (int) ELEMENTSOF(values),
                        &view);
        if (r != VIEW_READY)
                return r;
        *value = values[capability];
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetNvLinkErrorCounter(
                NvmlDevice device, unsigned link, int counter, unsigned long long *value) {
        NvmlReturn r;
        View view;

        r = view_open_link(device, link, value && counter >= 0 && counter < 5, &view);
        if (r != VIEW_READY)
                return r;
        *value = 0;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetPlatformInfo(NvmlDevice device, NvmlPlatformInfo *info) {
        NvmlReturn r;
        View view;

        r = view_open(device, info != NULL, &view);
        if (r != VIEW_READY)
                return r;
        if (info->version != NVML_PLATFORM_INFO_V2_VERSION)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        if (!view.header.model.cluster)
                return NVML_NOT_SUPPORTED;

        *info = (NvmlPlatformInfo){
                .version = NVML_PLATFORM_INFO_V2_VERSION,
                .slot_number = view.header.slot_number,
                .tray_index = view.header.tray_index,
                .host_id = 1,
                .peer_type = 1,
                .module_id = (uint8_t) view.gpu.module_id,
        };
        for (unsigned i = 0; i < 8; i++)
                info->ib_guid[i] = (uint8_t) (view.gpu.fabric_guid >> (56 - 8 * i));
        memcpy(info->chassis_serial, view.header.chassis_serial, sizeof info->chassis_serial);
        return NVML_OK;
}

static uint64_t link_bytes(const View *view, const Telemetry *telemetry, uint32_t scope) {
        uint64_t active = 0;

        if (scope == UINT32_MAX)
                return telemetry->link_bytes;
        for (unsigned i = 0; i < view->header.model.n_links; i++)
                active += link_is_active(view, i);
        return active > 0 && link_is_active(view, scope) ? telemetry->link_bytes / active : 0;
}

static NvmlReturn set_uint(NvmlFieldValue *field, uint64_t value) {
        field->value_type = NVML_VALUE_UINT;
        field->value.ull = 0;
        field->value.ui = (uint32_t) value;
        return NVML_OK;
}

static NvmlReturn set_ull(NvmlFieldValue *field, uint64_t value) {
        field->value_type = NVML_VALUE_ULONG_LONG;
        field->value.ull = value;
        return NVML_OK;
}

static NvmlReturn read_link_field(const View *view, const Telemetry *telemetry, NvmlFieldValue *field) {
        const GpuModel *model = &view->header.model;
        bool sum = field->scope_id == UINT32_MAX && field->field_id != NVML_FIELD_NVLINK_STATE &&
                        field->field_id != NVML_FIELD_NVLINK_SPEED;

        if (model->n_links == 0)
                return NVML_NOT_SUPPORTED;
        if (!sum && field->scope_id >= model->n_links)
                return NVML_INVALID_ARGUMENT;

        switch (field->field_id) {
        case NVML_FIELD_NVLINK_STATE: return set_uint(field, link_is_active(view, field->scope_id));
        case NVML_FIELD_NVLINK_SPEED:
                return set_uint(field, link_is_active(view, field->scope_id) ? model->link_mbps : 0);
        case NVML_FIELD_NVLINK_XMIT_BYTES:
        case NVML_FIELD_NVLINK_RCV_BYTES:
                return model->link_version < 5
                                ? NVML_NOT_SUPPORTED
                                : set_ull(field, link_bytes(view, telemetry, field->scope_id));
        default: return set_ull(field, link_bytes(view, telemetry, field->scope_id) / 1024);
        }
}

static NvmlReturn read_field(const View *view, const Telemetry *telemetry, NvmlFieldValue *field) {
        if (view->gpu.field_error != NVML_OK && view->gpu.field_error_id == field->field_id)
                return view->gpu.field_error;

        switch (field->field_id) {
        case NVML_FIELD_RECOVERY_ACTION: return set_uint(field, view->recovery_action);
        case NVML_FIELD_NVLINK_LINK_COUNT: return set_uint(field, view->header.model.n_links);
        case NVML_FIELD_NVLINK_SPEED_COMMON: return set_uint(field, view->header.model.link_mbps);
        case NVML_FIELD_MEMORY_TEMPERATURE: return set_uint(field, (uint32_t) telemetry->celsius);
        case NVML_FIELD_POWER_AVERAGE:
        case NVML_FIELD_POWER_INSTANT: return set_uint(field, telemetry->power_mw);
        case NVML_FIELD_REMAPPED_CORRECTABLE:
        case NVML_FIELD_REMAPPED_UNCORRECTABLE:
        case NVML_FIELD_REMAPPED_FAILURE: return set_uint(field, 0);
        case NVML_FIELD_REMAPPED_PENDING: return set_uint(field, view->gpu.row_remap_pending);
        case NVML_FIELD_NVLINK_STATE:
        case NVML_FIELD_NVLINK_SPEED:
        case NVML_FIELD_NVLINK_DATA_TX:
        case NVML_FIELD_NVLINK_DATA_RX:
        case NVML_FIELD_NVLINK_RAW_TX:
        case NVML_FIELD_NVLINK_RAW_RX:
        case NVML_FIELD_NVLINK_XMIT_BYTES:
        case NVML_FIELD_NVLINK_RCV_BYTES: return read_link_field(view, telemetry, field);
        default: return NVML_NOT_SUPPORTED;
        }
}

EXPORT NvmlReturn nvmlDeviceGetFieldValues(NvmlDevice device, int n_values, NvmlFieldValue *values) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, values && n_values > 0, &view, &telemetry);
        if (r != VIEW_READY)
                return r;

        for (int i = 0; i < n_values; i++) {
                values[i].timestamp_usec = (int64_t) now_realtime_usec();
                values[i].latency_usec = 0;
                values[i].result = read_field(&view, &telemetry, &values[i]);
        }
        return NVML_OK;
}
