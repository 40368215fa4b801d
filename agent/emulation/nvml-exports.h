/* SPDX-License-Identifier: MIT */
/* Everything that the emulated libnvidia-ml.so.1 exports: what the agent uses (nvml-abi.h) and what NVML's
 * other clients look up, with the signatures of header 13.3.29. What is not here is not exported either: a
 * client that looks it up takes the driver for an older one, as it would a real one that lacks it. */
#pragma once

#include "agent/driver/nvml-abi.h"

typedef struct NvmlEventSetHandle *NvmlEventSet;

/* nvmlEventData_t. */
typedef struct NvmlEventData {
        NvmlDevice device;
        uint64_t type;
        uint64_t data; /* an Xid's number, a recovery action */
        uint32_t gpu_instance;
        uint32_t compute_instance;
} NvmlEventData;

enum {
        NVML_EVENT_XID = 0x8,
        NVML_EVENT_RECOVERY_ACTION = 0x8000, /* since 12.8 */
};

/* nvmlProcessInfo_v1_t, of the calls without a suffix. */
typedef struct NvmlProcessInfoV1 {
        uint32_t pid;
        uint64_t used_bytes;
} NvmlProcessInfoV1;

/* nvmlProcessUtilizationSample_t. */
typedef struct NvmlProcessUtilization {
        uint32_t pid;
        uint64_t timestamp_usec;
        uint32_t gpu, memory, encoder, decoder; /* percent */
} NvmlProcessUtilization;

/* nvmlBAR1Memory_t. */
typedef struct NvmlBar1Memory {
        uint64_t total, free, used;
} NvmlBar1Memory;

/* nvmlRowRemapperHistogramValues_t. */
typedef struct NvmlRemapHistogram {
        uint32_t max, high, partial, low, none;
} NvmlRemapHistogram;

/* nvmlDeviceAttributes_t: of a MIG device. */
typedef struct NvmlAttributes {
        uint32_t multiprocessors;
        uint32_t copy_engines, decoders, encoders, jpeg_engines, ofa_engines; /* shared */
        uint32_t gpu_slices, compute_slices;
        uint64_t memory_mib;
} NvmlAttributes;

/* nvmlRepairStatus_v1_t, since 13.0. */
typedef struct NvmlRepairStatus {
        uint32_t version;
        uint32_t channel_pending;
        uint32_t tpc_pending;
} NvmlRepairStatus;
#define NVML_REPAIR_STATUS_V1_VERSION NVML_VERSION_WORD(sizeof(NvmlRepairStatus), 1U)

NVML_ASSERT_SIZE(NvmlEventData, 32);
NVML_ASSERT_OFFSET(NvmlEventData, type, 8);
NVML_ASSERT_OFFSET(NvmlEventData, data, 16);
NVML_ASSERT_OFFSET(NvmlEventData, gpu_instance, 24);
NVML_ASSERT_OFFSET(NvmlEventData, compute_instance, 28);
NVML_ASSERT_SIZE(NvmlProcessInfoV1, 16);
NVML_ASSERT_SIZE(NvmlProcessUtilization, 32);
NVML_ASSERT_OFFSET(NvmlProcessUtilization, gpu, 16);
NVML_ASSERT_SIZE(NvmlAttributes, 40);
NVML_ASSERT_OFFSET(NvmlAttributes, memory_mib, 32);
NVML_ASSERT_SIZE(NvmlRepairStatus, 12);
_Static_assert(NVML_REPAIR_STATUS_V1_VERSION == 0x0100000c, "nvmlRepairStatus_v1_t");

