/* SPDX-License-Identifier: MIT */
#include "agent/core/recovery.h"

#include <stdio.h>

#include "agent/base/cleanup.h"
#include "agent/base/sample.h"

/* What follows "needs the recovery action NAME". */
static const char *const cure_table[_CURE_MAX] = {
        [CURE_NONE] = "",
        [CURE_RESET] = "",
        [CURE_REBOOT] = ", which a GPU reset cannot replace; reboot the tray",
        [CURE_WAIT] = ": the applications on its peers have to end first",
        [CURE_IMEX] = ", which a GPU reset cannot replace; restart nvidia-imex on the domain's trays",
};

/* open-gpu-kernel-modules 595, _gpuRefreshRecoveryActionInLock(), and the driver 615 documentation for the
 * last two. */
static const Cure action_table[_RECOVERY_ACTION_MAX] = {
        [RECOVERY_NONE] = CURE_NONE,
        [RECOVERY_GPU_RESET] = CURE_RESET,
        [RECOVERY_NODE_REBOOT] = CURE_REBOOT,
        [RECOVERY_DRAIN_P2P] = CURE_WAIT,
        [RECOVERY_DRAIN_AND_RESET] = CURE_RESET,
        [RECOVERY_RECOVER_IMEX_DOMAIN] = CURE_IMEX,
        [RECOVERY_BUS_RESET] = CURE_REBOOT,
        [RECOVERY_SYSTEM_REBOOT] = CURE_REBOOT,
};

/* Of the others 151 is a virtual machine's restart; what the last of these ask for is in their text, and the
 * recovery action says it, too. */
static const uint32_t reset_xids[] = { 46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158 };
static const uint32_t reboot_xids[] = { 79 };
static const uint32_t told_xids[] = { 48, 74, 144, 145, 146, 147, 148, 149, 150, 154 };

static bool is_one_of(uint32_t xid, const uint32_t *xids, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (xids[i] == xid)
                        return true;
        return false;
}

Cure recovery_cure(int32_t action) {
        return action >= 0 && action < _RECOVERY_ACTION_MAX ? action_table[action] : CURE_NONE;
}

void recovery_explain(int32_t action, char *ret, size_t size) {
        char name[32];

        recovery_action_format(action, name, sizeof name);
        (void) snprintf(ret, size, "needs the recovery action %s%s", name,
                        cure_table[recovery_cure(action)]);
}

Cure xid_cure(uint32_t xid) {
        if (is_one_of(xid, reboot_xids, ELEMENTSOF(reboot_xids)))
                return CURE_REBOOT;
        if (is_one_of(xid, reset_xids, ELEMENTSOF(reset_xids)))
                return CURE_RESET;
        return CURE_NONE;
}

bool xid_calls_for_look(uint32_t xid) {
        return xid_cure(xid) != CURE_NONE || is_one_of(xid, told_xids, ELEMENTSOF(told_xids));
}

void xid_explain(uint32_t xid, char *ret, size_t size) {
        (void) snprintf(ret, size,
                        xid_cure(xid) == CURE_REBOOT ? "the driver logged Xid %u; reboot the tray"
                                                     : "the driver logged Xid %u, which needs a reset",
                        xid);
}
