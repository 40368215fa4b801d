#!/bin/bash
# SPDX-License-Identifier: MIT
# Monitoring that holds GPUs is stopped for a reset, by a real systemd, and runs again whatever happens.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# exporter NAME [OPTION of env]: a unit that holds GPU 0.
exporter() {
        on "$tray" "printf '%s\\n' '[Service]' 'TimeoutStopSec=300' \
                'ExecStart=/bin/sh -c \"exec env ${2-} sleep infinity </dev/nvidia0\"' \
                >/run/systemd/system/$1.service && systemctl daemon-reload && systemctl start $1"
        poll 10 on "$tray" "gpuagentctl ps -i 0 | grep -F $1.service"
}

main_pid() {
        on "$tray" "systemctl show --property=MainPID --value $1"
}

exporter_runs_anew() {
        local pid

        pid=$(main_pid exporter)
        [[ $pid != 0 && $pid != "$1" ]]
}

job_with_an_exporter() {
        local job before

        before=$(main_pid exporter)
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "a job ends on a GPU that an exporter holds" job_is_over "$job"
        is "its GPU was reset" "$(audit "$tray" "$job")" "job $job: GPUs 0 reset"
        within 10 "the exporter runs again, anew" exporter_runs_anew "$before"
        within 20 "the node is idle" node_is "$tray" idle
}

failed_reset() {
        local before rc=0

        before=$(main_pid exporter)
        on "$tray" 'gpuagent-emulate fail-reset 0'
        on "$tray" 'gpuagentctl reset -i 0' >/dev/null 2>&1 || rc=$?
        is "a reset that the driver fails" "$rc" 1
        within 10 "has the exporter run again, too" exporter_runs_anew "$before"
        on "$tray" 'gpuagent-emulate heal'
        succeeds "the next reset cures the GPU" on "$tray" 'gpuagentctl reset -i 0'
}

exporter_is_stopped() {
        [[ $(main_pid exporter) == 0 ]]
}

# killed UNIT WHOM: in the middle of a reset.
killed() {
        local before

        before=$(main_pid exporter)
        on "$tray" 'systemd-run --quiet --collect --unit=resets gpuagentctl reset -i 0'
        within 30 "a reset has stopped the exporter" exporter_is_stopped
        on "$tray" "systemctl kill --signal=KILL --kill-whom=$2 $1"
        within 60 "$1 is killed: the exporter runs again" exporter_runs_anew "$before"
        within 30 "and the agent answers" on "$tray" 'gpuagentctl list'
        succeeds "a reset leaves the GPU clean" on "$tray" 'gpuagentctl reset -i 0'
}

stubborn_unit() {
        local output rc=0 before

        before=$(main_pid exporter)
        exporter stubborn --ignore-signal=TERM
        configure "$tray" 'quiesce: {units: [exporter.service, stubborn.service]}'
        output=$(on "$tray" 'gpuagentctl --timeout=60 reset -i 0' 2>&1) || rc=$?
        is "a unit that does not stop fails the reset" "$rc" 1
        like "and is named" "$output" 'stubborn\.service'
        within 10 "the exporter runs again" exporter_runs_anew "$before"
        # Killed, it is started again, as what was told to stop is.
        on "$tray" 'systemctl kill --signal=KILL stubborn; sleep 2; systemctl stop --no-block stubborn; sleep 1
                systemctl kill --signal=KILL stubborn'
}

begin
exporter exporter
configure "$tray" 'quiesce: {units: [exporter.service]}'
job_with_an_exporter
failed_reset
killed gpuagentd main
killed gpuagent-driver.service all
stubborn_unit
on "$tray" 'systemctl stop exporter stubborn; rm /run/systemd/system/{exporter,stubborn}.service
        systemctl daemon-reload'
unconfigure "$tray"
make_ready "$tray" >/dev/null 2>&1
finish
