#!/bin/bash
# SPDX-License-Identifier: MIT
# Slurm numbers GPUs by the lines of gres.conf, not as the driver does: with the order 3,1,0,2 the first
# job's GPU is the driver's number 3, and that one must be reset.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

set_order() {
        local host

        for host in sched-control "${trays[@]}"; do
                on "$host" "cd /etc/slurm && cp -p gres.conf gres.conf.saved && for minor in $*; do
                        echo \"NodeName=sched-worker[1-2] Name=gpu Type=gb200 File=/dev/nvidia\$minor\"
                done >gres.conf"
        done
        restart_slurm 30
}

restore_order() {
        local host

        for host in sched-control "${trays[@]}"; do
                on "$host" 'mv /etc/slurm/gres.conf.saved /etc/slurm/gres.conf'
        done
        restart_slurm 30
}

# counts_changed BEFORE AFTER: the indexes that were reset in between.
counts_changed() {
        paste <(tr ' ' '\n' <<<"$1") <(tr ' ' '\n' <<<"$2") | awk '$1 != $2 { print NR - 1 }' | paste -sd ,
}

# reset_by_job OPTION…: runs a job and prints what Slurm called its GPUs, the audit line's GPUs, and what was
# reset.
reset_by_job() {
        local before job slurm_gpus

        before=$(reset_counts "$tray")
        read -r job slurm_gpus < <(joe "srun -w $tray $* bash -c 'echo \$SLURM_JOB_ID \$SLURM_STEP_GPUS'")
        poll 60 job_is_over "$job"
        printf '%s | %s | %s\n' "$slurm_gpus" "$(audit "$tray" "$job" | sed 's/^job [0-9]*: //')" \
                "$(counts_changed "$before" "$(reset_counts "$tray")")"
}

begin
succeeds "Slurm takes gres.conf in the order 3,1,0,2" set_order 3 1 0 2
is "Slurm's GPU 0 is the driver's 3" "$(reset_by_job --gpus=1)" '0 | GPUs 3 reset | 3'
is "Slurm's GPUs 0 to 2 are 3, 1 and 0" "$(reset_by_job --gpus=3)" '0,1,2 | GPUs 0,1,3 reset | 0,1,3'
is "nothing was left" "$(column "$tray" STATE)" 'clean clean clean clean'
succeeds "the usual order is back" restore_order
is "Slurm's GPU 0 is the driver's 0" "$(reset_by_job --gpus=1)" '0 | GPUs 0 reset | 0'
finish
