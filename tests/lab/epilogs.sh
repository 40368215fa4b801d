#!/bin/bash
# SPDX-License-Identifier: MIT
# What epilogs meet on a busy tray: each other, jobs without GPUs, slurmd's restart, a journal quota that is
# used up.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

two_epilogs_at_once() {
        local first second gpus

        # Both jobs end at the same moment, whenever they started.
        # shellcheck disable=SC2016 # expanded in the job
        first=$(submit -w "$tray" --gpus=2 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        # shellcheck disable=SC2016
        second=$(submit -w "$tray" --gpus=2 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 30 "two jobs run on one tray" both_run "$first" "$second"
        joe 'touch /shared/go'
        within 90 "the first one's epilog ends" job_is_over "$first"
        within 90 "the second one's epilog ends" job_is_over "$second"
        on "$tray" 'rm -f /shared/go'
        gpus=$({ audit "$tray" "$first"; audit "$tray" "$second"; } |
                sed -n 's/^job [0-9]*: GPUs \(.,.\) reset$/\1/p')
        is "each has reset its own two GPUs" "$(tr ',' '\n' <<<"$gpus" | sort | paste -sd ,)" 0,1,2,3
        is "all GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 20 "the node is idle" node_is "$tray" idle
}

both_run() {
        [[ $(controller "squeue --noheader --states=RUNNING --jobs=$1,$2" | wc -l) == 2 ]]
}

job_without_gpus() {
        local job counts

        counts=$(reset_counts "$tray")
        job=$(submit -w "$tray" 'true')
        within 30 "a job without GPUs ends" job_is_over "$job"
        is "it has completed" "$(job_state "$job")" COMPLETED
        is "it resets nothing" "$(reset_counts "$tray")" "$counts"
        is "and has no audit line" "$(audit "$tray" "$job")" ''
        within 20 "the node is idle after it" node_is "$tray" idle
}

slurmd_restarts_during_an_epilog() {
        local job

        job=$(submit -w "$tray" --gpus=4 'true')
        within 30 "an epilog resets" is_resetting "$tray"
        succeeds "slurmd restarts meanwhile" on "$tray" 'systemctl restart slurmd'
        within 120 "the job ends for Slurm, too" job_is_over "$job"
        is "the audit line is there" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        is "the GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 60 "the node is idle" node_is "$tray" idle
}

# From 23.11 on slurmd is executed anew for it.
slurm_is_reconfigured_during_an_epilog() {
        local job

        job=$(submit -w "$tray" --gpus=4 'true')
        within 30 "an epilog resets" is_resetting "$tray"
        succeeds "Slurm is reconfigured meanwhile" controller 'scontrol reconfigure'
        within 120 "the job ends" job_is_over "$job"
        is "its audit line is there" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        within 60 "the node is idle" node_is "$tray" idle
}

# The job's processes are slurmd's for the journal, as there are no cgroups for jobs here.
journal_quota_is_used_up() {
        local job

        on "$tray" 'cd /run/systemd/system && mkdir -p slurmd.service.d && cd slurmd.service.d &&
                printf "[Service]\nLogRateLimitIntervalSec=30s\nLogRateLimitBurst=1000\n" >quota.conf &&
                systemctl daemon-reload && systemctl restart slurmd'
        within 30 "slurmd is back with a small quota" node_is "$tray" idle
        job=$(submit -w "$tray" --gpus=1 'seq 20000 | logger -t noise')
        within 90 "a job that logs 20,000 lines ends" job_is_over "$job"
        is "its audit line is there" "$(audit "$tray" "$job")" "job $job: GPUs 0 reset"
        if (($(on "$tray" 'journalctl --quiet --boot -t noise -o cat | wc -l') < 20000)); then
                pass "and the journal has dropped lines of slurmd's"
        else
                fail "and the journal has dropped lines of slurmd's"
        fi
        on "$tray" 'rm -r /run/systemd/system/slurmd.service.d && systemctl daemon-reload &&
                systemctl restart slurmd'
        within 30 "the node is idle again" node_is "$tray" idle
}

begin
on "$tray" 'rm -f /shared/go'
two_epilogs_at_once
job_without_gpus
slurmd_restarts_during_an_epilog
slurm_is_reconfigured_during_an_epilog
journal_quota_is_used_up
finish
