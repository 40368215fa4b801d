/* SPDX-License-Identifier: MIT */
/* The part of NVML's binary interface that the agent uses and the emulated driver offers: struct layouts,
 * numbers and function signatures, as they are on 64-bit Linux (x86-64 and aarch64 alike).
 *
 * Checked against the public headers 12.6.77 (driver 560), 12.8.90 (570), 12.9.40 (575), 13.0.39 (580) and
 * 13.3.29 (610); "since" names the first of them that has a thing. Symbols are looked up by their full
 * names: the library still exports the unsuffixed ones with their old layouts. All functions but
 * nvmlErrorString return an NvmlReturn. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NVML_LIBRARY_NAME "libnvidia-ml.so.1"

/* nvmlReturn_t, header 13.3.29. The driver may return numbers that are not listed here, so it is no enum. */
typedef int NvmlReturn;

enum {
        NVML_OK = 0,
        NVML_UNINITIALIZED = 1,
        NVML_INVALID_ARGUMENT = 2,
        NVML_NOT_SUPPORTED = 3,
        NVML_NO_PERMISSION = 4,
        NVML_NOT_FOUND = 6,
        NVML_INSUFFICIENT_SIZE = 7,
        NVML_INSUFFICIENT_POWER = 8,
        NVML_DRIVER_NOT_LOADED = 9,
        NVML_TIMED_OUT = 10,
        NVML_IRQ_ISSUE = 11,
        NVML_LIBRARY_NOT_FOUND = 12,
        NVML_FUNCTION_NOT_FOUND = 13,
        NVML_CORRUPTED_INFOROM = 14,
        NVML_GPU_IS_LOST = 15,
        NVML_RESET_REQUIRED = 16,
        NVML_OPERATING_SYSTEM = 17,
        NVML_LIB_RM_VERSION_MISMATCH = 18, /* packages were upgraded, the module was not loaded anew */
        NVML_IN_USE = 19,
        NVML_NO_MEMORY = 20,
        NVML_NO_DATA = 21,
        NVML_INSUFFICIENT_RESOURCES = 23,
        NVML_ARGUMENT_VERSION_MISMATCH = 25,
        NVML_DEPRECATED = 26,
        NVML_NOT_READY = 27,
        NVML_GPU_NOT_FOUND = 28,
        NVML_INVALID_STATE = 29,
        NVML_UNKNOWN = 999,
};

/* nvmlInitWithFlags, header 13.3.29. */
enum {
        NVML_INIT_NO_GPUS = 1 << 0,   /* succeed on a machine without GPUs */
        NVML_INIT_NO_ATTACH = 1 << 1, /* attach none; counts 0 GPUs in some drivers before 590.37 */
};

/* Buffers: nvmlSystemGet*Version and nvmlDeviceGetUUID 80 or more, names 96 (the old call: 64), serials
 * 30. */
#define NVML_VERSION_SIZE 80
#define NVML_UUID_SIZE    96
#define NVML_NAME_SIZE    96
#define NVML_SERIAL_SIZE  30

/* A struct that carries its version begins with this word; another one is answered by
 * ARGUMENT_VERSION_MISMATCH. */
#define NVML_VERSION_WORD(size, version) ((uint32_t) ((size) | (version) << 24))

/* Opaque, valid until nvmlShutdown. */
typedef struct NvmlDeviceHandle *NvmlDevice;

/* nvmlPciInfo_t. */
typedef struct NvmlPciInfo {
        char bus_id_legacy[16]; /* "%04X:%02X:%02X.0" */
        uint32_t domain;
        uint32_t bus;
        uint32_t device;
        uint32_t pci_device_id; /* device << 16 | vendor */
        uint32_t pci_subsystem_id;
        char bus_id[32]; /* "%08X:%02X:%02X.0" */
} NvmlPciInfo;

/* nvmlMemory_t: bytes. */
typedef struct NvmlMemory {
        uint64_t total;
        uint64_t free;
        uint64_t used; /* with what the driver reserves */
} NvmlMemory;

/* nvmlMemory_v2_t: bytes. */
typedef struct NvmlMemoryV2 {
        uint32_t version;
        uint64_t total;
        uint64_t reserved;
        uint64_t free;
        uint64_t used; /* without `reserved` */
} NvmlMemoryV2;
#define NVML_MEMORY_V2_VERSION NVML_VERSION_WORD(sizeof(NvmlMemoryV2), 2U)

