/* SPDX-License-Identifier: MIT */
/* Identity, memory, load, power and temperature: what the agent reads of a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-session.h"
#include "agent/emulation/nvml-values.h"

static NvmlReturn identity_number(NvmlDevice device, size_t offset, unsigned *ret) {
        NvmlReturn r;
        View view;

        r = view_open_identity(device, ret != NULL, &view);
        if (r != VIEW_READY)
                return r;
        memcpy(ret, (const char *) &view.gpu + offset, sizeof *ret);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetIndex(NvmlDevice device, unsigned *index) {
        return identity_number(device, offsetof(TrayGpu, index), index);
}

EXPORT NvmlReturn nvmlDeviceGetMinorNumber(NvmlDevice device, unsigned *minor) {
        return identity_number(device, offsetof(TrayGpu, minor), minor);
}

EXPORT NvmlReturn nvmlDeviceGetModuleId(NvmlDevice device, unsigned *id) {
        return identity_number(device, offsetof(TrayGpu, module_id), id);
}

EXPORT NvmlReturn nvmlDeviceGetName(NvmlDevice device, char *name, unsigned length) {
        NvmlReturn r;
        View view;

        r = view_open_identity(device, name != NULL, &view);
        return r == VIEW_READY ? copy_text(view.header.model.name, name, length) : r;
}

EXPORT NvmlReturn nvmlDeviceGetUUID(NvmlDevice device, char *uuid, unsigned length) {
        NvmlReturn r;
        View view;

        r = view_open_identity(device, uuid != NULL, &view);
        return r == VIEW_READY ? copy_text(view.gpu.uuid, uuid, length) : r;
}

EXPORT NvmlReturn nvmlDeviceGetSerial(NvmlDevice device, char *serial, unsigned length) {
        NvmlReturn r;
        View view;

        r = view_open_identity(device, serial != NULL, &view);
        return r == VIEW_READY ? copy_text(view.gpu.serial, serial, length) : r;
}

void pci_info_fill(const char *bus_id, const GpuModel *model, NvmlPciInfo *ret) {
        NvmlPciInfo pci = { .pci_device_id = model->pci_device_id,
                .pci_subsystem_id = model->pci_subsystem_id };
        char *rest;

        pci.domain = (uint32_t) strtoul(bus_id, &rest, 16);
        pci.bus = (uint32_t) strtoul(rest + 1, &rest, 16);
        pci.device = (uint32_t) strtoul(rest + 1, NULL, 16);
        (void) snprintf(pci.bus_id, sizeof pci.bus_id, "%s", bus_id);
        (void) snprintf(pci.bus_id_legacy, sizeof pci.bus_id_legacy, "%04X:%02X:%02X.0", pci.domain & 0xffff,
                        pci.bus & 0xff, pci.device & 0x1f);
        *ret = pci;
}

EXPORT NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo *pci) {
        NvmlReturn r;
        View view;

        r = view_open_identity(device, pci != NULL, &view);
        if (r != VIEW_READY)
                return r;
        pci_info_fill(view.gpu.bus_id, &view.header.model, pci);
        return NVML_OK;
}

/* What the GPU of an opened view measures. NVML_OK · NVML_NO_MEMORY. */
static NvmlReturn view_telemetry(const View *view, Telemetry *ret) {
        CLEANUP(clients_done) Clients clients = {};

        if (clients_read(&view->header, view->now, &clients) < 0)
                return NVML_NO_MEMORY;
        telemetry_read(&view->header, &view->gpu, &clients, view->now, ret);
        return NVML_OK;
}

NvmlReturn view_open_telemetry(NvmlDevice device, bool complete, View *ret_view, Telemetry *ret) {
        NvmlReturn r;

        r = view_open(device, complete, ret_view);
        if (r != VIEW_READY)
                return r;
        r = view_telemetry(ret_view, ret);
        return r == NVML_OK ? VIEW_READY : r;
}

EXPORT NvmlReturn nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory *memory) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, memory != NULL, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        *memory = (NvmlMemory){
                .total = view.header.model.memory_total,
                .used = view.header.model.memory_reserved + telemetry.used_bytes,
                .free = view.header.model.memory_total - view.header.model.memory_reserved -
                                telemetry.used_bytes,
        };
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2 *memory) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, memory != NULL, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        if (memory->version != NVML_MEMORY_V2_VERSION)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        memory->total = view.header.model.memory_total;
        memory->reserved = view.header.model.memory_reserved;
        memory->used = telemetry.used_bytes;
        memory->free = memory->total - memory->reserved - memory->used;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetUtilizationRates(NvmlDevice device, NvmlUtilization *utilization) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, utilization != NULL, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        *utilization = (NvmlUtilization){ .gpu = telemetry.load, .memory = telemetry.memory_load };
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned *milliwatts) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, milliwatts != NULL, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        *milliwatts = telemetry.power_mw;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetTemperature(NvmlDevice device, int sensor, unsigned *celsius) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, celsius && sensor == 0, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        *celsius = (unsigned) telemetry.celsius;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetTemperatureV(NvmlDevice device, NvmlTemperature *temperature) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, temperature != NULL, &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        if (temperature->version != NVML_TEMPERATURE_V1_VERSION)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        if (temperature->sensor != 0)
                return NVML_INVALID_ARGUMENT;
        temperature->temperature = telemetry.celsius;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetPersistenceMode(NvmlDevice device, int *mode) {
        NvmlReturn r;
        View view;

        r = view_open(device, mode != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *mode = view.gpu.persistence;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceSetPersistenceMode(NvmlDevice device, int mode) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        NvmlReturn r;
        View view;

        r = view_open(device, mode == 0 || mode == 1, &view);
        if (r != VIEW_READY)
                return r;
        if (geteuid() != 0)
                return NVML_NO_PERMISSION;
        if (tray_edit(&tray) < 0 || view.gpu.index >= tray.header->n_gpus)
                return NVML_UNKNOWN;
        tray.gpus[view.gpu.index].persistence = (uint8_t) mode;
        return tray_commit(&tray) < 0 ? NVML_UNKNOWN : NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetMigMode(NvmlDevice device, unsigned *current, unsigned *pending) {
        NvmlReturn r;
        View view;

        r = view_open(device, current && pending, &view);
        if (r != VIEW_READY)
                return r;
        *current = view.gpu.mig;
        *pending = view.gpu.mig_pending;
        return NVML_OK;
}
