/* SPDX-License-Identifier: MIT */
/* What a GPU of the tray is at one moment, worked out from the stored state and the time. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/nvml-abi.h"
#include "agent/emulation/tray.h"

static const char *const dialects[_DIALECT_MAX] = {
        [DIALECT_NVIDIA] = "nvidia",
        [DIALECT_AI_LAB] = "ai-lab",
};

const char* dialect_to_string(Dialect dialect) {
        return (unsigned) dialect < _DIALECT_MAX ? dialects[dialect] : NULL;
}

Dialect dialect_from_string(const char *s) {
        for (Dialect i = 0; i < _DIALECT_MAX; i++)
                if (streq(s, dialects[i]))
                        return i;
        return _DIALECT_INVALID;
}

bool tray_gpu_is_resetting(const TrayGpu *gpu, usec_t now) {
        return gpu->reset_end_usec != 0 && now < gpu->reset_end_usec;
}

void tray_gpu_at(const TrayHeader *header, TrayGpu *gpu, usec_t now) {
        if (gpu->reset_end_usec == 0 || now < gpu->reset_end_usec)
                return;

        if (gpu->reset_outcome == RESET_OUTCOME_FAILED) {
                gpu->recovery_action = NVML_RECOVERY_GPU_RESET;
        } else {
                usec_t settle = gpu->settle_usec == TRAY_SETTLE_DEFAULT ? header->settle_usec
                                                                        : gpu->settle_usec;

                gpu->clique = gpu->reset_clique;
                gpu->applied_partition = gpu->reset_partition;
                gpu->settle_start_usec = gpu->reset_end_usec;
                gpu->settled_usec = usec_add(gpu->reset_end_usec, settle);
                gpu->recovery_action = gpu->reset_outcome == RESET_OUTCOME_LIES ? NVML_RECOVERY_GPU_RESET
                                                                                : NVML_RECOVERY_NONE;
                gpu->last_xid = 0;
                gpu->mig = gpu->mig_pending;
                gpu->ecc_corrected = 0;
                gpu->ecc_uncorrected = 0;
                gpu->row_remap_pending = 0;
                gpu->reset_count++;
        }
        gpu->reset_end_usec = 0;
}

uint32_t tray_gpu_fabric_state(const TrayHeader *header, const TrayGpu *gpu, usec_t now) {
        if (header->model.n_links == 0)
                return NVML_FABRIC_NOT_SUPPORTED;
        if (now >= gpu->settled_usec)
                return NVML_FABRIC_COMPLETED;

        /* The probe starts late in the first part of the wait, as with the real driver. */
        if (now < usec_add(gpu->settle_start_usec, header->settle_usec / 4))
                return NVML_FABRIC_NOT_STARTED;
        return NVML_FABRIC_IN_PROGRESS;
}

uint32_t tray_wanted_clique(const Tray *tray, const TrayGpu *gpu) {
        const TrayPartition *partition;

        if (!tray->header->model.cluster || gpu->partition == PARTITION_NONE)
                return 0;
        partition = tray_find_partition(tray, gpu->partition);
        return partition ? partition->clique : 0;
}

uint32_t tray_gpu_recovery_action(const Tray *tray, const TrayGpu *gpu) {
        if (gpu->recovery_action != NVML_RECOVERY_NONE)
                return gpu->recovery_action;
        if (!tray->header->model.cluster)
                return NVML_RECOVERY_NONE;
        if (gpu->partition != gpu->applied_partition || gpu->clique != tray_wanted_clique(tray, gpu))
                return NVML_RECOVERY_GPU_RESET;
        return NVML_RECOVERY_NONE;
}

static uint32_t health_field(bool value, unsigned shift) {
        return (uint32_t) (value ? NVML_FABRIC_HEALTH_TRUE : NVML_FABRIC_HEALTH_FALSE) << shift;
}

uint32_t tray_gpu_fabric_health(const TrayHeader *header, const TrayGpu *gpu) {
        uint64_t all = header->model.n_links >= 64 ? UINT64_MAX : (UINT64_C(1) << header->model.n_links) - 1;
        uint32_t mask;

        /* Machines without a cluster (HGX) report no health. */
        if (!header->model.cluster)
                return 0;

        mask = health_field((gpu->links_up & all) != all, NVML_FABRIC_HEALTH_DEGRADED_BW_SHIFT) |
                        health_field(false, NVML_FABRIC_HEALTH_ROUTE_RECOVERY_SHIFT) |
                        health_field(false, NVML_FABRIC_HEALTH_ROUTE_UNHEALTHY_SHIFT) |
                        health_field(false, NVML_FABRIC_HEALTH_ACCESS_TIMEOUT_SHIFT);
        if (header->model.config_health)
                mask |= (uint32_t) (gpu->applied_partition == PARTITION_NONE
                                                        ? NVML_FABRIC_CONFIG_NO_PARTITION
                                                        : NVML_FABRIC_CONFIG_NONE)
                                << NVML_FABRIC_HEALTH_INCORRECT_CONFIG_SHIFT;
        return mask;
}

uint32_t fabric_health_summary(uint32_t mask) {
        uint32_t config = mask >> NVML_FABRIC_HEALTH_INCORRECT_CONFIG_SHIFT & 15;

        if (mask == 0)
                return NVML_FABRIC_SUMMARY_NOT_SUPPORTED;
        if ((mask >> NVML_FABRIC_HEALTH_ROUTE_UNHEALTHY_SHIFT & 3) == NVML_FABRIC_HEALTH_TRUE ||
                        (mask >> NVML_FABRIC_HEALTH_ACCESS_TIMEOUT_SHIFT & 3) == NVML_FABRIC_HEALTH_TRUE ||
                        config > 1 ||
                        (mask >> NVML_FABRIC_HEALTH_PARTITION_SHIFT & 3) == NVML_FABRIC_HEALTH_FALSE)
                return NVML_FABRIC_SUMMARY_UNHEALTHY;
        if ((mask >> NVML_FABRIC_HEALTH_DEGRADED_BW_SHIFT & 3) == NVML_FABRIC_HEALTH_TRUE ||
                        (mask >> NVML_FABRIC_HEALTH_ROUTE_RECOVERY_SHIFT & 3) == NVML_FABRIC_HEALTH_TRUE)
                return NVML_FABRIC_SUMMARY_LIMITED_CAPACITY;
        return NVML_FABRIC_SUMMARY_HEALTHY;
}

static void hang_on_file(const char *path) {
        CLEANUP(fd_close) int fd = -1;
        char byte;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0)
                (void) !read(fd, &byte, sizeof byte);
}

void tray_hang(const Tray *tray) {
        CLEANUP(tray_done) Tray now = TRAY_INIT;
        uint8_t hang = tray->header->hang;
        sigset_t all, before;

        if (hang == HANG_OFF)
                return;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_BLOCK, &all, &before);
        while (hang != HANG_OFF) {
                if (hang == HANG_FILE)
                        hang_on_file(tray->header->hang_path);
                (void) poll(NULL, 0, 20);

                tray_done(&now);
                if (tray_open(&now) >= 0)
                        hang = now.header->hang;
        }
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
}
