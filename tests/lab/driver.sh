#!/bin/bash
# SPDX-License-Identifier: MIT
# A driver that fails, hangs or loses its service under an epilog: the node is drained, the GPU is not clean,
# and a later reset cures it.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# state_of GPU: as last published; nothing is probed.
state_of() {
        on "$tray" "gpuagentctl list --no-legend" | awk -v gpu="$1" '$2 == gpu { print $9 }'
}

state_is() {
        [[ $(state_of "$1") == "$2" ]]
}

cure() {
        succeeds "a reset cures it" on "$tray" 'gpuagentctl reset'
        resume "$tray"
        within 30 "and the node is back" tray_is_ready "$tray"
}

# Slurm itself forgets an epilog that slurmd does not survive, and would call the node idle.
failing_reset() {
        local job

        on "$tray" 'gpuagent-emulate fail-reset 0 --count 1'
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "a reset that will fail is under way" is_resetting "$tray"
        on "$tray" 'systemctl kill --signal=KILL --kill-whom=main slurmd'
        within 30 "it fails after slurmd was killed" state_is 0 quarantined
        on "$tray" 'systemctl restart slurmd'
        within 120 "slurmd, started again, takes the job for over" job_is_over "$job"
        within 20 "the node is drained all the same" node_is "$tray" drained
        like "with our reason" "$(node_reason "$tray")" "^gpuagent: GPU 0 .*, job $job$"
        like "the journal has it" "$(audit "$tray" "$job")" "^job $job: GPU reset of 0 failed: GPU 0 "
        is "the GPU is still quarantined" "$(state_of 0)" quarantined
        cure
}

hanging_driver() {
        local job

        on "$tray" 'printf "driver: {probe-timeout: 3s}\n" >/etc/gpuagent/gpuagentd.yaml.d/20-hang.yaml &&
                systemctl reload gpuagentd && gpuagent-emulate hang on'
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "the epilog ends though the driver hangs" job_is_over "$job"
        within 20 "the node is drained" node_is "$tray" drained
        like "with our reason" "$(node_reason "$tray")" "^gpuagent: GPU 0 .*, job $job$"
        like "the GPU is not clean" "$(state_of 0)" '^(dirty|quarantined)$'
        is "the agent says what is wrong" "$(manager_property DriverState)" unresponsive
        on "$tray" 'gpuagent-emulate hang off'
        within 30 "the driver answers again" driver_is_ok
        like "what the job had is still not clean" "$(state_of 0)" '^(dirty|quarantined)$'
        on "$tray" 'rm /etc/gpuagent/gpuagentd.yaml.d/20-hang.yaml && systemctl reload gpuagentd'
        cure
}

manager_property() {
        on "$tray" "busctl get-property $bus_manager $1" | cut -d ' ' -f 2- | tr -d '"'
}

driver_is_ok() {
        [[ $(manager_property DriverState) == ok ]]
}

killed_driver_service() {
        local job

        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "a reset is under way" is_resetting "$tray"
        on "$tray" 'systemctl kill --signal=KILL gpuagent-driver'
        within 60 "the epilog ends though the driver service is killed" job_is_over "$job"
        within 20 "the node is drained" node_is "$tray" drained
        like "the GPU is not clean" "$(state_of 0)" '^(dirty|quarantined)$'
        cure
}

begin
failing_reset
hanging_driver
killed_driver_service
finish
