#!/bin/bash
# SPDX-License-Identifier: MIT
# The shapes that Slurm jobs come in: arrays, requeued and heterogeneous ones, whole nodes; an epilog that
# comes twice, and a limit for the scripts.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# audited_since TIME: the agent's lines about epilogs.
audited_since() {
        on "$tray" "journalctl --sync; journalctl --quiet --boot --identifier=slurm-epilog --output=cat \
                --since='@$1' _SYSTEMD_UNIT=gpuagentd.service"
}

array() {
        local job start

        start=$(date +%s)
        job=$(submit -w "$tray" --gpus=1 --array=1-6 'true')
        within 120 "an array ends" job_is_over "$job"
        is "all of its jobs have completed" "$(job_state "$job" | sort | uniq -c | xargs)" '6 COMPLETED'
        is "each has its reset" "$(audited_since "$start" | grep -c '^job [0-9]*: GPUs [0-3] reset$')" 6
        within 20 "the node is idle" node_is "$tray" idle
}

requeue() {
        local job

        # shellcheck disable=SC2016 # expanded in the job
        job=$(submit -w "$tray" --gpus=1 --requeue 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 30 "a job runs" job_is_running "$job"
        is "it has the lease" "$(property "$tray" 0 Tenant)" "slurm/$job.0"
        succeeds "it is requeued" controller "scontrol requeue $job"
        within 60 "the epilog of its first run resets" has_audit "$tray" "$job"
        poll 30 job_may_start "$job"
        within 200 "it runs again" job_is_running "$job"
        is "as a tenant of its own" "$(property "$tray" 0 Tenant)" "slurm/$job.1"
        on "$tray" 'touch /shared/go'
        within 60 "it ends" job_is_over "$job"
        is "with a reset for each run" "$(audit "$tray" "$job")" \
                "job $job: GPUs 0 reset"$'\n'"job $job: GPUs 0 reset"
        on "$tray" 'rm -f /shared/go'
        within 20 "the node is idle" node_is "$tray" idle
}

# Slurm lets a requeued job wait for two minutes.
job_may_start() {
        controller "scontrol update jobid=$1 starttime=now"
}

heterogeneous() {
        local other=${trays[1]} job

        # shellcheck disable=SC2016 # expanded in the job
        job=$(joe "salloc --quiet -w $tray --gpus=1 : -w $other --gpus=2 bash -c 'echo \$SLURM_JOB_ID'")
        within 60 "a heterogeneous job ends" job_is_over "$job,$((job + 1))"
        is "its first part has its reset" "$(audit "$tray" "$job")" "job $job: GPUs 0 reset"
        like "and the second one its own" \
                "$(audit "$other" "$((job + 1))")" "^job $((job + 1)): GPUs [0-3],[0-3] reset\$"
        within 180 "the node is idle" node_is "$tray" idle
        within 180 "and the other one" node_is "$other" idle
}

whole_node() {
        local job

        job=$(submit -w "$tray" --exclusive 'true')
        within 60 "a job with the node to itself ends" job_is_over "$job"
        is "the node's GPUs are handed over, asked for or not" "$(audit "$tray" "$job")" \
                "job $job: GPUs 0,1,2,3 reset"
        within 20 "the node is idle" node_is "$tray" idle
}

epilog_comes_twice() {
        local job counts output gpus

        job=$(submit -w "$tray" --gpus=2 'true')
        within 60 "a job ends" job_is_over "$job"
        gpus=$(audit "$tray" "$job" | sed -n 's/^job [0-9]*: GPUs \(.*\) reset$/\1/p')
        counts=$(reset_counts "$tray")
        output=$(on "$tray" "env --ignore-environment SLURM_JOB_ID=$job SLURM_JOB_GPUS=$gpus \
                SLURM_JOB_UID=1000 SLURM_JOB_RESTART_COUNT=0 \
                SLURM_SCRIPT_CONTEXT=epilog_slurmd SLURMD_NODENAME=$tray \
                /usr/lib/gpuagent/slurm/epilog 2>&1; echo \$?")
        is "its epilog succeeds once more" "$output" "job $job: GPUs $gpus reset"$'\n'0
        is "and resets nothing again" "$(reset_counts "$tray")" "$counts"
        output=$(on "$tray" "env --ignore-environment SLURM_JOB_ID=3999999 SLURM_JOB_GPUS=3 \
                SLURM_JOB_UID=1000 SLURM_JOB_RESTART_COUNT=0 \
                SLURM_SCRIPT_CONTEXT=epilog_slurmd SLURMD_NODENAME=$tray \
                /usr/lib/gpuagent/slurm/epilog 2>&1; echo \$?")
        is "the epilog of a job that never began resets" "$output" $'job 3999999: GPUs 3 reset\n0'
}

limit_of_slurm() {
        local job start

        slurm_conf "$gate_lines"$'\nPrologEpilogTimeout=30'
        on "$tray" 'gpuagent-emulate hang on'
        start=$SECONDS
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "under a limit the prolog ends by itself, though the driver hangs" node_drains "$tray"
        if ((SECONDS - start < 30)); then
                pass "before the limit ($((SECONDS - start)) s)"
        else
                fail "before the limit" "$((SECONDS - start)) s"
        fi
        like "the reason is ours" "$(node_reason "$tray")" "^gpuagent: .*, job $job$"
        within 60 "and so does the epilog" node_is "$tray" drained
        is "slurmd had to kill nothing" \
                "$(on "$tray" "grep -cE '(prolog|epilog).*(timeout|killed by)' /var/log/slurm/slurmd.log")" 0
        on "$tray" 'gpuagent-emulate hang off'
        controller "scancel $job"
        poll 60 job_is_over "$job"
        slurm_conf "$gate_lines"
        make_ready "$tray" >/dev/null 2>&1
        succeeds "the tray is ready again" tray_is_ready "$tray"
}

# One prolog or epilog at a time: none of them waits for another one's.
serial() {
        local job start

        slurm_conf "${gate_lines/Contain/Contain,Serial}"
        start=$(date +%s)
        job=$(submit -w "$tray" --gpus=1 --array=1-4 'true')
        within 120 "with PrologFlags=Serial an array ends" job_is_over "$job"
        is "all of its jobs have completed" "$(job_state "$job" | sort | uniq -c | xargs)" '4 COMPLETED'
        is "each has its reset" "$(audited_since "$start" | grep -c '^job [0-9]*: GPUs [0-3] reset$')" 4
        slurm_conf "$gate_lines"
        within 60 "the node is idle" node_is "$tray" idle
}

begin gate
array
serial
requeue
heterogeneous
whole_node
epilog_comes_twice
limit_of_slurm
cancel_all
finish
