/* SPDX-License-Identifier: MIT */
#include "agent/core/outcome.h"

#include "agent/base/cleanup.h"
#include "agent/base/text.h"

static const char *const outcome_table[_OUTCOME_MAX] = {
        [OUTCOME_DONE] = "done",
        [OUTCOME_SKIPPED] = "skipped",
        [OUTCOME_FABRIC_PENDING] = "fabric-pending",
        [OUTCOME_LEASED] = "leased",
        [OUTCOME_MAINTENANCE] = "maintenance",
        [OUTCOME_BUSY] = "busy",
        [OUTCOME_TIMED_OUT] = "timed-out",
        [OUTCOME_NOT_SUPPORTED] = "not-supported",
        [OUTCOME_NOT_CLEAN] = "not-clean",
        [OUTCOME_NO_DRIVER] = "no-driver",
        [OUTCOME_DRIVER_UNRESPONSIVE] = "driver-unresponsive",
        [OUTCOME_RESET_FAILED] = "reset-failed",
        [OUTCOME_NEEDS_REBOOT] = "needs-reboot",
};

const char* outcome_to_string(Outcome outcome) {
        return outcome >= 0 && outcome < _OUTCOME_MAX ? outcome_table[outcome] : NULL;
}

Outcome outcome_from_string(const char *s) {
        for (int outcome = 0; outcome < _OUTCOME_MAX; outcome++)
                if (streq(s, outcome_table[outcome]))
                        return (Outcome) outcome;
        return _OUTCOME_INVALID;
}

const char* outcome_error(Outcome outcome) {
        static const char *const errors[_OUTCOME_MAX] = {
                [OUTCOME_LEASED] = "Leased",
                [OUTCOME_MAINTENANCE] = "Maintenance",
                [OUTCOME_BUSY] = "Busy",
                [OUTCOME_TIMED_OUT] = "TimedOut",
                [OUTCOME_NOT_SUPPORTED] = "NotSupported",
                [OUTCOME_NOT_CLEAN] = "NotClean",
                [OUTCOME_NO_DRIVER] = "NoDriver",
                [OUTCOME_DRIVER_UNRESPONSIVE] = "DriverUnresponsive",
                [OUTCOME_RESET_FAILED] = "ResetFailed",
                [OUTCOME_NEEDS_REBOOT] = "NeedsReboot",
        };

        return outcome >= 0 && outcome < _OUTCOME_MAX ? errors[outcome] : NULL;
}

const char* outcome_advice(Outcome outcome) {
        static const char *const advice[_OUTCOME_MAX] = {
                [OUTCOME_LEASED] = "gpuagentctl release ends a lease whose end was missed",
                [OUTCOME_MAINTENANCE] = "gpuagentctl maintenance off ends it",
                [OUTCOME_TIMED_OUT] = "gpuagentctl status tells how it stands",
                [OUTCOME_NOT_CLEAN] = "gpuagentctl status tells what cures it",
                [OUTCOME_NO_DRIVER] = "gpuagentctl status tells what cures it",
                [OUTCOME_DRIVER_UNRESPONSIVE] = "if it does not come back by itself, reboot the tray",
                [OUTCOME_RESET_FAILED] = "reset it again, and reboot the tray if that fails, too",
        };

        return outcome >= 0 && outcome < _OUTCOME_MAX && advice[outcome] ? advice[outcome] : "";
}

void outcome_print_advice(FILE *file, Outcome outcome, const char *cause) {
        static const char *const deeds[] = { "reboot the tray", "restart nvidia-imex", "gpuagentctl ",
                "systemctl " };
        const char *advice = outcome_advice(outcome);

        for (size_t i = 0; i < ELEMENTSOF(deeds); i++)
                if (strstr(cause, deeds[i]))
                        return; /* it knows better than the outcome does */
        if (advice[0])
                (void) fprintf(file, "; %s", advice);
}
