/* SPDX-License-Identifier: MIT */
#include "agent/base/sample.h"

#include <stdio.h>

#include "agent/base/cleanup.h"

static const char *const fabric_state_table[_FABRIC_STATE_MAX] = {
        [FABRIC_NOT_SUPPORTED] = "not-supported",
        [FABRIC_NOT_STARTED] = "not-started",
        [FABRIC_IN_PROGRESS] = "in-progress",
        [FABRIC_COMPLETED] = "completed",
};

static const char *const fabric_health_table[_FABRIC_HEALTH_MAX] = {
        [FABRIC_HEALTH_NOT_SUPPORTED] = "not-supported",
        [FABRIC_HEALTH_HEALTHY] = "healthy",
        [FABRIC_HEALTH_UNHEALTHY] = "unhealthy",
        [FABRIC_HEALTH_LIMITED_CAPACITY] = "limited-capacity",
};

static const char *const recovery_action_table[_RECOVERY_ACTION_MAX] = {
        [RECOVERY_NONE] = "none",
        [RECOVERY_GPU_RESET] = "gpu-reset",
        [RECOVERY_NODE_REBOOT] = "node-reboot",
        [RECOVERY_DRAIN_P2P] = "drain-p2p",
        [RECOVERY_DRAIN_AND_RESET] = "drain-and-reset",
        [RECOVERY_RECOVER_IMEX_DOMAIN] = "recover-imex-domain",
        [RECOVERY_BUS_RESET] = "bus-reset",
        [RECOVERY_SYSTEM_REBOOT] = "system-reboot",
};

static const char *const driver_state_table[_DRIVER_STATE_MAX] = {
        [DRIVER_UNKNOWN] = "unknown",
        [DRIVER_OK] = "ok",
        [DRIVER_MISSING] = "missing",
        [DRIVER_FAILED] = "failed",
        [DRIVER_UNRESPONSIVE] = "unresponsive",
};

static const char *const reset_verdict_table[_RESET_VERDICT_MAX] = {
        [RESET_DONE] = "done",
        [RESET_IN_USE] = "in-use",
        [RESET_NOT_SUPPORTED] = "not-supported",
        [RESET_FAILED] = "failed",
};

static const char *const tenant_presence_table[_TENANT_PRESENCE_MAX] = {
        [TENANT_UNKNOWN] = "unknown",
        [TENANT_ALIVE] = "alive",
        [TENANT_NO_SIGN] = "no-sign",
};

static const char* table_get(const char *const *table, size_t n, uint32_t value) {
        return value < n ? table[value] : NULL;
}

const char* fabric_state_to_string(uint32_t state) {
        return table_get(fabric_state_table, ELEMENTSOF(fabric_state_table), state);
}

const char* fabric_health_to_string(uint32_t health) {
        return table_get(fabric_health_table, ELEMENTSOF(fabric_health_table), health);
}

const char* driver_state_to_string(DriverState state) {
        return table_get(driver_state_table, ELEMENTSOF(driver_state_table), (uint32_t) state);
}

const char* reset_verdict_to_string(uint32_t verdict) {
        return table_get(reset_verdict_table, ELEMENTSOF(reset_verdict_table), verdict);
}

const char* tenant_presence_to_string(uint32_t presence) {
        return table_get(tenant_presence_table, ELEMENTSOF(tenant_presence_table), presence);
}

void recovery_action_format(int32_t action, char *ret, size_t size) {
        if (action == RECOVERY_UNKNOWN)
                (void) snprintf(ret, size, "unknown");
        else if (action >= 0 && action < _RECOVERY_ACTION_MAX)
                (void) snprintf(ret, size, "%s", recovery_action_table[action]);
        else
                (void) snprintf(ret, size, "%d", action);
}

bool gpu_sample_has_clique(const GpuSample *sample) {
        return sample->fabric_state == FABRIC_COMPLETED && sample->fabric_status == 0 &&
                        sample->cluster_uuid[0] != '\0';
}

bool gpu_sample_has_settled(const GpuSample *sample) {
        return sample->fabric_state == FABRIC_NOT_SUPPORTED || sample->fabric_state == FABRIC_COMPLETED;
}

void gpu_sample_init(GpuSample *sample) {
        *sample = (GpuSample){
                .index = UNKNOWN_U32,
                .minor = UNKNOWN_U32,
                .partition = UNKNOWN_U32,
                .partition_clique = UNKNOWN_U32,
                .recovery_action = RECOVERY_UNKNOWN,
                .n_processes = UNKNOWN_U32,
                .memory_total = UNKNOWN_U64,
                .memory_used = UNKNOWN_U64,
                .utilization = UNKNOWN_U32,
                .power_mw = UNKNOWN_U32,
                .temperature = UNKNOWN_I32,
                .nvlink_tx_bytes = UNKNOWN_U64,
                .nvlink_rx_bytes = UNKNOWN_U64,
        };
}

void gpu_holder_format(const GpuHolder *holder, char *ret, size_t size) {
        (void) snprintf(ret, size, "%s (pid %d, user %s%s%s)",
                        holder->command[0] ? holder->command : "a process", (int) holder->pid, holder->user,
                        holder->where[0] ? ", " : "", holder->where);
}
