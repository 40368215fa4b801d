/* SPDX-License-Identifier: MIT */
#include "tests/abi/layout.h"

#include "agent/base/cleanup.h"
#include "agent/emulation/nvml-exports.h"

const Layout our_layouts[] = {
        LAYOUT("pci", NvmlPciInfo, 7, AT(NvmlPciInfo, bus_id_legacy), AT(NvmlPciInfo, domain),
                        AT(NvmlPciInfo, bus), AT(NvmlPciInfo, device), AT(NvmlPciInfo, pci_device_id),
                        AT(NvmlPciInfo, pci_subsystem_id), AT(NvmlPciInfo, bus_id)),
        LAYOUT("memory", NvmlMemory, 3, AT(NvmlMemory, total), AT(NvmlMemory, free), AT(NvmlMemory, used)),
        LAYOUT("memory 2", NvmlMemoryV2, 5, AT(NvmlMemoryV2, version), AT(NvmlMemoryV2, total),
                        AT(NvmlMemoryV2, reserved), AT(NvmlMemoryV2, free), AT(NvmlMemoryV2, used)),
        LAYOUT("utilization", NvmlUtilization, 2, AT(NvmlUtilization, gpu), AT(NvmlUtilization, memory)),
        LAYOUT("process", NvmlProcessInfo, 4, AT(NvmlProcessInfo, pid), AT(NvmlProcessInfo, used_bytes),
                        AT(NvmlProcessInfo, gpu_instance), AT(NvmlProcessInfo, compute_instance)),
        LAYOUT("process 1", NvmlProcessInfoV1, 2, AT(NvmlProcessInfoV1, pid),
                        AT(NvmlProcessInfoV1, used_bytes)),
        LAYOUT("fabric", NvmlFabricInfo, 4, AT(NvmlFabricInfo, cluster_uuid), AT(NvmlFabricInfo, status),
                        AT(NvmlFabricInfo, clique_id), AT(NvmlFabricInfo, state)),
        LAYOUT("fabric 2", NvmlFabricInfoV2, 6, AT(NvmlFabricInfoV2, version),
                        AT(NvmlFabricInfoV2, cluster_uuid), AT(NvmlFabricInfoV2, status),
                        AT(NvmlFabricInfoV2, clique_id), AT(NvmlFabricInfoV2, state),
                        AT(NvmlFabricInfoV2, health_mask)),
        LAYOUT("field", NvmlFieldValue, 7, AT(NvmlFieldValue, field_id), AT(NvmlFieldValue, scope_id),
                        AT(NvmlFieldValue, timestamp_usec), AT(NvmlFieldValue, latency_usec),
                        AT(NvmlFieldValue, value_type), AT(NvmlFieldValue, result),
                        AT(NvmlFieldValue, value)),
        LAYOUT("event", NvmlEventData, 5, AT(NvmlEventData, device), AT(NvmlEventData, type),
                        AT(NvmlEventData, data), AT(NvmlEventData, gpu_instance),
                        AT(NvmlEventData, compute_instance)),
        LAYOUT("process utilization", NvmlProcessUtilization, 6, AT(NvmlProcessUtilization, pid),
                        AT(NvmlProcessUtilization, timestamp_usec), AT(NvmlProcessUtilization, gpu),
                        AT(NvmlProcessUtilization, memory), AT(NvmlProcessUtilization, encoder),
                        AT(NvmlProcessUtilization, decoder)),
        LAYOUT("bar1", NvmlBar1Memory, 3, AT(NvmlBar1Memory, total), AT(NvmlBar1Memory, free),
                        AT(NvmlBar1Memory, used)),
        LAYOUT("attributes", NvmlAttributes, 3, AT(NvmlAttributes, multiprocessors),
                        AT(NvmlAttributes, gpu_slices), AT(NvmlAttributes, memory_mib)),
        LAYOUT("histogram", NvmlRemapHistogram, 5, AT(NvmlRemapHistogram, max), AT(NvmlRemapHistogram, high),
                        AT(NvmlRemapHistogram, partial), AT(NvmlRemapHistogram, low),
                        AT(NvmlRemapHistogram, none)),
};

const size_t n_our_layouts = ELEMENTSOF(our_layouts);
