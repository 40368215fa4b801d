#!/bin/bash
# SPDX-License-Identifier: MIT
# What a lease outlives and what not, the hooks' own door to the agent, and the switches that take the gate
# away.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# start_job OPTION…: that runs until let_end; sets $job.
start_job() {
        # shellcheck disable=SC2016 # expanded in the job
        job=$(submit -w "$tray" "$@" 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 30 "a job runs" job_is_running "$job"
}

let_end() {
        on "$tray" 'touch /shared/go'
        within 90 "it ends" job_is_over "$job"
        on "$tray" 'rm -f /shared/go'
        within 20 "the node is idle" node_is "$tray" idle
}

lease_outlives_the_agent() {
        local output rc=0 everywhere

        start_job --gpus=4
        everywhere="slurm/$job.0 slurm/$job.0 slurm/$job.0 slurm/$job.0"
        is "it has its GPUs" "$(column "$tray" TENANT)" "$everywhere"
        succeeds "the agent restarts" on "$tray" 'systemctl restart gpuagentd'
        is "the leases are still there" "$(column "$tray" TENANT)" "$everywhere"
        on "$tray" 'systemctl kill --signal=KILL --kill-whom=main gpuagentd'
        within 30 "the agent is killed and comes back" on "$tray" 'gpuagentctl list'
        is "with the leases" "$(column "$tray" TENANT)" "$everywhere"
        output=$(on "$tray" 'gpuagentctl acquire --tenant=test/other -i 1' 2>&1) || rc=$?
        is "nobody else gets the GPU" "$rc" 1
        like "who has it is named" "$output" "GPU 1 .*slurm/$job\.0"
        rc=0
        output=$(on "$tray" 'gpuagentctl reset -i 1' 2>&1) || rc=$?
        is "nobody resets it" "$rc" 1
        like "by the same name" "$output" "GPU 1 .*slurm/$job\.0"
        let_end
        is "its GPUs were reset" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        is "and are free" "$(column "$tray" TENANT)" '- - - -'
}

# Of a job that slurmd knows nothing about, as after an epilog that was lost: only a later run of it proves that the run
# that had the GPU is over.
later_run_takes_over() {
        on "$tray" 'gpuagentctl --quiet acquire --tenant slurm/3999999.0 -i 3'
        succeeds "another job does not get what a run that nobody saw has booked" on "$tray" \
                '! gpuagentctl acquire --tenant slurm/3999998.1 -i 3'
        succeeds "a later run of the same job does" on "$tray" 'gpuagentctl acquire --tenant slurm/3999999.1 -i 3'
        is "and has it" "$(property "$tray" 3 Tenant)" slurm/3999999.1
        like "after a reset" "$(on "$tray" 'journalctl --sync; journalctl --quiet --boot -u gpuagentd -o cat | tail -n 3')" \
                'job 3999999: GPUs 3 reset'
        on "$tray" 'gpuagentctl --quiet release --tenant slurm/3999999.1'
}

# A slurmd in a container sees the agent's folder and munge's, and nothing else of /run.
epilog_in_a_chroot() {
        local output

        output=$(on "$tray" 'unshare --mount --propagation private sh -c "
                mkdir -p /tmp/root && mount --bind / /tmp/root && mount --rbind /proc /tmp/root/proc &&
                mount --rbind /dev /tmp/root/dev && mount -t tmpfs tmpfs /tmp/root/run &&
                mkdir /tmp/root/run/gpuagent /tmp/root/run/munge &&
                mount --bind /run/gpuagent /tmp/root/run/gpuagent &&
                mount --bind /run/munge /tmp/root/run/munge &&
                exec chroot /tmp/root /usr/bin/env --ignore-environment SLURM_JOB_ID=3999998 \
                        SLURM_JOB_GPUS=2 SLURM_JOB_UID=1000 SLURM_JOB_RESTART_COUNT=0 \
                        SLURM_SCRIPT_CONTEXT=epilog_slurmd \
                        SLURMD_NODENAME=$(hostname) /usr/lib/gpuagent/slurm/epilog" 2>&1; echo $?')
        is "in a chroot with /run/gpuagent alone the epilog resets" "$output" $'job 3999998: GPUs 2 reset\n0'
}

lease_does_not_outlive_the_boot() {
        succeeds "a tenant has a GPU" on "$tray" 'gpuagentctl acquire --tenant=test/boot -i 2'
        succeeds "the tray reboots under it" "$lab" reboot "$tray"
        within 60 "nobody has a GPU" column_is "$tray" TENANT '- - - -'
        is "all of them are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 60 "the node is idle" node_is "$tray" idle
}

maintenance_closes_the_gate() {
        on "$tray" 'gpuagentctl maintenance on "new driver"'
        job=$(submit -w "$tray" --gpus=1 'touch /shared/ran')
        within 60 "in maintenance a job drains the node" node_is "$tray" drained
        like "for that reason" "$(node_reason "$tray")" "^gpuagent: .*maintenance.*new driver.*, job $job$"
        succeeds "and does not run" on "$tray" '! test -e /shared/ran'
        on "$tray" 'gpuagentctl maintenance off'
        resume "$tray"
        controller "scontrol release $job && scontrol update jobid=$job starttime=now"
        within 90 "with maintenance over it runs and ends" job_is_over "$job"
        is "it has completed" "$(job_state "$job")" COMPLETED
        within 20 "the node is idle" node_is "$tray" idle
}

observe_only_tells() {
        configure "$tray" 'mode: observe
handover: {busy-grace: 2s}'
        hold "$tray" 0
        job=$(submit -w "$tray" --gpus=1 'true')
        within 90 "in observe mode a job on a held GPU ends" job_is_over "$job"
        is "it has completed" "$(job_state "$job")" COMPLETED
        within 20 "the node is idle" node_is "$tray" idle
        like "the journal says what would have been" "$(prolog_said "$tray" "$job")" \
                "^job $job: .*GPU 0 is held by python3"
        let_go "$tray"
        unconfigure "$tray"
}

gate_is_off() {
        make_ready "$tray" >/dev/null 2>&1
        configure "$tray" 'handover: {reset: false}'
        start_job --gpus=1
        is "without resets GPUs are booked all the same" "$(column "$tray" TENANT)" "slurm/$job.0 - - -"
        let_end
        is "the GPU is not clean" "$(column "$tray" STATE)" 'dirty clean clean clean'
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "the next job gets it as it is" job_is_over "$job"
        is "and completes" "$(job_state "$job")" COMPLETED
        unconfigure "$tray"
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "with resets again a job ends" job_is_over "$job"
        is "its GPU is clean" "$(column "$tray" STATE)" 'clean clean clean clean'
}

begin gate
lease_outlives_the_agent
later_run_takes_over
epilog_in_a_chroot
maintenance_closes_the_gate
observe_only_tells
gate_is_off
lease_does_not_outlive_the_boot
cancel_all
make_ready "$tray" >/dev/null 2>&1
finish
