/* SPDX-License-Identifier: MIT */
/* What monitoring programs ask for beyond what the agent reads. Where a machine of the kind has no such
 * thing, the answer is NOT_SUPPORTED, as there. */
#include <string.h>
#include <unistd.h>

#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-values.h"

#define ECC_CORRECTED     0
#define ECC_UNCORRECTED   1
#define ECC_VOLATILE      0
#define ECC_AGGREGATE     1
#define ECC_LOCATION_DRAM 2

/* A number that is the same as long as the tray lives. */
#define CONSTANT_CALL(name, type, value)                       \
        EXPORT NvmlReturn name(NvmlDevice device, type *ret) { \
                NvmlReturn r;                                  \
                View view;                                     \
                                                               \
                r = view_open(device, ret != NULL, &view);     \
                if (r != VIEW_READY)                           \
                        return r;                              \
                *ret = (type) (value);                         \
                return NVML_OK;                                \
        }

/* A thing that these GPUs do not have. */
#define MISSING_CALL(name, type)                                      \
        EXPORT NvmlReturn name(NvmlDevice device, type *ret) {        \
                View view;                                            \
                NvmlReturn r = view_open(device, ret != NULL, &view); \
                                                                      \
                return r == VIEW_READY ? NVML_NOT_SUPPORTED : r;      \
        }

#define TEXT_CALL(name, text)                                                   \
        EXPORT NvmlReturn name(NvmlDevice device, char *ret, unsigned length) { \
                View view;                                                      \
                NvmlReturn r = view_open(device, ret != NULL, &view);           \
                                                                                \
                return r == VIEW_READY ? copy_text(text, ret, length) : r;      \
        }