#define NVML_CLIENT_FUNCTIONS(X)                                                                           \
        X(nvmlInit, (void) )                                                                               \
        X(nvmlSystemGetNVMLVersion, (char *version, unsigned length))                                      \
        X(nvmlSystemGetCudaDriverVersion, (int *version))                                                  \
        X(nvmlSystemGetCudaDriverVersion_v2, (int *version))                                               \
        X(nvmlSystemGetProcessName, (unsigned pid, char *name, unsigned length))                           \
        X(nvmlDeviceGetCount, (unsigned *count))                                                           \
        X(nvmlDeviceGetHandleByIndex, (unsigned index, NvmlDevice *device))                                \
        X(nvmlDeviceGetHandleByPciBusId, (const char *bus_id, NvmlDevice *device))                         \
        X(nvmlDeviceGetHandleBySerial, (const char *serial, NvmlDevice *device))                           \
        X(nvmlDeviceGetModuleId, (NvmlDevice device, unsigned *id))                                        \
        X(nvmlDeviceGetBrand, (NvmlDevice device, int *brand))                                             \
        X(nvmlDeviceGetArchitecture, (NvmlDevice device, unsigned *architecture))                          \
        X(nvmlDeviceGetCudaComputeCapability, (NvmlDevice device, int *major, int *minor))                 \
        X(nvmlDeviceGetBoardId, (NvmlDevice device, unsigned *id))                                         \
        X(nvmlDeviceGetMultiGpuBoard, (NvmlDevice device, unsigned *multi))                                \
        X(nvmlDeviceGetBoardPartNumber, (NvmlDevice device, char *number, unsigned length))                \
        X(nvmlDeviceGetVbiosVersion, (NvmlDevice device, char *version, unsigned length))                  \
        X(nvmlDeviceGetInforomImageVersion, (NvmlDevice device, char *version, unsigned length))           \
        X(nvmlDeviceGetGspFirmwareVersion, (NvmlDevice device, char *version))                             \
        X(nvmlDeviceGetNumGpuCores, (NvmlDevice device, unsigned *cores))                                  \
        X(nvmlDeviceGetMemoryBusWidth, (NvmlDevice device, unsigned *bits))                                \
        X(nvmlDeviceGetBAR1MemoryInfo, (NvmlDevice device, NvmlBar1Memory * memory))                       \
        X(nvmlDeviceGetComputeMode, (NvmlDevice device, int *mode))                                        \
        X(nvmlDeviceGetDisplayMode, (NvmlDevice device, int *mode))                                        \
        X(nvmlDeviceGetDisplayActive, (NvmlDevice device, int *active))                                    \
        X(nvmlDeviceGetVirtualizationMode, (NvmlDevice device, int *mode))                                 \
        X(nvmlDeviceGetPowerState, (NvmlDevice device, int *state))                                        \
        X(nvmlDeviceGetPerformanceState, (NvmlDevice device, int *state))                                  \
        X(nvmlDeviceGetPowerManagementMode, (NvmlDevice device, int *mode))                                \
        X(nvmlDeviceGetPowerManagementLimit, (NvmlDevice device, unsigned *milliwatts))                    \
        X(nvmlDeviceGetPowerManagementDefaultLimit, (NvmlDevice device, unsigned *milliwatts))             \
        X(nvmlDeviceGetPowerManagementLimitConstraints, (NvmlDevice device, unsigned *min, unsigned *max)) \
        X(nvmlDeviceGetEnforcedPowerLimit, (NvmlDevice device, unsigned *milliwatts))                      \
        X(nvmlDeviceGetTemperatureThreshold, (NvmlDevice device, int threshold, unsigned *celsius))        \
        X(nvmlDeviceGetFanSpeed, (NvmlDevice device, unsigned *percent))                                   \
        X(nvmlDeviceGetFanSpeed_v2, (NvmlDevice device, unsigned fan, unsigned *percent))                  \
        X(nvmlDeviceGetNumFans, (NvmlDevice device, unsigned *fans))                                       \
        X(nvmlDeviceGetClockInfo, (NvmlDevice device, int type, unsigned *mhz))                            \
        X(nvmlDeviceGetMaxClockInfo, (NvmlDevice device, int type, unsigned *mhz))                         \
        X(nvmlDeviceGetApplicationsClock, (NvmlDevice device, int type, unsigned *mhz))                    \
        X(nvmlDeviceGetDefaultApplicationsClock, (NvmlDevice device, int type, unsigned *mhz))             \
        X(nvmlDeviceSetApplicationsClocks, (NvmlDevice device, unsigned memory, unsigned graphics))        \
        X(nvmlDeviceResetApplicationsClocks, (NvmlDevice device))                                          \
        X(nvmlDeviceGetSupportedMemoryClocks, (NvmlDevice device, unsigned *count, unsigned *clocks))      \
        X(nvmlDeviceGetSupportedGraphicsClocks,                                                            \
                        (NvmlDevice device, unsigned memory_clock, unsigned *count, unsigned *clocks))     \
        X(nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice device, unsigned long long *reasons))     \
        X(nvmlDeviceGetSupportedClocksThrottleReasons, (NvmlDevice device, unsigned long long *reasons))   \
        X(nvmlDeviceGetCurrentClocksEventReasons, (NvmlDevice device, unsigned long long *reasons))        \
        X(nvmlDeviceGetSupportedClocksEventReasons, (NvmlDevice device, unsigned long long *reasons))      \
        X(nvmlDeviceGetMaxPcieLinkGeneration, (NvmlDevice device, unsigned *generation))                   \
        X(nvmlDeviceGetMaxPcieLinkWidth, (NvmlDevice device, unsigned *width))                             \
        X(nvmlDeviceGetCurrPcieLinkGeneration, (NvmlDevice device, unsigned *generation))                  \
        X(nvmlDeviceGetCurrPcieLinkWidth, (NvmlDevice device, unsigned *width))                            \
        X(nvmlDeviceGetPcieThroughput, (NvmlDevice device, int counter, unsigned *kilobytes))              \
        X(nvmlDeviceGetPcieReplayCounter, (NvmlDevice device, unsigned *replays))                          \
        X(nvmlDeviceGetEncoderUtilization, (NvmlDevice device, unsigned *percent, unsigned *period))       \
        X(nvmlDeviceGetDecoderUtilization, (NvmlDevice device, unsigned *percent, unsigned *period))       \
        X(nvmlDeviceGetEccMode, (NvmlDevice device, int *current, int *pending))                           \
        X(nvmlDeviceGetTotalEccErrors,                                                                     \
                        (NvmlDevice device, int type, int counter, unsigned long long *errors))            \
        X(nvmlDeviceGetMemoryErrorCounter,                                                                 \
                        (NvmlDevice device, int type, int counter, int location,                           \
                                        unsigned long long *errors))                                       \
        X(nvmlDeviceGetRemappedRows,                                                                       \
                        (NvmlDevice device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, \
                                        unsigned *failed))                                                 \
        X(nvmlDeviceGetRowRemapperHistogram, (NvmlDevice device, NvmlRemapHistogram * values))             \
        X(nvmlDeviceGetRepairStatus, (NvmlDevice device, NvmlRepairStatus * status))                       \
        X(nvmlDeviceGetRetiredPages,                                                                       \
                        (NvmlDevice device, int cause, unsigned *count, unsigned long long *addresses))    \
        X(nvmlDeviceGetRetiredPagesPendingStatus, (NvmlDevice device, int *pending))                       \
        X(nvmlDeviceGetAccountingMode, (NvmlDevice device, int *mode))                                     \
        X(nvmlDeviceGetAttributes_v2, (NvmlDevice device, NvmlAttributes * attributes))                    \
        X(nvmlDeviceGetMaxMigDeviceCount, (NvmlDevice device, unsigned *count))                            \
        X(nvmlDeviceGetMigDeviceHandleByIndex, (NvmlDevice device, unsigned index, NvmlDevice *mig))       \
        X(nvmlDeviceIsMigDeviceHandle, (NvmlDevice device, unsigned *is_mig))                              \
        X(nvmlDeviceGetGpuInstanceId, (NvmlDevice device, unsigned *id))                                   \
        X(nvmlDeviceGetComputeInstanceId, (NvmlDevice device, unsigned *id))                               \
        X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (NvmlDevice mig, NvmlDevice * device))             \
        X(nvmlDeviceGetCpuAffinity, (NvmlDevice device, unsigned words, unsigned long *set))               \
        X(nvmlDeviceGetTopologyCommonAncestor, (NvmlDevice device, NvmlDevice other, int *level))          \
        X(nvmlDeviceGetP2PStatus, (NvmlDevice device, NvmlDevice other, int capability, int *status))      \
        X(nvmlDeviceGetNvLinkVersion, (NvmlDevice device, unsigned link, unsigned *version))               \
        X(nvmlDeviceGetNvLinkCapability,                                                                   \
                        (NvmlDevice device, unsigned link, int capability, unsigned *value))               \
        X(nvmlDeviceGetNvLinkErrorCounter,                                                                 \
                        (NvmlDevice device, unsigned link, int counter, unsigned long long *value))        \
        X(nvmlDeviceGetComputeRunningProcesses,                                                            \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfoV1 *infos))                    \
        X(nvmlDeviceGetGraphicsRunningProcesses,                                                           \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfoV1 *infos))                    \
        X(nvmlDeviceGetComputeRunningProcesses_v2,                                                         \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfo *infos))                      \
        X(nvmlDeviceGetGraphicsRunningProcesses_v2,                                                        \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfo *infos))                      \
        X(nvmlDeviceGetProcessUtilization,                                                                 \
                        (NvmlDevice device, NvmlProcessUtilization * samples, unsigned *count,             \
                                        unsigned long long since_usec))                                    \
        X(nvmlDeviceGetSupportedEventTypes, (NvmlDevice device, unsigned long long *types))                \
        X(nvmlDeviceRegisterEvents, (NvmlDevice device, unsigned long long types, NvmlEventSet set))       \
        X(nvmlEventSetCreate, (NvmlEventSet * set))                                                        \
        X(nvmlEventSetWait_v2, (NvmlEventSet set, NvmlEventData * data, unsigned timeout_ms))              \
        X(nvmlEventSetWait, (NvmlEventSet set, NvmlEventData * data, unsigned timeout_ms))                 \
        X(nvmlEventSetFree, (NvmlEventSet set))

#define NVML_DECLARE(name, arguments) NvmlReturn name arguments;

NVML_REQUIRED_FUNCTIONS(NVML_DECLARE)
NVML_OPTIONAL_FUNCTIONS(NVML_DECLARE)
NVML_CLIENT_FUNCTIONS(NVML_DECLARE)

const char* nvmlErrorString(NvmlReturn result);
