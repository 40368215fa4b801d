/* SPDX-License-Identifier: MIT */
#include "agent/driver/device.h"

#include <errno.h>
#include <string.h>

#include "agent/base/text.h"

/* More than usual: one call is enough then. */
#define PROCESS_LIST_LENGTH 16

bool device_note(const Nvml *nvml, NvmlReturn result, GpuSample *sample) {
        if (result == NVML_RESET_REQUIRED)
                sample->reset_required = true;
        if (result != NVML_GPU_IS_LOST)
                return false;

        sample->lost = true;
        nvml_error_format(nvml, result, sample->error, sizeof sample->error);
        return true;
}

int device_read_identity(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        char text[NVML_UUID_SIZE + 1] = "";
        NvmlPciInfo pci = {};
        unsigned number;
        NvmlReturn result;

        if (nvml->nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_OK) {
                pci.bus_id[sizeof pci.bus_id - 1] = '\0';
                (void) bus_id_parse(pci.bus_id, sample->bus_id); /* else it stays unknown */
        }

        result = nvml->nvmlDeviceGetUUID(device, text, NVML_UUID_SIZE);
        if (result != NVML_OK || gpu_uuid_parse(text, sample->uuid) < 0) {
                (void) device_note(nvml, result, sample);
                if (result == NVML_OK)
                        strcpy(sample->error, "the driver gives it no UUID");
                else
                        nvml_error_format(nvml, result, sample->error, sizeof sample->error);
                return -ENODATA;
        }

        number = UNKNOWN_U32;
        if (nvml->nvmlDeviceGetIndex(device, &number) == NVML_OK)
                sample->index = number;
        number = UNKNOWN_U32;
        if (nvml->nvmlDeviceGetMinorNumber(device, &number) == NVML_OK)
                sample->minor = number;

        memset(text, 0, sizeof text);
        if (nvml->nvmlDeviceGetName(device, text, NVML_NAME_SIZE) == NVML_OK)
                text_escape(text, sample->name, sizeof sample->name);
        memset(text, 0, sizeof text);
        if (nvml->nvmlDeviceGetSerial(device, text, NVML_SERIAL_SIZE) == NVML_OK)
                text_escape(text, sample->serial, sizeof sample->serial);
        return 0;
}

int device_field_number(const NvmlFieldValue *field, uint64_t *ret) {
        if (field->result != NVML_OK)
                return -ENODATA;

        switch (field->value_type) {
        case NVML_VALUE_UINT: *ret = field->value.ui; return 0;
        case NVML_VALUE_ULONG:
        case NVML_VALUE_ULONG_LONG: *ret = field->value.ull; return 0;
        case NVML_VALUE_SIGNED_INT:
                if (field->value.si < 0)
                        return -ENODATA;
                *ret = (uint64_t) field->value.si;
                return 0;
        case NVML_VALUE_SIGNED_LONG_LONG:
                if (field->value.sll < 0)
                        return -ENODATA;
                *ret = (uint64_t) field->value.sll;
                return 0;
        case NVML_VALUE_USHORT: *ret = field->value.us; return 0;
        default: /* the driver's number, not ours */ return -ENODATA;
        }
}

NvmlReturn device_read_recovery(const Nvml *nvml, NvmlDevice device, int32_t *ret_action) {
        NvmlFieldValue field = {
                .field_id = NVML_FIELD_RECOVERY_ACTION,
                .value_type = UINT32_MAX,
                .result = NVML_UNKNOWN,
        };
        NvmlReturn result;
        uint64_t value;

        *ret_action = RECOVERY_UNKNOWN;
        result = nvml->nvmlDeviceGetFieldValues(device, 1, &field);
        if (result != NVML_OK)
                return result;
        if (device_field_number(&field, &value) >= 0 && value <= INT32_MAX)
                *ret_action = (int32_t) value;
        return field.result;
}

static NvmlReturn read_memory(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        NvmlMemory memory;
        NvmlReturn result = NVML_FUNCTION_NOT_FOUND;

        if (nvml->nvmlDeviceGetMemoryInfo_v2) {
                NvmlMemoryV2 memory_v2;

                memset(&memory_v2, 0xff, sizeof memory_v2);
                memory_v2.version = NVML_MEMORY_V2_VERSION;
                result = nvml->nvmlDeviceGetMemoryInfo_v2(device, &memory_v2);
                if (result == NVML_OK) {
                        sample->memory_total = memory_v2.total;
                        sample->memory_used = memory_v2.used;
                        return result;
                }
        }
        if (result == NVML_GPU_IS_LOST)
                return result;

        memset(&memory, 0xff, sizeof memory);
        result = nvml->nvmlDeviceGetMemoryInfo(device, &memory);
        if (result == NVML_OK) {
                sample->memory_total = memory.total;
                sample->memory_used = memory.used;
        }
        return result;
}

