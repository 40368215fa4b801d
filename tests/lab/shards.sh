#!/bin/bash
# SPDX-License-Identifier: MIT
# Jobs that share a GPU (gres/shard): it is reset with the last of them, and under neither.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# Two shards a GPU.
shards_on() {
        local host

        for host in sched-control root@login "${trays[@]}"; do
                on "$host" "cd /etc/slurm && cp -p slurm.conf slurm.conf.saved && cp -p gres.conf gres.conf.saved &&
                        sed -i 's/^GresTypes=gpu\$/GresTypes=gpu,shard/; s/Gres=gpu:gb200:4\$/&,shard:8/' slurm.conf &&
                        echo 'NodeName=sched-worker[1-2] Name=shard Count=8' >>gres.conf"
        done
        restart_slurm 60
}

shards_off() {
        local host

        for host in sched-control root@login "${trays[@]}"; do
                on "$host" 'cd /etc/slurm && mv slurm.conf.saved slurm.conf && mv gres.conf.saved gres.conf'
        done
        restart_slurm 60
}

jobs_share_a_gpu() {
        local first second counts

        # shellcheck disable=SC2016 # expanded in the job
        first=$(submit -w "$tray" --gres=shard:1 'while [ ! -e /shared/first ]; do sleep 0.05; done')
        within 60 "a job runs on a shard of a GPU" job_is_running "$first"
        # shellcheck disable=SC2016
        second=$(submit -w "$tray" --gres=shard:1 'while [ ! -e /shared/second ]; do sleep 0.05; done')
        within 60 "and one more" job_is_running "$second"
        is "they share one" "$(property "$tray" 0 Tenant)" "slurm/$first.0, slurm/$second.0"
        counts=$(reset_counts "$tray")
        joe 'touch /shared/first'
        within 90 "the first one ends" job_is_over "$first"
        is "with the GPU as it was" "$(reset_counts "$tray")" "$counts"
        is "which the journal says" "$(audit "$tray" "$first")" "job $first: GPUs 0 not reset: others share them still"
        is "the other job still has it" "$(property "$tray" 0 Tenant)" "slurm/$second.0"
        like "and runs" "$(job_in_queue "$second")" ^RUNNING
        joe 'touch /shared/second'
        within 90 "it ends, too" job_is_over "$second"
        is "with the reset" "$(audit "$tray" "$second")" "job $second: GPUs 0 reset"
        is "the GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 60 "the node is idle" node_is "$tray" idle
        is "and was not drained" "$(node_reason "$tray")" ''
        joe 'rm -f /shared/first /shared/second'
}

begin gate
configure "$tray" 'handover: {shared: count}'
succeeds "Slurm has shards of GPUs" shards_on
jobs_share_a_gpu
cancel_all
succeeds "and whole ones again" shards_off
unconfigure "$tray"
finish
