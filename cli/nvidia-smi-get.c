/* SPDX-License-Identifier: MIT */
#include "cli/nvidia-smi-get.h"

#define MIB (UINT64_C(1) << 20)

static void set_text(char *ret, size_t size, const char *text) {
        (void) snprintf(ret, size, "%s", text);
}

static void set_number(char *ret, size_t size, uint64_t number) {
        (void) snprintf(ret, size, "%llu", (unsigned long long) number);
}

static void set_hex(char *ret, size_t size, int digits, uint64_t number) {
        (void) snprintf(ret, size, "0x%0*llX", digits, (unsigned long long) number);
}

static void set_switch(char *ret, size_t size, bool on) {
        set_text(ret, size, on ? "Enabled" : "Disabled");
}

/* Watts with two digits; 0 stands for what the GPU cannot read. */
static void set_watts(char *ret, size_t size, uint32_t milliwatts) {
        if (milliwatts == 0)
                set_text(ret, size, SMI_NA);
        else
                (void) snprintf(ret, size, "%u.%02u", milliwatts / 1000, milliwatts % 1000 / 10);
}

void get_tray(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        if (what == TRAY_TIMESTAMP)
                set_text(ret, size, gpu->smi->timestamp);
        else if (what == TRAY_DRIVER_VERSION)
                set_text(ret, size, gpu->header->driver_version);
        else
                set_number(ret, size, gpu->header->n_gpus);
}

void get_identity(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        switch (what) {
        case IDENTITY_NAME: set_text(ret, size, gpu->header->model.name); return;
        case IDENTITY_SERIAL: set_text(ret, size, gpu->gpu.serial); return;
        case IDENTITY_UUID: set_text(ret, size, gpu->gpu.uuid); return;
        case IDENTITY_BUS_ID: set_text(ret, size, gpu->gpu.bus_id); return;
        case IDENTITY_PCI_DOMAIN: set_hex(ret, size, 4, gpu->domain); return;
        case IDENTITY_PCI_BUS: set_hex(ret, size, 2, gpu->bus); return;
        case IDENTITY_PCI_DEVICE: set_hex(ret, size, 2, gpu->device); return;
        case IDENTITY_PCI_DEVICE_ID: set_hex(ret, size, 8, gpu->header->model.pci_device_id); return;
        case IDENTITY_PCI_SUBSYSTEM_ID: set_hex(ret, size, 8, gpu->header->model.pci_subsystem_id); return;
        case IDENTITY_MINOR: set_number(ret, size, gpu->gpu.minor); return;
        case IDENTITY_BOARD_ID:
                (void) snprintf(ret, size, "0x%x", gpu->domain << 16 | gpu->bus << 8 | gpu->device);
                return;
        default: set_number(ret, size, gpu->gpu.index);
        }
}

void get_model(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        const GpuModel *model = &gpu->header->model;

        switch (what) {
        case MODEL_PCIE_GEN: set_number(ret, size, model->pcie_gen_max); return;
        case MODEL_PCIE_GEN_MAX: set_number(ret, size, model->pcie_gen_device_max); return;
        case MODEL_ADDRESSING: set_text(ret, size, model->c2c ? "ATS" : "None"); return;
        case MODEL_VBIOS: set_text(ret, size, model->vbios); return;
        case MODEL_IMAGE: set_text(ret, size, model->image); return;
        case MODEL_COMPUTE_CAP:
                (void) snprintf(ret, size, "%u.%u", model->compute_major, model->compute_minor);
                return;
        case MODEL_REMAP_BANKS: set_number(ret, size, model->remap_banks); return;
        case MODEL_C2C: set_switch(ret, size, model->c2c); return;
        case MODEL_ARCHITECTURE: set_text(ret, size, model->architecture); return;
        case MODEL_BOARD_PART: set_text(ret, size, model->board_part); return;
        case MODEL_GPU_PART: set_text(ret, size, model->gpu_part); return;
        default: set_number(ret, size, model->bar1_total / MIB);
        }
}

/* The vendor's documents have the first five names, by driver 595's the sixth; the reference lab writes
 * NVML's. */