CONSTANT_CALL(nvmlDeviceGetBrand, int, 14) /* NVML_BRAND_NVIDIA */
CONSTANT_CALL(nvmlDeviceGetArchitecture, unsigned, view.header.model.architecture_number)
CONSTANT_CALL(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
CONSTANT_CALL(nvmlDeviceGetNumGpuCores, unsigned, view.header.model.n_cores)
CONSTANT_CALL(nvmlDeviceGetMemoryBusWidth, unsigned, view.header.model.memory_bus_bits)
CONSTANT_CALL(nvmlDeviceGetComputeMode, int, 0)
CONSTANT_CALL(nvmlDeviceGetDisplayActive, int, 0)
CONSTANT_CALL(nvmlDeviceGetVirtualizationMode, int, 0)
CONSTANT_CALL(nvmlDeviceGetPowerState, int, 0)
CONSTANT_CALL(nvmlDeviceGetPerformanceState, int, 0)
CONSTANT_CALL(nvmlDeviceGetPowerManagementMode, int, 1)
CONSTANT_CALL(nvmlDeviceGetPowerManagementLimit, unsigned, view.header.model.power_limit_mw)
CONSTANT_CALL(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, view.header.model.power_limit_mw)
CONSTANT_CALL(nvmlDeviceGetEnforcedPowerLimit, unsigned, view.header.model.power_limit_mw)
CONSTANT_CALL(nvmlDeviceGetNumFans, unsigned, 0)
CONSTANT_CALL(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, view.header.model.pcie_gen_max)
CONSTANT_CALL(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)
CONSTANT_CALL(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, view.header.model.pcie_gen_max)
CONSTANT_CALL(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16)
CONSTANT_CALL(nvmlDeviceGetPcieReplayCounter, unsigned, 0)
CONSTANT_CALL(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1ff)
CONSTANT_CALL(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1ff)
CONSTANT_CALL(nvmlDeviceGetAccountingMode, int, 0)
CONSTANT_CALL(nvmlDeviceGetMaxMigDeviceCount, unsigned, 7)
CONSTANT_CALL(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
MISSING_CALL(nvmlDeviceGetDisplayMode, int)
MISSING_CALL(nvmlDeviceGetFanSpeed, unsigned)
MISSING_CALL(nvmlDeviceGetAttributes_v2, NvmlAttributes) /* only MIG devices have them */
MISSING_CALL(nvmlDeviceGetRetiredPagesPendingStatus, int)
MISSING_CALL(nvmlDeviceGetGpuInstanceId, unsigned)
MISSING_CALL(nvmlDeviceGetComputeInstanceId, unsigned)
TEXT_CALL(nvmlDeviceGetBoardPartNumber, view.header.model.board_part)
TEXT_CALL(nvmlDeviceGetVbiosVersion, view.header.model.vbios)
TEXT_CALL(nvmlDeviceGetInforomImageVersion, view.header.model.image)

/* This call's buffer is 64 bytes by definition. */
EXPORT NvmlReturn nvmlDeviceGetGspFirmwareVersion(NvmlDevice device, char *version) {
        View view;
        NvmlReturn r = view_open(device, version != NULL, &view);

        return r == VIEW_READY ? copy_text(view.header.driver_version, version, 64) : r;
}

EXPORT NvmlReturn nvmlDeviceGetCudaComputeCapability(NvmlDevice device, int *major, int *minor) {
        NvmlReturn r;
        View view;

        r = view_open(device, major && minor, &view);
        if (r != VIEW_READY)
                return r;
        *major = (int) view.header.model.compute_major;
        *minor = (int) view.header.model.compute_minor;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetBoardId(NvmlDevice device, unsigned *id) {
        NvmlPciInfo pci;
        NvmlReturn r;
        View view;

        r = view_open(device, id != NULL, &view);
        if (r != VIEW_READY)
                return r;
        pci_info_fill(view.gpu.bus_id, &view.header.model, &pci);
        *id = pci.domain << 16 | pci.bus << 8 | pci.device;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetBAR1MemoryInfo(NvmlDevice device, NvmlBar1Memory *memory) {
        NvmlReturn r;
        View view;

        r = view_open(device, memory != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *memory = (NvmlBar1Memory){ .total = view.header.model.bar1_total,
                .free = view.header.model.bar1_total };
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetPowerManagementLimitConstraints(
                NvmlDevice device, unsigned *min, unsigned *max) {
        NvmlReturn r;
        View view;

        r = view_open(device, min && max, &view);
        if (r != VIEW_READY)
                return r;
        *min = view.header.model.power_min_mw;
        *max = view.header.model.power_limit_mw;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetTemperatureThreshold(NvmlDevice device, int threshold, unsigned *celsius) {
        /* Shutdown, slowdown, memory's and the GPU's maximum. */
        static const unsigned limits[] = { 92, 89, 95, 87 };
        NvmlReturn r;
        View view;

        r = view_open(device, celsius && threshold >= 0, &view);
        if (r != VIEW_READY)
                return r;
        if (threshold >= (int) ELEMENTSOF(limits))
                return NVML_NOT_SUPPORTED;
        *celsius = limits[threshold];
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetFanSpeed_v2(NvmlDevice device, unsigned fan, unsigned *percent) {
        return nvmlDeviceGetFanSpeed(device, percent);
}

EXPORT NvmlReturn nvmlDeviceGetPcieThroughput(NvmlDevice device, int counter, unsigned *kilobytes) {
        Telemetry telemetry;
        NvmlReturn r;
        View view;

        r = view_open_telemetry(device, kilobytes && (counter == 0 || counter == 1), &view, &telemetry);
        if (r != VIEW_READY)
                return r;
        *kilobytes = telemetry.load * 1000;
        return NVML_OK;
}

static NvmlReturn codec_load(NvmlDevice device, unsigned *percent, unsigned *period) {
        NvmlReturn r;
        View view;

        r = view_open(device, percent && period, &view);
        if (r != VIEW_READY)
                return r;
        *percent = 0;
        *period = 167000;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetEncoderUtilization(NvmlDevice device, unsigned *percent, unsigned *period) {
        return codec_load(device, percent, period);
}

EXPORT NvmlReturn nvmlDeviceGetDecoderUtilization(NvmlDevice device, unsigned *percent, unsigned *period) {
        return codec_load(device, percent, period);
}

EXPORT NvmlReturn nvmlDeviceGetEccMode(NvmlDevice device, int *current, int *pending) {
        NvmlReturn r;
        View view;

        r = view_open(device, current && pending, &view);
        if (r != VIEW_READY)
                return r;
        *current = *pending = 1;
        return NVML_OK;
}

static uint64_t ecc_count(const TrayGpu *gpu, int type, int counter) {
        if (type == ECC_CORRECTED)
                return counter == ECC_VOLATILE ? gpu->ecc_corrected : gpu->ecc_corrected_aggregate;
        return counter == ECC_VOLATILE ? gpu->ecc_uncorrected : gpu->ecc_uncorrected_aggregate;
}

EXPORT NvmlReturn nvmlDeviceGetTotalEccErrors(
                NvmlDevice device, int type, int counter, unsigned long long *errors) {
        NvmlReturn r;
        View view;

        r = view_open(device,
                        errors && (unsigned) type <= ECC_UNCORRECTED && (unsigned) counter <= ECC_AGGREGATE,
                        &view);
        if (r != VIEW_READY)
                return r;
        *errors = ecc_count(&view.gpu, type, counter);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetMemoryErrorCounter(
                NvmlDevice device, int type, int counter, int location, unsigned long long *errors) {
        NvmlReturn r;
        View view;

        r = view_open(device,
                        errors && (unsigned) type <= ECC_UNCORRECTED && (unsigned) counter <= ECC_AGGREGATE,
                        &view);
        if (r != VIEW_READY)
                return r;
        *errors = location == ECC_LOCATION_DRAM ? ecc_count(&view.gpu, type, counter) : 0;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetRemappedRows(NvmlDevice device, unsigned *corrected, unsigned *uncorrected,
                unsigned *pending, unsigned *failed) {
        NvmlReturn r;
        View view;

        r = view_open(device, corrected && uncorrected && pending && failed, &view);
        if (r != VIEW_READY)
                return r;
        if (view.gpu.mig)
                return NVML_NOT_SUPPORTED;
        *corrected = *uncorrected = *failed = 0;
        *pending = view.gpu.row_remap_pending;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetRowRemapperHistogram(NvmlDevice device, NvmlRemapHistogram *values) {
        NvmlReturn r;
        View view;

        r = view_open(device, values != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *values = (NvmlRemapHistogram){ .max = view.header.model.remap_banks };
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetRepairStatus(NvmlDevice device, NvmlRepairStatus *status) {
        NvmlReturn r;
        View view;

        r = view_open(device, status != NULL, &view);
        if (r != VIEW_READY)
                return r;
        if (status->version != NVML_REPAIR_STATUS_V1_VERSION)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        status->channel_pending = status->tpc_pending = 0;
        return NVML_OK;
}

/* HBM of these GPUs has its rows remapped; it retires no pages. */
EXPORT NvmlReturn nvmlDeviceGetRetiredPages(
                NvmlDevice device, int cause, unsigned *count, unsigned long long *addresses) {
        View view;
        NvmlReturn r = view_open(device, count != NULL, &view);

        return r == VIEW_READY ? NVML_NOT_SUPPORTED : r;
}

/* MIG mode can be switched on, but no instances are made. */
EXPORT NvmlReturn nvmlDeviceGetMigDeviceHandleByIndex(NvmlDevice device, unsigned index, NvmlDevice *mig) {
        View view;
        NvmlReturn r = view_open(device, mig != NULL, &view);

        return r == VIEW_READY ? NVML_NOT_FOUND : r;
}

EXPORT NvmlReturn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(NvmlDevice mig, NvmlDevice *device) {
        View view;
        NvmlReturn r = view_open(mig, device != NULL, &view);

        return r == VIEW_READY ? NVML_INVALID_ARGUMENT : r;
}

EXPORT NvmlReturn nvmlDeviceGetCpuAffinity(NvmlDevice device, unsigned words, unsigned long *set) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        const unsigned bits = 8 * sizeof *set;
        NvmlReturn r;
        View view;

        r = view_open(device, set && words > 0, &view);
        if (r != VIEW_READY)
                return r;
        memset(set, 0, words * sizeof *set);
        for (unsigned i = 0; i < (unsigned) (cpus > 0 ? cpus : 1) && i / bits < words; i++)
                set[i / bits] |= 1UL << i % bits;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetTopologyCommonAncestor(NvmlDevice device, NvmlDevice other, int *level) {
        NvmlReturn r;
        View a, b;

        r = view_open(device, level != NULL, &a);
        if (r == VIEW_READY)
                r = view_open(other, true, &b);
        if (r != VIEW_READY)
                return r;
        /* Two GPUs share a CPU's NUMA node; the others are across the machine. */
        *level = a.gpu.index / 2 == b.gpu.index / 2 ? 40 : 50;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetP2PStatus(NvmlDevice device, NvmlDevice other, int capability, int *status) {
        bool same_clique;
        NvmlReturn r;
        View a, b;

        r = view_open(device, status && capability >= 0 && capability < 5, &a);
        if (r == VIEW_READY)
                r = view_open(other, true, &b);
        if (r != VIEW_READY)
                return r;
        same_clique = a.gpu.clique == b.gpu.clique && tray_gpu_fabric_state(&a.header, &a.gpu, a.now) == 3 &&
                        tray_gpu_fabric_state(&b.header, &b.gpu, b.now) == 3;
        *status = same_clique ? 0 : 5; /* OK, not supported (header 13.3.29) */
        return NVML_OK;
}
