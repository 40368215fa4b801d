/* SPDX-License-Identifier: MIT */
/* Reading one GPU by NVML into a sample. Every output is pre-filled with what the driver would not say,
 * since some answer success and write nothing; a value that stays so is unknown. */
#pragma once

#include "agent/base/sample.h"
#include "agent/driver/nvml.h"

/* Notes what a call's result says about the GPU as a whole. true: it is lost, ask no more. */
bool device_note(const Nvml *nvml, NvmlReturn result, GpuSample *sample);

/* UUID, PCI bus id, index, minor, name, serial. 0 · -ENODATA: no UUID, and the sample's error says why; the
 * bus id may be there. */
int device_read_identity(const Nvml *nvml, NvmlDevice device, GpuSample *sample);

/* All the rest. */
void device_read_state(const Nvml *nvml, NvmlDevice device, GpuSample *sample);

/* The recovery action. RECOVERY_UNKNOWN where the driver has none. */
NvmlReturn device_read_recovery(const Nvml *nvml, NvmlDevice device, int32_t *ret_action);

/* Number of a field, by the type that the driver says it has. 0 · -ENODATA. */
int device_field_number(const NvmlFieldValue *field, uint64_t *ret);

/* State, clique, cluster and health of the fabric (fabric.c). */
NvmlReturn fabric_read(const Nvml *nvml, NvmlDevice device, GpuSample *sample);

/* The health that a mask stands for, by the rule of the driver's kernel module (595). */
FabricHealth fabric_health_from_mask(uint32_t mask);

/* Links and byte counts (nvlink.c). */
NvmlReturn nvlink_read(const Nvml *nvml, NvmlDevice device, GpuSample *sample);