/* nvmlUtilization_t: percent. */
typedef struct NvmlUtilization {
        uint32_t gpu;
        uint32_t memory;
} NvmlUtilization;

/* nvmlTemperature_t, since 12.9: degrees Celsius. Sensor 0 is the GPU. */
typedef struct NvmlTemperature {
        uint32_t version;
        uint32_t sensor;
        int32_t temperature;
} NvmlTemperature;
#define NVML_TEMPERATURE_V1_VERSION NVML_VERSION_WORD(sizeof(NvmlTemperature), 1U)

/* nvmlProcessInfo_t of the _v3 calls. Headers of the 535 time had 32 bytes here and went back: leave slack
 * behind an array of these. used_bytes is all ones where the driver cannot tell; instances are all ones
 * without MIG. */
typedef struct NvmlProcessInfo {
        uint32_t pid;
        uint64_t used_bytes;
        uint32_t gpu_instance;
        uint32_t compute_instance;
} NvmlProcessInfo;

/* nvmlGpuFabricInfo_t, since 12.0. The cluster's UUID is 16 bytes in the order they are printed in. */
typedef struct NvmlFabricInfo {
        uint8_t cluster_uuid[16];
        int32_t status; /* NvmlReturn; means something only with state NVML_FABRIC_COMPLETED */
        uint32_t clique_id;
        uint8_t state;
} NvmlFabricInfo;

/* nvmlGpuFabricInfo_v2_t, since 12.4 (driver 550). */
typedef struct NvmlFabricInfoV2 {
        uint32_t version;
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
        uint32_t health_mask;
} NvmlFabricInfoV2;
#define NVML_FABRIC_INFO_V2_VERSION NVML_VERSION_WORD(sizeof(NvmlFabricInfoV2), 2U)

/* nvmlGpuFabricInfo_v3_t, since 13.0 (driver 580). */
typedef struct NvmlFabricInfoV3 {
        uint32_t version;
        uint8_t cluster_uuid[16];
        int32_t status;
        uint32_t clique_id;
        uint8_t state;
        uint32_t health_mask;
        uint8_t health_summary;
} NvmlFabricInfoV3;
#define NVML_FABRIC_INFO_V3_VERSION NVML_VERSION_WORD(sizeof(NvmlFabricInfoV3), 3U)

enum {
        NVML_FABRIC_NOT_SUPPORTED = 0,
        NVML_FABRIC_NOT_STARTED = 1,
        NVML_FABRIC_IN_PROGRESS = 2,
        NVML_FABRIC_COMPLETED = 3,
};

/* The health mask: fields of two bits with 0 not supported, 1 true, 2 false; incorrect configuration has
 * four bits with 0 not supported, 1 none, else the reason. Header 13.3.29; the last two fields are younger
 * than 12.4. */
enum {
        NVML_FABRIC_HEALTH_DEGRADED_BW_SHIFT = 0,
        NVML_FABRIC_HEALTH_ROUTE_RECOVERY_SHIFT = 2,
        NVML_FABRIC_HEALTH_ROUTE_UNHEALTHY_SHIFT = 4,
        NVML_FABRIC_HEALTH_ACCESS_TIMEOUT_SHIFT = 6,
        NVML_FABRIC_HEALTH_INCORRECT_CONFIG_SHIFT = 8, /* since 13.0 */
        NVML_FABRIC_HEALTH_PARTITION_SHIFT = 12,       /* assigned; since 13.2 (driver 595) */
        NVML_FABRIC_HEALTH_TRUE = 1,
        NVML_FABRIC_HEALTH_FALSE = 2,
        NVML_FABRIC_CONFIG_NONE = 1,
        NVML_FABRIC_CONFIG_NO_PARTITION = 4,
};

enum {
        NVML_FABRIC_SUMMARY_NOT_SUPPORTED = 0,
        NVML_FABRIC_SUMMARY_HEALTHY = 1,
        NVML_FABRIC_SUMMARY_UNHEALTHY = 2,
        NVML_FABRIC_SUMMARY_LIMITED_CAPACITY = 3,
};

typedef union NvmlValue {
        double d;
        int32_t si;
        uint32_t ui;
        uint64_t ul;
        uint64_t ull;
        int64_t sll;
        uint16_t us;
} NvmlValue;

