/* SPDX-License-Identifier: MIT */
/* What cures a GPU: the one place that knows what the driver's recovery actions and Xids ask for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Cure {
        CURE_NONE,   /* nothing is wrong, or nothing that says so is known */
        CURE_RESET,  /* the reset between two tenants */
        CURE_REBOOT, /* no reset helps; the tray has to be rebooted */
        CURE_WAIT,   /* the applications on its peers have to end; the driver then names the next action */
        CURE_IMEX,   /* nvidia-imex has to be restarted; no reset helps */
        _CURE_MAX,
} Cure;

/* What a RecoveryAction asks for. CURE_NONE for an unknown one and for one that a later driver brings: it
 * keeps a GPU from being clean, and whether the reset cured it shows afterwards. */
Cure recovery_cure(int32_t action);

/* "needs the recovery action node-reboot, which a GPU reset cannot replace; reboot the tray", "needs the
 * recovery action 9". To be put after "GPU 0 ". */
void recovery_explain(int32_t action, char *ret, size_t size);

/* What an Xid asks for, CURE_NONE for the many that are the application's, or only for the log (NVIDIA's Xid
 * catalogue as of driver 580). */
Cure xid_cure(uint32_t xid);

/* Whether the driver may have changed its mind about a GPU that logged this: worth a look at once. */
bool xid_calls_for_look(uint32_t xid);

/* "the driver logged Xid 79; reboot the tray", "the driver logged Xid 62, which needs a reset". */
void xid_explain(uint32_t xid, char *ret, size_t size);
