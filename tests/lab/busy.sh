#!/bin/bash
# SPDX-License-Identifier: MIT
# Who else has GPUs open at a handover: short visitors, what the job has left behind, and another job of the
# same user.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1
jobs=${VISITED_JOBS:-30}

# The long form has VISITED_JOBS=200.
visitors_do_no_harm() {
        local job

        on "$tray" "systemd-run --quiet --collect --unit=visitor \
                sh -c 'while :; do nvidia-smi -q >/dev/null; done'"
        job=$(submit -w "$tray" --gpus=1 --array="1-$jobs" 'true')
        within $((60 + jobs * 4)) "$jobs jobs end under a loop of nvidia-smi -q" job_is_over "$job"
        on "$tray" 'systemctl stop visitor'
        is "all of them have completed" "$(job_state "$job" | sort | uniq -c | xargs)" "$jobs COMPLETED"
        within 20 "the node is idle" node_is "$tray" idle
        is "and was not drained" "$(on sched-control "grep -c 'drain_nodes: node $tray' \
                /var/log/slurm/slurmctld.log")" "$drains"
}

# A daemon that has left the job's session and its parents, and so Slurm's sight.
leftover_is_ended() {
        local job pid

        job=$(submit -w "$tray" --gpus=1 '(setsid sleep 600 </dev/nvidia0 >/dev/null 2>&1 &
                echo $! >/shared/left); sleep 1')
        within 120 "a job that leaves a process on its GPU ends" job_is_over "$job"
        pid=$(on "$tray" 'cat /shared/left')
        is "its audit line" "$(audit "$tray" "$job")" "job $job: GPUs 0 reset"
        succeeds "what it has left is ended" on "$tray" "! pgrep -u joe -x sleep"
        like "and named in the journal" \
                "$(on "$tray" "journalctl --quiet --boot -u 'gpuagent*' -o cat | grep 'pid $pid'")" \
                "sleep.*pid $pid"
        within 20 "the node is idle" node_is "$tray" idle
}

# The other job runs as the same user and holds a GPU that is not its own.
other_job_is_left_alone() {
        local first second

        # shellcheck disable=SC2016 # expanded in the job
        first=$(submit -w "$tray" --gpus=1 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 30 "a job runs" job_is_running "$first"
        second=$(submit -w "$tray" --gpus=1 'exec sleep 600 </dev/nvidia0')
        within 30 "and one more, which holds the first one's GPU" job_is_running "$second"
        poll 10 on "$tray" "gpuagentctl ps -i 0 | grep 'job $second'"
        on "$tray" 'touch /shared/go'
        within 90 "the first one's epilog fails" node_drains "$tray"
        like "it names the other job's process" "$(audit "$tray" "$first")" \
                "^job $first: .* failed: GPU 0 is held by sleep \(pid [0-9]*, user joe, job $second\)"
        is "which still runs" "$(job_in_queue "$second")" 'RUNNING None'
        succeeds "with its process" on "$tray" 'pgrep -u joe -x sleep'
        controller "scancel $second"
        within 60 "it is cancelled" job_is_over "$second"
        make_ready "$tray" >/dev/null 2>&1
        within 180 "the tray is ready again" tray_is_ready "$tray"
}

begin gate
drains=$(controller "grep -c 'drain_nodes: node $tray' /var/log/slurm/slurmctld.log")
visitors_do_no_harm
leftover_is_ended
other_job_is_left_alone
cancel_all
finish