enum {
        NVML_VALUE_DOUBLE = 0,
        NVML_VALUE_UINT = 1,
        NVML_VALUE_ULONG = 2,
        NVML_VALUE_ULONG_LONG = 3,
        NVML_VALUE_SIGNED_LONG_LONG = 4,
        NVML_VALUE_SIGNED_INT = 5,
        NVML_VALUE_USHORT = 6,
};

/* nvmlFieldValue_t: field_id and scope_id go in, the rest comes out; each field has a result of its own. */
typedef struct NvmlFieldValue {
        uint32_t field_id;
        uint32_t scope_id;
        int64_t timestamp_usec;
        int64_t latency_usec;
        uint32_t value_type; /* which member of the union */
        int32_t result;      /* NvmlReturn */
        NvmlValue value;
} NvmlFieldValue;

/* Field ids. Some others moved between releases; these are the same in 12.6 to 13.3 (230: since 12.8). */
enum {
        NVML_FIELD_MEMORY_TEMPERATURE = 82,
        NVML_FIELD_TOTAL_ENERGY = 83,        /* mJ */
        NVML_FIELD_NVLINK_SPEED_COMMON = 90, /* MB/s of the active links */
        NVML_FIELD_NVLINK_LINK_COUNT = 91,
        NVML_FIELD_NVLINK_DATA_TX = 138, /* KiB; scope: link, or all ones for the sum */
        NVML_FIELD_NVLINK_DATA_RX = 139,
        NVML_FIELD_NVLINK_RAW_TX = 140,
        NVML_FIELD_NVLINK_RAW_RX = 141,
        NVML_FIELD_REMAPPED_CORRECTABLE = 142,
        NVML_FIELD_REMAPPED_UNCORRECTABLE = 143,
        NVML_FIELD_REMAPPED_PENDING = 144,
        NVML_FIELD_REMAPPED_FAILURE = 145,
        NVML_FIELD_NVLINK_SPEED = 164,      /* MB/s; scope: link */
        NVML_FIELD_NVLINK_STATE = 165,      /* 0, 1; scope: link */
        NVML_FIELD_POWER_AVERAGE = 185,     /* mW */
        NVML_FIELD_POWER_INSTANT = 186,     /* mW */
        NVML_FIELD_NVLINK_XMIT_BYTES = 202, /* NVLink 5; scope: link */
        NVML_FIELD_NVLINK_RCV_BYTES = 204,
        NVML_FIELD_RECOVERY_ACTION = 230,
};

/* nvmlDeviceGpuRecoveryAction_t: 0 to 4 since 12.8, 5 since 13.2; 6 and 7 from the documents of driver
 * 615. */
enum {
        NVML_RECOVERY_NONE = 0,
        NVML_RECOVERY_GPU_RESET = 1,
        NVML_RECOVERY_NODE_REBOOT = 2,
        NVML_RECOVERY_DRAIN_P2P = 3,
        NVML_RECOVERY_DRAIN_AND_RESET = 4,
        NVML_RECOVERY_RECOVER_IMEX_DOMAIN = 5,
        NVML_RECOVERY_BUS_RESET = 6,
        NVML_RECOVERY_SYSTEM_REBOOT = 7,
};

/* nvmlIntNvLinkDeviceType_t. */
enum {
        NVML_LINK_REMOTE_GPU = 0,
        NVML_LINK_REMOTE_IBM_NPU = 1,
        NVML_LINK_REMOTE_SWITCH = 2,
        NVML_LINK_REMOTE_UNKNOWN = 0xff,
};

/* NVML_NVLINK_MAX_LINKS: 18 up to 13.0, 36 in 13.3. */
#define NVML_LINKS_MAX 36

/* nvmlPlatformInfo_v2_t, since 12.8. */
typedef struct NvmlPlatformInfo {
        uint32_t version;
        uint8_t ib_guid[16];
        uint8_t chassis_serial[16];
        uint8_t slot_number;
        uint8_t tray_index;
        uint8_t host_id;
        uint8_t peer_type; /* 0 direct, 1 through switches */
        uint8_t module_id;
} NvmlPlatformInfo;
#define NVML_PLATFORM_INFO_V2_VERSION NVML_VERSION_WORD(sizeof(NvmlPlatformInfo), 2U)

