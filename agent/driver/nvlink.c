/* SPDX-License-Identifier: MIT */
#include "agent/driver/device.h"

_Static_assert(GPU_LINKS_MAX >= NVML_LINKS_MAX, "room for every link");

#define ALL_LINKS UINT32_MAX
#define KIB       1024U

static void field_init(NvmlFieldValue *field, uint32_t id, uint32_t scope) {
        *field = (NvmlFieldValue){
                .field_id = id,
                .scope_id = scope,
                .value_type = UINT32_MAX,
                .result = NVML_UNKNOWN,
        };
}

/* NVLink 5 counts bytes, link by link. */
static NvmlReturn read_link_bytes(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        NvmlFieldValue fields[2 * GPU_LINKS_MAX];
        uint64_t tx = 0, rx = 0, value;
        NvmlReturn result;
        bool any = false;

        for (uint32_t i = 0; i < sample->n_links; i++) {
                field_init(&fields[2 * i], NVML_FIELD_NVLINK_XMIT_BYTES, sample->links[i].link);
                field_init(&fields[2 * i + 1], NVML_FIELD_NVLINK_RCV_BYTES, sample->links[i].link);
        }
        result = nvml->nvmlDeviceGetFieldValues(device, (int) (2 * sample->n_links), fields);
        if (result != NVML_OK)
                return result;

        for (uint32_t i = 0; i < sample->n_links; i++) {
                if (device_field_number(&fields[2 * i], &value) >= 0)
                        tx += value, any = true;
                if (device_field_number(&fields[2 * i + 1], &value) >= 0)
                        rx += value;
        }
        if (any) {
                sample->nvlink_tx_bytes = tx;
                sample->nvlink_rx_bytes = rx;
        }
        return result;
}

static NvmlReturn read_bytes(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        NvmlFieldValue fields[2];
        NvmlReturn result;
        uint64_t tx, rx;

        field_init(&fields[0], NVML_FIELD_NVLINK_DATA_TX, ALL_LINKS);
        field_init(&fields[1], NVML_FIELD_NVLINK_DATA_RX, ALL_LINKS);
        result = nvml->nvmlDeviceGetFieldValues(device, 2, fields);
        if (result == NVML_GPU_IS_LOST)
                return result;
        if (result != NVML_OK || device_field_number(&fields[0], &tx) < 0 ||
                        device_field_number(&fields[1], &rx) < 0)
                return read_link_bytes(nvml, device, sample);

        sample->nvlink_tx_bytes = tx * KIB;
        sample->nvlink_rx_bytes = rx * KIB;
        return result;
}

NvmlReturn nvlink_read(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        for (uint32_t i = 0; i < GPU_LINKS_MAX; i++) {
                GpuLink *link = &sample->links[sample->n_links];
                NvmlPciInfo pci = {};
                NvmlReturn result;
                int active = -1;

                result = nvml->nvmlDeviceGetNvLinkState(device, i, &active);
                if (result == NVML_GPU_IS_LOST)
                        return result;
                if (result == NVML_INVALID_ARGUMENT || result == NVML_NOT_SUPPORTED ||
                                result == NVML_FUNCTION_NOT_FOUND || (result == NVML_OK && active == -1))
                        break; /* there are no more, or the driver does not say */

                *link = (GpuLink){ .link = i, .active = result == NVML_OK && active == 1 };
                sample->n_links++;
                if (!link->active)
                        continue;
                sample->n_links_active++;
                if (nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2 &&
                                nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2(device, i, &pci) == NVML_OK) {
                        pci.bus_id[sizeof pci.bus_id - 1] = '\0';
                        (void) bus_id_parse(pci.bus_id, link->remote); /* a switch may have none */
                }
        }

        return sample->n_links > 0 ? read_bytes(nvml, device, sample) : NVML_OK;
}
