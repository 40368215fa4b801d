/* SPDX-License-Identifier: MIT */
/* Shared by the files that implement NVML's calls. */
#pragma once

#include "agent/emulation/nvml-session.h"
#include "agent/emulation/telemetry.h"

/* view_open() with what the GPU measures. VIEW_READY · another: the answer. */
NvmlReturn view_open_telemetry(NvmlDevice device, bool complete, View *ret_view, Telemetry *ret);

/* `bus_id` in NVIDIA's spelling. */
void pci_info_fill(const char *bus_id, const GpuModel *model, NvmlPciInfo *ret);