#define NVML_ASSERT_SIZE(Type, size) _Static_assert(sizeof(Type) == (size), #Type)
#define NVML_ASSERT_OFFSET(Type, member, at) \
        _Static_assert(offsetof(Type, member) == (at), #Type "." #member)

NVML_ASSERT_SIZE(NvmlPciInfo, 68);
NVML_ASSERT_OFFSET(NvmlPciInfo, domain, 16);
NVML_ASSERT_OFFSET(NvmlPciInfo, pci_device_id, 28);
NVML_ASSERT_OFFSET(NvmlPciInfo, pci_subsystem_id, 32);
NVML_ASSERT_OFFSET(NvmlPciInfo, bus_id, 36);
NVML_ASSERT_SIZE(NvmlMemory, 24);
NVML_ASSERT_OFFSET(NvmlMemory, free, 8);
NVML_ASSERT_OFFSET(NvmlMemory, used, 16);
NVML_ASSERT_SIZE(NvmlMemoryV2, 40);
NVML_ASSERT_OFFSET(NvmlMemoryV2, total, 8);
NVML_ASSERT_OFFSET(NvmlMemoryV2, reserved, 16);
NVML_ASSERT_OFFSET(NvmlMemoryV2, free, 24);
NVML_ASSERT_OFFSET(NvmlMemoryV2, used, 32);
_Static_assert(NVML_MEMORY_V2_VERSION == 0x02000028, "nvmlMemory_v2_t");
NVML_ASSERT_SIZE(NvmlUtilization, 8);
NVML_ASSERT_SIZE(NvmlTemperature, 12);
NVML_ASSERT_OFFSET(NvmlTemperature, temperature, 8);
_Static_assert(NVML_TEMPERATURE_V1_VERSION == 0x0100000c, "nvmlTemperature_v1_t");
NVML_ASSERT_SIZE(NvmlProcessInfo, 24);
NVML_ASSERT_OFFSET(NvmlProcessInfo, used_bytes, 8);
NVML_ASSERT_OFFSET(NvmlProcessInfo, gpu_instance, 16);
NVML_ASSERT_OFFSET(NvmlProcessInfo, compute_instance, 20);
NVML_ASSERT_SIZE(NvmlFabricInfo, 28);
NVML_ASSERT_OFFSET(NvmlFabricInfo, status, 16);
NVML_ASSERT_OFFSET(NvmlFabricInfo, clique_id, 20);
NVML_ASSERT_OFFSET(NvmlFabricInfo, state, 24);
NVML_ASSERT_SIZE(NvmlFabricInfoV2, 36);
NVML_ASSERT_OFFSET(NvmlFabricInfoV2, cluster_uuid, 4);
NVML_ASSERT_OFFSET(NvmlFabricInfoV2, status, 20);
NVML_ASSERT_OFFSET(NvmlFabricInfoV2, clique_id, 24);
NVML_ASSERT_OFFSET(NvmlFabricInfoV2, state, 28);
NVML_ASSERT_OFFSET(NvmlFabricInfoV2, health_mask, 32);
_Static_assert(NVML_FABRIC_INFO_V2_VERSION == 0x02000024, "nvmlGpuFabricInfo_v2_t");
NVML_ASSERT_SIZE(NvmlFabricInfoV3, 40);
NVML_ASSERT_OFFSET(NvmlFabricInfoV3, health_mask, 32);
NVML_ASSERT_OFFSET(NvmlFabricInfoV3, health_summary, 36);
_Static_assert(NVML_FABRIC_INFO_V3_VERSION == 0x03000028, "nvmlGpuFabricInfo_v3_t");
NVML_ASSERT_SIZE(NvmlFieldValue, 40);
NVML_ASSERT_OFFSET(NvmlFieldValue, timestamp_usec, 8);
NVML_ASSERT_OFFSET(NvmlFieldValue, latency_usec, 16);
NVML_ASSERT_OFFSET(NvmlFieldValue, value_type, 24);
NVML_ASSERT_OFFSET(NvmlFieldValue, result, 28);
NVML_ASSERT_OFFSET(NvmlFieldValue, value, 32);
NVML_ASSERT_SIZE(NvmlPlatformInfo, 44);
NVML_ASSERT_OFFSET(NvmlPlatformInfo, ib_guid, 4);
NVML_ASSERT_OFFSET(NvmlPlatformInfo, chassis_serial, 20);
NVML_ASSERT_OFFSET(NvmlPlatformInfo, slot_number, 36);
NVML_ASSERT_OFFSET(NvmlPlatformInfo, module_id, 40);
_Static_assert(NVML_PLATFORM_INFO_V2_VERSION == 0x0200002c, "nvmlPlatformInfo_v2_t");

/* What the agent looks up, as X(name, arguments). The first list is in every driver since 535; a driver
 * without one of the second still works. Where a call takes an array and its size, size 0 asks for the
 * number: INSUFFICIENT_SIZE. */
#define NVML_REQUIRED_FUNCTIONS(X)                                                           \
        X(nvmlInit_v2, (void) )                                                              \
        X(nvmlShutdown, (void) )                                                             \
        X(nvmlSystemGetDriverVersion, (char *version, unsigned length))                      \
        X(nvmlDeviceGetCount_v2, (unsigned *count))                                          \
        X(nvmlDeviceGetHandleByIndex_v2, (unsigned index, NvmlDevice *device))               \
        X(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus_id, NvmlDevice *device))        \
        X(nvmlDeviceGetHandleByUUID, (const char *uuid, NvmlDevice *device))                 \
        X(nvmlDeviceGetIndex, (NvmlDevice device, unsigned *index))                          \
        X(nvmlDeviceGetMinorNumber, (NvmlDevice device, unsigned *minor))                    \
        X(nvmlDeviceGetName, (NvmlDevice device, char *name, unsigned length))               \
        X(nvmlDeviceGetUUID, (NvmlDevice device, char *uuid, unsigned length))               \
        X(nvmlDeviceGetSerial, (NvmlDevice device, char *serial, unsigned length))           \
        X(nvmlDeviceGetPciInfo_v3, (NvmlDevice device, NvmlPciInfo * pci))                   \
        X(nvmlDeviceGetMemoryInfo, (NvmlDevice device, NvmlMemory * memory))                 \
        X(nvmlDeviceGetUtilizationRates, (NvmlDevice device, NvmlUtilization * utilization)) \
        X(nvmlDeviceGetPowerUsage, (NvmlDevice device, unsigned *milliwatts))                \
        X(nvmlDeviceGetPersistenceMode, (NvmlDevice device, int *mode))                      \
        X(nvmlDeviceGetNvLinkState, (NvmlDevice device, unsigned link, int *active))         \
        X(nvmlDeviceGetFieldValues, (NvmlDevice device, int n_values, NvmlFieldValue *values))

