#!/bin/bash
# SPDX-License-Identifier: MIT
# Leases of tenants that went without a word: a pod whose slice systemd removes, and a Slurm job that nobody
# runs an epilog for.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1
pod=0a1b2c3d-1111-4222-8333-444455556666
slice=kubepods-burstable-pod${pod//-/_}.slice

presence_is() { property_is "$tray" 0 TenantPresence "$1"; }
is_free() { property_is "$tray" 0 Tenant ''; }

# So rarely that no poll of the agent's can be what ends a lease here.
pod_ends() {
        configure "$tray" 'driver: {poll-interval: 1h}'
        succeeds "a pod's container runs in its slice" on "$tray" \
                "systemd-run --quiet --collect --slice=$slice --scope --unit=cri-containerd-test sleep 1000 \
                        >/dev/null 2>&1 </dev/null & until systemctl -q is-active $slice; do sleep 0.1; done"
        succeeds "the pod books" on "$tray" "gpuagentctl acquire --tenant=pod/$pod -i 0"
        within 30 "it is seen alive" presence_is alive
        succeeds "its slice is stopped, as kubelet does" on "$tray" "systemctl stop $slice"
        within 30 "its lease ends" is_free
        within 30 "with a reset" column_is "$tray" STATE 'clean clean clean clean'
        like "which the journal tells" "$(on "$tray" 'journalctl --sync; journalctl -b -o cat -u gpuagentd')" \
                "GPU 0 was leased to pod/$pod, which is gone from this node"
        unconfigure "$tray"
}

# slurmd and the job's steps are killed, and no epilog is configured when slurmd is back: Slurm has forgotten
# the job's end on this node.
job_ends_unseen() {
        configure "$tray" 'driver: {poll-interval: 1s}'
        # shellcheck disable=SC2016 # expanded in the job
        job=$(submit -w "$tray" --gpus=1 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 30 "a job runs" job_is_running "$job"
        within 30 "it is seen alive" presence_is alive
        succeeds "it dies with its slurmd" on "$tray" \
                'sed -i "s/^Epilog=/#Epilog=/" /etc/slurm/slurm.conf && pkill -KILL -x slurmd; pkill -KILL slurmstepd; \
                        systemctl stop slurmd; pkill -KILL -f "[s]lurm_script"; true'
        succeeds "slurmd is back, without an epilog" on "$tray" 'systemctl start slurmd'
        controller "scancel $job"
        within 90 "the job's lease ends, although its step's socket is still there" is_free
        within 60 "with a reset" column_is "$tray" STATE 'clean clean clean clean'
        is "and without an epilog" "$(audit "$tray" "$job")" ''
        like "which the journal tells" "$(on "$tray" 'journalctl --sync; journalctl -b -o cat -u gpuagentd')" \
                "GPU 0 was leased to slurm/$job.0, which is gone from this node"
        succeeds "the epilog is configured again" on "$tray" \
                'sed -i "s/^#Epilog=/Epilog=/" /etc/slurm/slurm.conf && systemctl restart slurmd'
        unconfigure "$tray"
}

begin gate
pod_ends
job_ends_unseen
cancel_all
make_ready "$tray" >/dev/null 2>&1
finish
