#!/bin/bash
# SPDX-License-Identifier: MIT
# The system bus restarts in the middle of a reset, or is not there at all: Slurm's jobs go on by the private
# socket, and so do refusals; the agent's name comes back by itself when the bus does.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# logind does not come back to a bus that restarts, and logins wait for it: it is restarted, too.

# tenants: without the bus that column() needs.
tenants() {
        on "$tray" 'gpuagentctl list --no-legend' | awk '{ print $NF }' | paste -sd ' '
}

bus_restarts_during_an_epilog() {
        local job

        job=$(submit -w "$tray" --gpus=4 'true')
        within 30 "an epilog resets" is_resetting "$tray"
        succeeds "the bus restarts meanwhile" on "$tray" 'systemctl restart dbus systemd-logind'
        within 90 "the job ends" job_is_over "$job"
        is "its GPUs were reset" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        within 20 "the node is idle" node_is "$tray" idle
        within 20 "the agent's name is back" on "$tray" 'busctl status org.gpuagent1'
}

jobs_run_without_a_bus() {
        local job everywhere

        succeeds "the bus is stopped for good" on "$tray" 'systemctl stop dbus.socket dbus.service'
        succeeds "nobody is on it" on "$tray" '! busctl list'
        # shellcheck disable=SC2016 # expanded in the job
        job=$(submit -w "$tray" --gpus=4 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        everywhere="slurm/$job.0 slurm/$job.0 slurm/$job.0 slurm/$job.0"
        within 60 "a job runs all the same" job_is_running "$job"
        is "its GPUs are booked" "$(tenants)" "$everywhere"
        succeeds "the agent restarts, and finds no bus" on "$tray" 'systemctl restart gpuagentd'
        is "it knows whose the GPUs are" "$(tenants)" "$everywhere"
        on "$tray" 'touch /shared/go'
        within 90 "the job ends" job_is_over "$job"
        on "$tray" 'rm -f /shared/go'
        is "it has completed" "$(job_state "$job")" COMPLETED
        is "its GPUs were reset" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        is "and are free" "$(tenants)" '- - - -'
        within 20 "the node is idle" node_is "$tray" idle
}

refusals_work_without_a_bus() {
        local job

        hold "$tray" 0
        job=$(submit -w "$tray" --gpus=1 'touch /shared/ran')
        within 90 "a GPU that somebody holds drains the node" node_is "$tray" drained
        like "with our reason" "$(node_reason "$tray")" \
                "^gpuagent: GPU 0 held by python3.*, unit foreign\.service\), job $job$"
        like "which the journal has, too" "$(prolog_said "$tray" "$job")" \
                "^job $job: .*GPU 0 is held by python3.*, unit foreign\.service"
        succeeds "nothing of the job has run" on "$tray" '! test -e /shared/ran'
        controller "scancel $job"
        let_go "$tray"
        succeeds "without the holder the GPU is reset" on "$tray" 'gpuagentctl reset -i 0'
        resume "$tray"
}

name_comes_back() {
        succeeds "the bus is there again" on "$tray" 'systemctl start dbus.socket dbus && systemctl restart systemd-logind'
        within 20 "the agent's name comes back by itself" on "$tray" 'busctl status org.gpuagent1'
        is "with the same GPUs behind it" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 60 "the node is idle" node_is "$tray" idle
}

begin gate
configure "$tray" 'handover: {busy-grace: 5s}'
# The fabric takes its time after a reset, so that there is some to restart the bus in.
on "$tray" 'gpuagent-emulate settle 0,1,2,3 3s'
bus_restarts_during_an_epilog
on "$tray" 'gpuagent-emulate settle 0,1,2,3 default'
jobs_run_without_a_bus
refusals_work_without_a_bus
name_comes_back
cancel_all
unconfigure "$tray"
finish