static NvmlReturn read_temperature(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        NvmlReturn result = NVML_FUNCTION_NOT_FOUND;
        unsigned celsius = UNKNOWN_U32;

        if (nvml->nvmlDeviceGetTemperatureV) {
                NvmlTemperature temperature = {
                        .version = NVML_TEMPERATURE_V1_VERSION,
                        .temperature = UNKNOWN_I32,
                };

                result = nvml->nvmlDeviceGetTemperatureV(device, &temperature);
                if (result == NVML_OK)
                        sample->temperature = temperature.temperature;
        }
        if (result == NVML_OK || result == NVML_GPU_IS_LOST || !nvml->nvmlDeviceGetTemperature)
                return result;

        result = nvml->nvmlDeviceGetTemperature(device, 0, &celsius);
        if (result == NVML_OK && celsius <= INT32_MAX)
                sample->temperature = (int32_t) celsius;
        return result;
}

static NvmlReturn read_load(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        NvmlUtilization utilization = { .gpu = UNKNOWN_U32 };
        unsigned milliwatts = UNKNOWN_U32;
        NvmlReturn result;

        result = nvml->nvmlDeviceGetUtilizationRates(device, &utilization);
        if (result == NVML_OK)
                sample->utilization = utilization.gpu;
        if (result == NVML_GPU_IS_LOST)
                return result;

        result = nvml->nvmlDeviceGetPowerUsage(device, &milliwatts);
        if (result == NVML_OK)
                sample->power_mw = milliwatts;
        return result;
}

static NvmlReturn read_modes(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        unsigned current = UNKNOWN_U32, pending = UNKNOWN_U32;
        NvmlReturn result;
        int mode = -1;

        result = nvml->nvmlDeviceGetPersistenceMode(device, &mode);
        if (result == NVML_OK)
                sample->persistence = mode == 1;
        if (result == NVML_GPU_IS_LOST || !nvml->nvmlDeviceGetMigMode)
                return result;

        result = nvml->nvmlDeviceGetMigMode(device, &current, &pending);
        if (result == NVML_OK)
                sample->mig = current == 1;
        return result;
}

/* How many processes a list has. UNKNOWN_U32 where the driver does not tell. */
static NvmlReturn list_length(NvmlReturn (*list)(NvmlDevice, unsigned *, NvmlProcessInfo *),
                NvmlDevice device, uint32_t *ret) {
        NvmlProcessInfo infos[2 * PROCESS_LIST_LENGTH]; /* twice: see NvmlProcessInfo about slack */
        unsigned n = PROCESS_LIST_LENGTH;
        NvmlReturn result;

        *ret = UNKNOWN_U32;
        memset(infos, 0xff, sizeof infos);
        result = list(device, &n, infos);
        if (result == NVML_INSUFFICIENT_SIZE ||
                        (result == NVML_OK && (n == 0 || infos[0].pid != UINT32_MAX)))
                *ret = n;
        return result;
}

/* Only their number; the two lists may name the same process. */
static NvmlReturn read_process_count(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        NvmlReturn (*const lists[])(NvmlDevice, unsigned *, NvmlProcessInfo *) = {
                nvml->nvmlDeviceGetComputeRunningProcesses_v3,
                nvml->nvmlDeviceGetGraphicsRunningProcesses_v3,
        };
        NvmlReturn result = NVML_OK;

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                uint32_t n = UNKNOWN_U32;

                if (!lists[i])
                        continue;
                result = list_length(lists[i], device, &n);
                if (result == NVML_GPU_IS_LOST)
                        return result;
                if (n != UNKNOWN_U32)
                        sample->n_processes =
                                        (sample->n_processes == UNKNOWN_U32 ? 0 : sample->n_processes) + n;
        }
        return result;
}

static NvmlReturn read_recovery(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        return device_read_recovery(nvml, device, &sample->recovery_action);
}

void device_read_state(const Nvml *nvml, NvmlDevice device, GpuSample *sample) {
        static NvmlReturn (*const parts[])(const Nvml *, NvmlDevice, GpuSample *) = {
                read_recovery,
                fabric_read,
                read_process_count,
                read_modes,
                nvlink_read,
                read_memory,
                read_load,
                read_temperature,
        };

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (device_note(nvml, parts[i](nvml, device, sample), sample))
                        return;
}
