#!/bin/bash
# SPDX-License-Identifier: MIT
# An operator's change of partitions over both trays, from the controller: waiting for jobs, reset by their epilogs or by the
# command, undone where a tray cannot be reached.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

# operator WORDS: gpuagentctl partition WORDS, by root on the controller.
operator() {
        controller "gpuagentctl partition $1" 2>&1
}

partitions() {
        operator list | awk 'NR > 1 { print $1, $3, $4 }'
}

# Both trays' cliques.
cliques() {
        printf '%s | %s' "$(column sched-worker1 CLIQUE)" "$(column sched-worker2 CLIQUE)"
}

change_waits_for_the_epilog() {
        local job log

        is "all GPUs are in the default partition" "$(partitions)" \
                $'32766 sched-worker1 0,1,2,3\n32766 sched-worker2 0,1,2,3'
        job=$(submit --nodelist=sched-worker2 --gpus=4 'while [ ! -e /shared/go ]; do sleep 0.2; done')
        within 60 "a job has the tray's GPUs" job_is_running "$job"
        like "its tray gets a partition of its own meanwhile" \
                "$(operator 'remove default sched-worker2' && operator 'create tray2 --id 7 2')" \
                'partition created: 7 tray2'
        is "and keeps its clique" "$(cliques)" '1 1 1 1 | 1 1 1 1'
        is "with resets pending" "$(column sched-worker2 RESET)" 'pending pending pending pending'
        on sched-worker2 'touch /shared/go'
        within 60 "the job ends" job_is_over "$job"
        is "its epilog has taken the new clique" "$(cliques)" '1 1 1 1 | 7 7 7 7'
        log=$(audit sched-worker2 "$job")
        is "as its line says" "$log" "job $job: GPUs 0,1,2,3 reset"
        on sched-worker2 'rm -f /shared/go'
}

wait_goes_all_the_way() {
        local job

        job=$(submit --nodelist=sched-worker1 --gpus=2 'while [ ! -e /shared/go ]; do sleep 0.2; done')
        within 60 "a job has two GPUs" job_is_running "$job"
        operator 'delete tray2' >/dev/null
        controller 'gpuagentctl partition remove default sched-worker1 &&
                systemd-run --quiet --collect --unit=change --property=StandardOutput=file:/tmp/change \
                        --property=StandardError=file:/tmp/change gpuagentctl partition create both --id 9 1 sched-worker2:0-3 --wait' \
                >/dev/null
        within 60 "--wait says that it waits for the job" \
                controller "grep 'sched-worker1: waits for GPUs [0-3],[0-3]: leased to slurm/$job.0' /tmp/change"
        within 60 "what is free is reset already" column_is sched-worker2 CLIQUE '9 9 9 9'
        on sched-worker1 'touch /shared/go'
        within 90 "it ends with the job" controller '! systemctl is-active --quiet change'
        like "with all GPUs in the new clique" "$(controller 'cat /tmp/change')" \
                $'sched-worker1: GPUs 0,1,2,3 reset, in clique 9\nsched-worker2: GPUs 0,1,2,3 reset, in clique 9'
        is "on both trays" "$(cliques)" '9 9 9 9 | 9 9 9 9'
        is "each of them clean" "$(column sched-worker1 STATE)" 'clean clean clean clean'
        on sched-worker1 'rm -f /shared/go'
        like "and back" "$(operator 'delete both --wait' && operator 'add default 1 2 --wait')" \
                $'sched-worker1: GPUs 0,1,2,3 reset, in clique 1\nsched-worker2: GPUs 0,1,2,3 reset, in clique 1$'
}

unreachable_tray_undoes_it() {
        local output rc=0

        on sched-worker2 'systemctl stop gpuagentd'
        output=$(controller 'gpuagentctl partition remove default 1 2' 2>&1) || rc=$?
        is "a change that one tray cannot be told fails" "$rc" 5
        like "and names the tray" "$output" '^gpuagentctl: sched-worker2: gpuagentd is not running'
        on sched-worker2 'systemctl start gpuagentd'
        within 30 "the agent is back" column_is sched-worker2 PARTITION '32766 32766 32766 32766'
        is "nothing has changed" "$(partitions)" $'32766 sched-worker1 0,1,2,3\n32766 sched-worker2 0,1,2,3'
}

others_may_look() {
        local output rc=0

        is "a user sees the partitions" "$(joe 'gpuagentctl partition --no-legend' | wc -l)" 2
        output=$(joe 'gpuagentctl partition remove default sched-worker2' 2>&1) || rc=$?
        is "and cannot change them" "$rc" 1
        like "which the fabric says" "$output" 'sched-worker2: the fabric refuses'
        is "so that nothing has changed" "$(partitions)" $'32766 sched-worker1 0,1,2,3\n32766 sched-worker2 0,1,2,3'
}

begin gate
change_waits_for_the_epilog
wait_goes_all_the_way
unreachable_tray_undoes_it
others_may_look
finish
