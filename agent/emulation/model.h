/* SPDX-License-Identifier: MIT */
/* What GPUs of one kind have in common, and the kinds that the emulation knows. The figures are what
 * nvidia-smi shows on a GB200 and a GB300 tray (driver 580.173) and on HGX H100 (580.105); those of B200 are
 * not from a machine. */
#pragma once

#include <stdint.h>

typedef struct GpuModel {
        char preset[16];
        char name[96];
        char architecture[24];
        uint32_t architecture_number; /* nvmlDeviceArchitecture_t */
        uint32_t compute_major;
        uint32_t compute_minor;
        uint64_t memory_total; /* bytes, as are the next two */
        uint64_t memory_reserved;
        uint64_t bar1_total;
        uint32_t pci_device_id; /* device << 16 | vendor */
        uint32_t pci_subsystem_id;
        uint32_t pcie_gen_max;
        uint32_t pcie_gen_device_max;
        uint32_t n_links;
        uint32_t link_mbps; /* MB/s each way of one link, times 1.0 */
        uint32_t link_version;
        uint32_t power_limit_mw;
        uint32_t power_min_mw;
        uint32_t idle_power_mw;
        uint32_t busy_power_mw;
        uint32_t module_power_limit_mw; /* 0: the module has no reading of its own */
        int32_t idle_celsius;
        int32_t busy_celsius;
        uint32_t graphics_clock_max;
        uint32_t graphics_clock_idle;
        uint32_t memory_clock;
        uint32_t video_clock_max;
        uint32_t video_clock_idle;
        uint32_t n_cores;
        uint32_t memory_bus_bits;
        uint32_t n_multiprocessors;
        uint32_t remap_banks;
        uint8_t c2c;            /* a coherent link to the CPU */
        uint8_t cluster;        /* GPUs of several trays share an NVLink domain */
        uint8_t config_health;  /* the fabric health says whether the configuration is right */
        uint8_t shared_serials; /* two GPUs on one board */
        char vbios[24];
        char board_part[24];
        char gpu_part[24];
        char image[24];
} GpuModel;

/* A built-in model and where its GPUs sit on the PCI buses of a tray. */
typedef struct GpuPreset {
        GpuModel model;
        uint32_t n_gpus;        /* of a usual machine */
        const char *bus_ids[8]; /* n_gpus of them */
        uint32_t module_ids[8];
} GpuPreset;

/* NULL if there is no such preset. */
const GpuPreset* gpu_preset_find(const char *name);
