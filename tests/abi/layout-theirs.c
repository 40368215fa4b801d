/* SPDX-License-Identifier: MIT */
/* Against the vendor's header, 12.4 or later, where it is installed. */
#include "tests/abi/layout.h"

#include <nvml.h>

const Layout their_layouts[] = {
        LAYOUT("pci", nvmlPciInfo_t, 7, AT(nvmlPciInfo_t, busIdLegacy), AT(nvmlPciInfo_t, domain),
                        AT(nvmlPciInfo_t, bus), AT(nvmlPciInfo_t, device), AT(nvmlPciInfo_t, pciDeviceId),
                        AT(nvmlPciInfo_t, pciSubSystemId), AT(nvmlPciInfo_t, busId)),
        LAYOUT("memory", nvmlMemory_t, 3, AT(nvmlMemory_t, total), AT(nvmlMemory_t, free),
                        AT(nvmlMemory_t, used)),
        LAYOUT("memory 2", nvmlMemory_v2_t, 5, AT(nvmlMemory_v2_t, version), AT(nvmlMemory_v2_t, total),
                        AT(nvmlMemory_v2_t, reserved), AT(nvmlMemory_v2_t, free), AT(nvmlMemory_v2_t, used)),
        LAYOUT("utilization", nvmlUtilization_t, 2, AT(nvmlUtilization_t, gpu),
                        AT(nvmlUtilization_t, memory)),
        LAYOUT("process", nvmlProcessInfo_t, 4, AT(nvmlProcessInfo_t, pid),
                        AT(nvmlProcessInfo_t, usedGpuMemory), AT(nvmlProcessInfo_t, gpuInstanceId),
                        AT(nvmlProcessInfo_t, computeInstanceId)),
        LAYOUT("process 1", nvmlProcessInfo_v1_t, 2, AT(nvmlProcessInfo_v1_t, pid),
                        AT(nvmlProcessInfo_v1_t, usedGpuMemory)),
        LAYOUT("fabric", nvmlGpuFabricInfo_t, 4, AT(nvmlGpuFabricInfo_t, clusterUuid),
                        AT(nvmlGpuFabricInfo_t, status), AT(nvmlGpuFabricInfo_t, cliqueId),
                        AT(nvmlGpuFabricInfo_t, state)),
        LAYOUT("fabric 2", nvmlGpuFabricInfo_v2_t, 6, AT(nvmlGpuFabricInfo_v2_t, version),
                        AT(nvmlGpuFabricInfo_v2_t, clusterUuid), AT(nvmlGpuFabricInfo_v2_t, status),
                        AT(nvmlGpuFabricInfo_v2_t, cliqueId), AT(nvmlGpuFabricInfo_v2_t, state),
                        AT(nvmlGpuFabricInfo_v2_t, healthMask)),
        LAYOUT("field", nvmlFieldValue_t, 7, AT(nvmlFieldValue_t, fieldId), AT(nvmlFieldValue_t, scopeId),
                        AT(nvmlFieldValue_t, timestamp), AT(nvmlFieldValue_t, latencyUsec),
                        AT(nvmlFieldValue_t, valueType), AT(nvmlFieldValue_t, nvmlReturn),
                        AT(nvmlFieldValue_t, value)),
        LAYOUT("event", nvmlEventData_t, 5, AT(nvmlEventData_t, device), AT(nvmlEventData_t, eventType),
                        AT(nvmlEventData_t, eventData), AT(nvmlEventData_t, gpuInstanceId),
                        AT(nvmlEventData_t, computeInstanceId)),
        LAYOUT("process utilization", nvmlProcessUtilizationSample_t, 6,
                        AT(nvmlProcessUtilizationSample_t, pid),
                        AT(nvmlProcessUtilizationSample_t, timeStamp),
                        AT(nvmlProcessUtilizationSample_t, smUtil),
                        AT(nvmlProcessUtilizationSample_t, memUtil),
                        AT(nvmlProcessUtilizationSample_t, encUtil),
                        AT(nvmlProcessUtilizationSample_t, decUtil)),
        LAYOUT("bar1", nvmlBAR1Memory_t, 3, AT(nvmlBAR1Memory_t, bar1Total), AT(nvmlBAR1Memory_t, bar1Free),
                        AT(nvmlBAR1Memory_t, bar1Used)),
        LAYOUT("histogram", nvmlRowRemapperHistogramValues_t, 5, AT(nvmlRowRemapperHistogramValues_t, max),
                        AT(nvmlRowRemapperHistogramValues_t, high),
                        AT(nvmlRowRemapperHistogramValues_t, partial),
                        AT(nvmlRowRemapperHistogramValues_t, low),
                        AT(nvmlRowRemapperHistogramValues_t, none)),
};

const size_t n_their_layouts = sizeof their_layouts / sizeof their_layouts[0];
