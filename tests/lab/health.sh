#!/bin/bash
# SPDX-License-Identifier: MIT
# Slurm's health check: a quarantined GPU drains its node before a job meets it, and a node that was drained for us comes
# back when it verifies; and the check of slurm.conf.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# As slurmd runs it, with next to no environment.
health() {
        on "$tray" 'env -i /usr/lib/gpuagent/slurm/health 2>/dev/null'
}

quarantine() {
        on "$tray" 'gpuagent-emulate fail-reset 0 --count 1; gpuagentctl reset -i 0' >/dev/null 2>&1
}

configuration_is_checked() {
        local output

        output=$(on "$tray" 'gpuagentctl slurm-check')
        is "with the gate slurm-check is content" $? 0
        like "and warns of the lab's own ways" "$output" 'slurm\.conf:[0-9]+: warning: ProctrackType'
        output=$(on "$tray" "sed '/^Prolog/d' /etc/slurm/slurm.conf >/tmp/slurm.conf; gpuagentctl slurm-check /tmp/slurm.conf")
        is "without it it is not" $? 1
        like "and says what is missing" "$output" '^/tmp/slurm\.conf: error: Prolog='
}

by_hand() {
        quarantine
        like "a quarantined GPU is found" "$(health)" "^$tray is drained: GPU 0 is quarantined: "
        is "its node is drained" "$(node_state "$tray")" drained
        like "with the reason" "$(node_reason "$tray")" '^gpuagent: GPU 0 is quarantined: '
        like "which is in the journal" "$(on "$tray" 'journalctl --sync; journalctl --quiet --boot -t slurm-health -o cat')" \
                "$tray is drained: GPU 0"
        on "$tray" 'gpuagentctl reset' >/dev/null 2>&1
        health >/dev/null
        is "a clean node stays drained for the administrator" "$(node_state "$tray")" drained
        configure "$tray" 'slurm: {resume: true}'
        is "unless that is to be done, too" "$(health)" "$tray is in use again: all GPUs are clean"
        within 20 "the node takes jobs" node_is "$tray" idle
        controller "scontrol update nodename=$tray state=drain reason='fan broken'"
        health >/dev/null
        is "what somebody else has drained stays so" "$(node_state "$tray") $(node_reason "$tray")" 'drained fan broken'
        controller "scontrol update nodename=$tray state=resume"
}

# A process held the GPU when the job ended, and then went away: nobody has to be asked about that.
held_once() {
        on "$tray" 'systemd-run --quiet --unit=intruder sh -c "exec sleep infinity </dev/nvidia0"'
        within 20 "somebody else holds a GPU" on "$tray" 'gpuagentctl ps | grep -q intruder'
        on "$tray" 'systemctl stop intruder; gpuagentctl ps' >/dev/null
        controller "scontrol update nodename=$tray state=drain reason='gpuagent: GPU 0 held by sleep (pid 1), job 1'"
        is "a drained node's GPU that was held is reset" "$(health)" \
                "$tray is drained, and its GPUs are reset before it is used again"
        within 30 "and clean" on "$tray" 'gpuagentctl verify'
        is "then the node is taken back" "$(health)" "$tray is in use again: all GPUs are clean"
        within 20 "and takes jobs" node_is "$tray" idle
        quarantine
        health >/dev/null
        health >/dev/null
        like "a quarantined GPU is left to a person" "$(on "$tray" 'gpuagentctl --no-legend' | head -n 1)" quarantined
        on "$tray" 'gpuagentctl reset' >/dev/null 2>&1
        health >/dev/null
        within 20 "whose reset is all that it takes" node_is "$tray" idle
}

by_slurm() {
        slurm_conf "$gate_lines"$'\nHealthCheckProgram=/usr/lib/gpuagent/slurm/health\nHealthCheckInterval=5'
        quarantine
        within 60 "Slurm runs it, and drains the node" node_is "$tray" drained
        like "with our reason" "$(node_reason "$tray")" '^gpuagent: GPU 0 is quarantined: '
        on "$tray" 'gpuagentctl reset' >/dev/null 2>&1
        within 60 "and takes it back when it is clean" node_is "$tray" idle
        slurm_conf "$gate_lines"
}

begin gate
configuration_is_checked
by_hand
held_once
by_slurm
unconfigure "$tray"
finish