#define NVML_OPTIONAL_FUNCTIONS(X)                                                                          \
        X(nvmlInitWithFlags, (unsigned flags))                                                              \
        X(nvmlDeviceGetMemoryInfo_v2, (NvmlDevice device, NvmlMemoryV2 * memory))                           \
        X(nvmlDeviceGetTemperature, (NvmlDevice device, int sensor, unsigned *celsius))                     \
        X(nvmlDeviceGetTemperatureV, (NvmlDevice device, NvmlTemperature * temperature))                    \
        X(nvmlDeviceGetComputeRunningProcesses_v3,                                                          \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfo *infos))                       \
        X(nvmlDeviceGetGraphicsRunningProcesses_v3,                                                         \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfo *infos))                       \
        X(nvmlDeviceGetMPSComputeRunningProcesses_v3,                                                       \
                        (NvmlDevice device, unsigned *count, NvmlProcessInfo *infos))                       \
        X(nvmlDeviceGetGpuFabricInfo, (NvmlDevice device, NvmlFabricInfo * info))                           \
        X(nvmlDeviceGetGpuFabricInfoV, (NvmlDevice device, void *info)) /* V2 or V3, by its version word */ \
        X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (NvmlDevice device, unsigned link, NvmlPciInfo *pci))        \
        X(nvmlDeviceGetNvLinkRemoteDeviceType, (NvmlDevice device, unsigned link, int *type))               \
        X(nvmlDeviceGetMigMode, (NvmlDevice device, unsigned *current, unsigned *pending))                  \
        X(nvmlDeviceGetPlatformInfo, (NvmlDevice device, NvmlPlatformInfo * info))                          \
        X(nvmlDeviceSetPersistenceMode, (NvmlDevice device, int mode))

/* nvmlErrorString's type: it works before init, too, and never returns NULL. */
typedef const char *(*NvmlErrorStringFunction)(NvmlReturn result);
