/* SPDX-License-Identifier: MIT */
#include "agent/emulation/model.h"

#include <stddef.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"

#define MIB (UINT64_C(1) << 20)

static const GpuPreset presets[] = {
        {
                /* Power and temperature as the reference tray shows them idle and under a training job. */
                .model = {
                        .preset = "gb200", .name = "NVIDIA GB200", .architecture = "Blackwell",
                        .architecture_number = 10, .compute_major = 10, .compute_minor = 0,
                        .memory_total = 189471 * MIB, .memory_reserved = 742 * MIB,
                        .bar1_total = 262144 * MIB,
                        .pci_device_id = 0x294110de, .pci_subsystem_id = 0x204610de,
                        .pcie_gen_max = 5, .pcie_gen_device_max = 6,
                        .n_links = 18, .link_mbps = 53125, .link_version = 5,
                        .power_limit_mw = 1200000, .power_min_mw = 200000,
                        .idle_power_mw = 140000, .busy_power_mw = 850000, .module_power_limit_mw = 2500000,
                        .idle_celsius = 32, .busy_celsius = 68,
                        .graphics_clock_max = 2062, .graphics_clock_idle = 120, .memory_clock = 3996,
                        .video_clock_max = 1890, .video_clock_idle = 600,
                        .n_cores = 19456, .memory_bus_bits = 8192, .n_multiprocessors = 152,
                        .remap_banks = 3968,
                        .c2c = 1, .cluster = 1, .shared_serials = 1,
                        .vbios = "97.00.B9.00.69", .board_part = "900-2G548-A801-000",
                        .gpu_part = "2941-892-A1",
                        .image = "G548.0201.00.06",
                },
                .n_gpus = 4,
                .bus_ids = { "00000000:18:00.0", "00000000:2A:00.0", "00000000:3A:00.0",
                "00000000:5D:00.0" },
                .module_ids = { 2, 1, 4, 3 },
        },
        {
                .model = {
                        .preset = "gb300", .name = "NVIDIA GB300", .architecture = "Blackwell",
                        .architecture_number = 10, .compute_major = 10, .compute_minor = 3,
                        .memory_total = 284208 * MIB, .memory_reserved = 947 * MIB,
                        .bar1_total = 524288 * MIB,
                        .pci_device_id = 0x31c210de, .pci_subsystem_id = 0x21f110de,
                        .pcie_gen_max = 6, .pcie_gen_device_max = 6,
                        .n_links = 18, .link_mbps = 53125, .link_version = 5,
                        .power_limit_mw = 1400000, .power_min_mw = 200000,
                        .idle_power_mw = 180000, .busy_power_mw = 1100000, .module_power_limit_mw = 2900000,
                        .idle_celsius = 38, .busy_celsius = 70,
                        .graphics_clock_max = 2070, .graphics_clock_idle = 120, .memory_clock = 3996,
                        .video_clock_max = 1890, .video_clock_idle = 600,
                        .n_cores = 19456, .memory_bus_bits = 8192, .n_multiprocessors = 152,
                        .remap_banks = 5952,
                        .c2c = 1, .cluster = 1, .config_health = 1, .shared_serials = 1,
                        .vbios = "97.10.4A.00.1A", .board_part = "900-2G548-0081-000",
                        .gpu_part = "31C2-893-A1",
                        .image = "G548.0301.00.03",
                },
                .n_gpus = 4,
                .bus_ids = { "00000008:06:00.0", "00000009:06:00.0", "00000018:06:00.0",
                "00000019:06:00.0" },
                .module_ids = { 2, 1, 4, 3 },
        },
        {
                .model = {
                        .preset = "b200", .name = "NVIDIA B200", .architecture = "Blackwell",
                        .architecture_number = 10, .compute_major = 10, .compute_minor = 0,
                        .memory_total = 183359 * MIB, .memory_reserved = 725 * MIB,
                        .bar1_total = 262144 * MIB,
                        .pci_device_id = 0x290110de, .pci_subsystem_id = 0x199910de,
                        .pcie_gen_max = 5, .pcie_gen_device_max = 6,
                        .n_links = 18, .link_mbps = 53125, .link_version = 5,
                        .power_limit_mw = 1000000, .power_min_mw = 200000,
                        .idle_power_mw = 143000, .busy_power_mw = 900000,
                        .idle_celsius = 28, .busy_celsius = 66,
                        .graphics_clock_max = 1965, .graphics_clock_idle = 120, .memory_clock = 3996,
                        .video_clock_max = 1815, .video_clock_idle = 600,
                        .n_cores = 18944, .memory_bus_bits = 8192, .n_multiprocessors = 148,
                        .remap_banks = 3840,
                        .vbios = "97.00.88.00.0F", .board_part = "692-2G525-0220-003",
                        .gpu_part = "2901-886-A1",
                        .image = "G525.0220.00.03",
                },
                .n_gpus = 8,
                .bus_ids = { "00000000:1B:00.0", "00000000:43:00.0", "00000000:52:00.0", "00000000:61:00.0",
                             "00000000:9D:00.0", "00000000:C3:00.0", "00000000:D1:00.0",
                             "00000000:DF:00.0" },
                .module_ids = { 1, 2, 3, 4, 5, 6, 7, 8 },
        },
        {
                .model = {
                        .preset = "h100", .name = "NVIDIA H100 80GB HBM3", .architecture = "Hopper",
                        .architecture_number = 9, .compute_major = 9, .compute_minor = 0,
                        .memory_total = 81559 * MIB, .memory_reserved = 480 * MIB,
                        .bar1_total = 131072 * MIB,
                        .pci_device_id = 0x233010de, .pci_subsystem_id = 0x16c110de,
                        .pcie_gen_max = 5, .pcie_gen_device_max = 5,
                        .n_links = 18, .link_mbps = 26562, .link_version = 4,
                        .power_limit_mw = 700000, .power_min_mw = 200000,
                        .idle_power_mw = 70000, .busy_power_mw = 650000,
                        .idle_celsius = 29, .busy_celsius = 62,
                        .graphics_clock_max = 1980, .graphics_clock_idle = 345, .memory_clock = 2619,
                        .video_clock_max = 1545, .video_clock_idle = 765,
                        .n_cores = 16896, .memory_bus_bits = 5120, .n_multiprocessors = 132,
                        .remap_banks = 2560,
                        .vbios = "96.00.99.00.01", .board_part = "692-2G520-0200-000",
                        .gpu_part = "2330-885-A1",
                        .image = "G520.0200.00.05",
                },
                .n_gpus = 8,
                .bus_ids = { "00000000:53:00.0", "00000000:64:00.0", "00000000:75:00.0", "00000000:86:00.0",
                             "00000000:97:00.0", "00000000:A8:00.0", "00000000:B9:00.0",
                             "00000000:CA:00.0" },
                .module_ids = { 1, 2, 3, 4, 5, 6, 7, 8 },
        },
};

const GpuPreset* gpu_preset_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(presets); i++)
                if (streq(presets[i].model.preset, name))
                        return &presets[i];
        return NULL;
}