static void set_recovery(const SmiGpu *gpu, char *ret, size_t size) {
        static const char *const texts[] = { "None", "Reset", "Reboot", "Drain P2P", "Drain and Reset",
                "Recover IMEX Domain", "Bus Reset", "System Reboot" };
        static const char *const lab_texts[] = { "None", "GPU_RESET", "NODE_REBOOT", "DRAIN_P2P",
                "DRAIN_AND_RESET" };
        uint32_t action = gpu->recovery_action;

        if (gpu->smi->dialect == DIALECT_AI_LAB && action < ELEMENTSOF(lab_texts))
                set_text(ret, size, lab_texts[action]);
        else if (action < ELEMENTSOF(texts))
                set_text(ret, size, texts[action]);
        else
                set_number(ret, size, action);
}

void get_health(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        switch (what) {
        case HEALTH_RECOVERY: set_recovery(gpu, ret, size); return;
        case HEALTH_ECC_CORRECTED_VOLATILE: set_number(ret, size, gpu->gpu.ecc_corrected); return;
        case HEALTH_ECC_CORRECTED_AGGREGATE: set_number(ret, size, gpu->gpu.ecc_corrected_aggregate); return;
        case HEALTH_ECC_UNCORRECTED_VOLATILE: set_number(ret, size, gpu->gpu.ecc_uncorrected); return;
        case HEALTH_ECC_UNCORRECTED_AGGREGATE:
                set_number(ret, size, gpu->gpu.ecc_uncorrected_aggregate);
                return;
        case HEALTH_REMAP_PENDING: set_text(ret, size, gpu->gpu.row_remap_pending ? "Yes" : "No"); return;
        case HEALTH_MIG: set_switch(ret, size, gpu->gpu.mig); return;
        case HEALTH_MIG_PENDING: set_switch(ret, size, gpu->gpu.mig_pending); return;
        default: set_switch(ret, size, gpu->gpu.persistence);
        }
}

void get_clock(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        const GpuModel *model = &gpu->header->model;
        bool idle = gpu->telemetry.load == 0;

        switch (what) {
        case CLOCK_REASONS: set_hex(ret, size, 16, idle); return;
        case CLOCK_REASON_IDLE: set_text(ret, size, idle ? "Active" : "Not Active"); return;
        case CLOCK_GRAPHICS: set_number(ret, size, gpu->telemetry.graphics_clock); return;
        case CLOCK_MEMORY: set_number(ret, size, model->memory_clock); return;
        case CLOCK_VIDEO: set_number(ret, size, gpu->telemetry.video_clock); return;
        case CLOCK_VIDEO_MAX: set_number(ret, size, model->video_clock_max); return;
        default: set_number(ret, size, model->graphics_clock_max);
        }
}

void get_memory(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        const GpuModel *model = &gpu->header->model;

        switch (what) {
        case MEMORY_TOTAL: set_number(ret, size, model->memory_total / MIB); return;
        case MEMORY_RESERVED: set_number(ret, size, model->memory_reserved / MIB); return;
        case MEMORY_USED: set_number(ret, size, gpu->telemetry.used_bytes / MIB); return;
        default:
                set_number(ret, size,
                                (model->memory_total - model->memory_reserved - gpu->telemetry.used_bytes) /
                                                MIB);
        }
}

void get_power(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        const GpuModel *model = &gpu->header->model;
        const Telemetry *telemetry = &gpu->telemetry;

        switch (what) {
        case POWER_LOAD: set_number(ret, size, telemetry->load); return;
        case POWER_MEMORY_LOAD: set_number(ret, size, telemetry->memory_load); return;
        case POWER_CELSIUS: (void) snprintf(ret, size, "%d", telemetry->celsius); return;
        case POWER_TLIMIT: (void) snprintf(ret, size, "%d", 87 - telemetry->celsius); return;
        case POWER_DRAW: set_watts(ret, size, telemetry->power_mw); return;
        case POWER_LIMIT: set_watts(ret, size, model->power_limit_mw); return;
        case POWER_MIN: set_watts(ret, size, model->power_min_mw); return;
        case POWER_MODULE_DRAW: /* two GPUs and a CPU */
                set_watts(ret, size,
                                model->module_power_limit_mw == 0 ? 0 : 2 * telemetry->power_mw + 130000);
                return;
        case POWER_MODULE_LIMIT: set_watts(ret, size, model->module_power_limit_mw); return;
        case POWER_MODULE_MIN: set_watts(ret, size, model->module_power_limit_mw / 5); return;
        default: /* its memory's share */ set_watts(ret, size, telemetry->power_mw / 5);
        }
}

