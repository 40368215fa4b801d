#!/bin/bash
# SPDX-License-Identifier: MIT
# The prolog as the gate: what holds a GPU is found before the job, and an epilog whose failure Slurm has
# lost does not let the next job onto a GPU that is not clean.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

job_waits() {
        [[ $(job_in_queue "$1") == PENDING* ]]
}

has_run() {
        on "$tray" 'test -e /shared/ran'
}

has_not_run() {
        ! has_run
}

release() {
        controller "scontrol release $1 && scontrol update jobid=$1 starttime=now"
}

# is_refused WHAT JOB: by the prolog, before anything of it ran.
is_refused() {
        within 90 "$1: the node is drained" node_is "$tray" drained
        like "$1: with our reason" "$(node_reason "$tray")" \
                "^gpuagent: GPU 0 held by python3.*, unit foreign\.service\), job $2$"
        within 60 "$1: the job is back in the queue" job_waits "$2"
        like "$1: and held" "$(job_in_queue "$2")" '^PENDING (launch failed requeued held|JobHeldAdmin)'
        like "$1: the journal says so" "$(prolog_said "$tray" "$2")" \
                "^job $2: .*GPU 0 is held by python3.*, unit foreign\.service"
        succeeds "$1: nothing of the job has run" has_not_run
}

held_gpu_is_found_before_the_job() {
        local job

        hold "$tray" 0
        job=$(submit -w "$tray" --gpus=1 'touch /shared/ran')
        is_refused "held GPU" "$job"
        let_go "$tray"
        succeeds "with the process gone the GPU is reset" on "$tray" 'gpuagentctl reset -i 0'
        controller "scontrol update nodename=$tray state=resume"
        succeeds "the job is released" release "$job"
        within 90 "and ends" job_is_over "$job"
        is "it has completed" "$(job_state "$job")" COMPLETED
        succeeds "it has run" has_run
        within 20 "the node is idle" node_is "$tray" idle
        on "$tray" 'rm -f /shared/ran'
}

epilog_runs() {
        on "$tray" 'ps -C gpuagentctl -o args= | grep -q slurm-epilog'
}

# Whatever slurmd had started dies with it, so that nobody is left to drain the node: a machine's own
# out-of-memory killer does that.
lost_epilog_does_not_open_the_gate() {
        local first second

        # shellcheck disable=SC2016 # expanded in the job
        first=$(submit -w "$tray" --gpus=1 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 30 "a job runs" job_is_running "$first"
        hold "$tray" 0
        on "$tray" 'touch /shared/go'
        within 60 "its epilog, which is going to fail, runs" epilog_runs
        succeeds "slurmd is killed meanwhile" on "$tray" \
                'systemctl kill --signal=KILL --kill-whom=all slurmd; sleep 1; systemctl restart slurmd'
        within 180 "for Slurm the job is over" job_is_over "$first"
        within 60 "and the node is idle" node_is "$tray" idle
        second=$(submit -w "$tray" --gpus=1 'touch /shared/ran')
        is_refused "lost epilog" "$second"
        let_go "$tray"
        controller "scontrol update nodename=$tray state=resume"
        succeeds "the job is released when the process is gone" release "$second"
        within 90 "and ends, as its prolog hands over itself" job_is_over "$second"
        is "it has completed, too" "$(job_state "$second")" COMPLETED
        is "the GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 20 "the node is idle after all" node_is "$tray" idle
}

# slow_epilog: stands before the real one, so that the agent has heard nothing when slurmd dies in it.
slow_epilog() {
        on "$tray" 'printf "%s\n" "#!/bin/sh" "sleep 600" "exec /usr/lib/gpuagent/slurm/epilog" >/run/slow-epilog &&
                chmod 755 /run/slow-epilog && sed -i "s,^Epilog=.*,Epilog=/run/slow-epilog," /etc/slurm/slurm.conf &&
                systemctl restart slurmd'
        poll 30 node_is "$tray" idle
}

slow_epilog_runs() {
        on "$tray" 'pgrep -f /run/slow-epilog'
}

later_run_has_gpu() {
        [[ $(property "$tray" 0 Tenant) == "slurm/$1".[1-9] ]]
}

# The job's first run has the GPU on the agent's books for good, as its epilog never came; the second one is the proof
# that it is over.
requeue_with_a_lost_epilog() {
        local job

        on "$tray" 'rm -f /shared/go /shared/ran'
        succeeds "an epilog takes its time" slow_epilog
        # shellcheck disable=SC2016 # expanded in the job
        job=$(submit -w "$tray" --gpus=1 --requeue 'while [ ! -e /shared/go ]; do sleep 0.05; done; touch /shared/ran')
        within 30 "a job runs" job_is_running "$job"
        hold "$tray" 0
        succeeds "it is requeued" controller "scontrol requeue $job"
        within 60 "the epilog of its first run begins" slow_epilog_runs
        succeeds "slurmd is killed meanwhile, with all it has started" on "$tray" \
                'systemctl kill --signal=KILL --kill-whom=all slurmd
                sed -i "s,^Epilog=.*,Epilog=/usr/lib/gpuagent/slurm/epilog," /etc/slurm/slurm.conf
                sleep 1; systemctl restart slurmd'
        within 180 "for Slurm the job waits to run again" job_waits "$job"
        is "no epilog has spoken" "$(audit "$tray" "$job")" ''
        is "the lease is that of the first run" "$(property "$tray" 0 Tenant)" "slurm/$job.0"
        within 60 "the second run may begin" controller "scontrol update jobid=$job starttime=now"
        is_refused "lost in a requeue" "$job"
        let_go "$tray"
        controller "scontrol update nodename=$tray state=resume"
        succeeds "without the process the job is released" release "$job"
        within 90 "and runs" job_is_running "$job"
        within 60 "as a tenant of its own, when its prolog has handed over" later_run_has_gpu "$job"
        on "$tray" 'touch /shared/go'
        within 90 "it ends" job_is_over "$job"
        on "$tray" 'rm -f /shared/go /shared/ran /run/slow-epilog'
        is "it has completed" "$(job_state "$job")" COMPLETED
        is "the GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 60 "and the node is idle" node_is "$tray" idle
}

begin gate
configure "$tray" 'handover: {busy-grace: 5s}'
held_gpu_is_found_before_the_job
lost_epilog_does_not_open_the_gate
requeue_with_a_lost_epilog
cancel_all
unconfigure "$tray"
finish
