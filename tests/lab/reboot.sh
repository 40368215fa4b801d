#!/bin/bash
# SPDX-License-Identifier: MIT
# A tray's boot: it takes a new clique, resets all GPUs once before work arrives, and comes up without a
# failed unit.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker2

# unit_property UNIT PROPERTY: times are monotonic microseconds.
unit_property() {
        on "$tray" "systemctl show --property=$2 --value $1"
}

# How often the boot's reset was begun in this boot.
boot_resets() {
        on "$tray" 'journalctl --quiet --boot --output=cat -u gpuagent-boot-reset | grep -c "^Starting "'
}

security_score() {
        on "$tray" "systemd-analyze security --no-pager $1" |
                sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\) .*/\1/p'
}

# at_most NAME SEEN LIMIT
at_most() {
        if awk -v seen="$2" -v limit="$3" 'BEGIN { exit !(seen != "" && seen + 0 <= limit) }'; then
                pass "$1 ($2)"
        else
                fail "$1" "seen: $2"
        fi
}

boot_takes_the_new_clique() {
        assign "$tray" 7 tray2 >/dev/null
        within 30 "a partition change is pending" column_is "$tray" RESET 'pending pending pending pending'
        is "with the old clique" "$(column "$tray" CLIQUE)" '1 1 1 1'
        succeeds "the tray reboots" "$lab" reboot "$tray"
        is "the partition has outlived it" "$(column "$tray" PARTITION)" '7 7 7 7'
        is "the new clique is in effect" "$(column "$tray" CLIQUE)" '7 7 7 7'
        is "nothing is pending" "$(column "$tray" RESET)" '- - - -'
        within 30 "the node takes work again" node_is "$tray" idle
}

boot_is_in_order() {
        local reset_end slurmd_start

        is "the system is running" "$(on "$tray" 'systemctl is-system-running')" running
        is "the boot's reset has succeeded" "$(unit_property gpuagent-boot-reset Result)" success
        is "and stays done" "$(unit_property gpuagent-boot-reset ActiveState)" active
        is "all GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        is "each was reset once" "$(reset_counts "$tray")" '1 1 1 1'
        reset_end=$(unit_property gpuagent-boot-reset ExecMainExitTimestampMonotonic)
        slurmd_start=$(unit_property slurmd ExecMainStartTimestampMonotonic)
        if ((reset_end > 0 && reset_end <= slurmd_start)); then
                pass "before slurmd started"
        else
                fail "before slurmd started"
        fi
        is "the agent did not restart" "$(unit_property gpuagentd NRestarts)" 0
        is "our units logged no error" \
                "$(on "$tray" 'journalctl --quiet --boot --priority=err --output=cat -u "gpuagent*"')" ''
}

restart_is_not_a_boot() {
        succeeds "the agent restarts" on "$tray" 'systemctl restart gpuagentd'
        is "what was clean is clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        is "the boot's reset ran once" "$(boot_resets)" 1
        succeeds "starting it again does nothing" on "$tray" 'systemctl start gpuagent-boot-reset'
        is "and resets nothing" "$(boot_resets)" 1
}

units_are_confined() {
        at_most "gpuagentd.service is exposed at most 1.5" "$(security_score gpuagentd.service)" 1.5
        at_most "gpuagent-driver.service at most 4.5" "$(security_score gpuagent-driver.service)" 4.5
        is "the agent runs as gpuagent" "$(on "$tray" 'ps -C gpuagentd -o user=')" gpuagent
}

begin
boot_takes_the_new_clique
boot_is_in_order
restart_is_not_a_boot
units_are_confined
make_ready "$tray" >/dev/null 2>&1
finish