static void set_health_field(
                char *ret, size_t size, uint32_t mask, unsigned shift, const char *yes, const char *no) {
        uint32_t value = mask >> shift & 3;

        set_text(ret, size,
                        value == NVML_FABRIC_HEALTH_TRUE                    ? yes
                                        : value == NVML_FABRIC_HEALTH_FALSE ? no
                                                                            : SMI_NA);
}

static void set_configuration(char *ret, size_t size, uint32_t mask) {
        static const char *const texts[] = { SMI_NA, "None", "Incorrect SYSGUID", "Incorrect Chassis SN",
                "No Partition", "Insufficient Nvlinks", "Incompatible GPU FW", "Invalid Location",
                "GPU State Invalid" };
        uint32_t value = mask >> NVML_FABRIC_HEALTH_INCORRECT_CONFIG_SHIFT & 15;

        set_text(ret, size, value < ELEMENTSOF(texts) ? texts[value] : SMI_NA);
}

static void set_cluster(char *ret, size_t size, const uint8_t uuid[static 16]) {
        size_t used = 0;

        for (unsigned i = 0; i < 16 && used < size; i++)
                used += (size_t) snprintf(ret + used, size - used, "%02x%s", uuid[i],
                                i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
}

void get_fabric(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        static const char *const states[] = { "Not Supported", "Not Started", "In Progress", "Completed" };
        static const char *const summaries[] = { SMI_NA, "Healthy", "Unhealthy", "Limited Capacity" };
        uint32_t state = tray_gpu_fabric_state(gpu->header, &gpu->gpu, gpu->smi->now);
        uint32_t mask = tray_gpu_fabric_health(gpu->header, &gpu->gpu);

        if (what == FABRIC_VALUE_STATE) {
                set_text(ret, size, state == NVML_FABRIC_NOT_SUPPORTED ? SMI_NA : states[state]);
                return;
        }
        if (state != NVML_FABRIC_COMPLETED) {
                set_text(ret, size, SMI_NA);
                return;
        }

        switch (what) {
        case FABRIC_VALUE_STATUS: set_text(ret, size, "Success"); return;
        case FABRIC_VALUE_CLIQUE: set_number(ret, size, gpu->gpu.clique); return;
        case FABRIC_VALUE_CLUSTER: set_cluster(ret, size, gpu->header->cluster_uuid); return;
        case FABRIC_VALUE_SUMMARY: set_text(ret, size, summaries[fabric_health_summary(mask)]); return;
        case FABRIC_VALUE_BANDWIDTH:
                set_health_field(ret, size, mask, NVML_FABRIC_HEALTH_DEGRADED_BW_SHIFT, "Degraded", "Full");
                return;
        case FABRIC_VALUE_ROUTE_RECOVERY:
                set_health_field(ret, size, mask, NVML_FABRIC_HEALTH_ROUTE_RECOVERY_SHIFT, "True", "False");
                return;
        case FABRIC_VALUE_ROUTE_UNHEALTHY:
                set_health_field(ret, size, mask, NVML_FABRIC_HEALTH_ROUTE_UNHEALTHY_SHIFT, "True", "False");
                return;
        case FABRIC_VALUE_ACCESS_TIMEOUT:
                set_health_field(ret, size, mask, NVML_FABRIC_HEALTH_ACCESS_TIMEOUT_SHIFT, "True", "False");
                return;
        default: set_configuration(ret, size, mask);
        }
}

void get_platform(const SmiGpu *gpu, unsigned what, char *ret, size_t size) {
        const TrayHeader *header = gpu->header;

        /* A machine that is no part of a rack has only numbers of its own. */
        if (!header->model.cluster && what != PLATFORM_MODULE) {
                set_text(ret, size, SMI_NA);
                return;
        }

        switch (what) {
        case PLATFORM_CHASSIS:
                (void) snprintf(ret, size, "%.16s", (const char *) header->chassis_serial);
                return;
        case PLATFORM_SLOT: set_number(ret, size, header->slot_number); return;
        case PLATFORM_TRAY: set_number(ret, size, header->tray_index); return;
        case PLATFORM_HOST: set_text(ret, size, "1"); return;
        case PLATFORM_PEER: set_text(ret, size, "Switch Connected"); return;
        case PLATFORM_MODULE: set_number(ret, size, gpu->gpu.module_id); return;
        default: (void) snprintf(ret, size, "0x%016llx", (unsigned long long) gpu->gpu.fabric_guid);
        }
}
