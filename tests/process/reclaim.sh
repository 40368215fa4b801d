#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The lease of a job that was seen on this node and is gone, as after a slurmd that was killed, ends with a reset.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms}'
in_tray

mkdir -p /etc/slurm /run/tray/spool
echo "SlurmdSpoolDir=/run/tray/spool" >/etc/slurm/slurm.conf
# The socket of a step of job $1, as slurmd has it, and a process that listens at it.
begin_step() {
        python3 -c 'import signal, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
signal.pause()' "/run/tray/spool/tray_$1.0" &
        step=$!
        until [ -S "/run/tray/spool/tray_$1.0" ]; do sleep 0.01; done
}
kill_step() { kill -KILL $step && wait $step 2>/dev/null; }
end_step() {
        kill_step
        rm "/run/tray/spool/tray_$1.0"
}
nobody_has() { [ "$(gpu "$1" Tenant)" = "" ]; }

before=$(true_resets 0)
exits 0 "a job books" gpuagentctl acquire --job 90.0 -i 0
exits 0 "another one, of which no sign is ever seen" gpuagentctl acquire --job 91.0 -i 1
begin_step 90
sleep 1.5
is "while it lives it keeps its GPU" "$(gpu 0 Tenant)" slurm/90.0
exits 1 "and others are refused" gpuagentctl acquire --job 92.0 -i 0
kill_step # which leaves its socket behind
eventually 5 "once it is gone its lease ends" nobody_has 0
eventually 5 "and the GPU is clean" state_is 0 clean
is "by a reset" "$(true_resets 0)" $((before + 1))
like "which the journal tells" "$(sed -n 's/^MESSAGE=//p' /run/tray/journal)" "GPU 0 was leased to slurm/90.0, which is gone from this node"
sleep 1.5
is "no sign yet is no proof" "$(gpu 1 Tenant)" slurm/91.0

# The next job does not have to wait for the next look.
exits 0 "a job books" gpuagentctl acquire --job 93.0 -i 2
begin_step 93
sleep 1.5
end_step 93
exits 0 "the next one gets the GPU at once" gpuagentctl acquire --job 94.0 -i 2
is "for itself" "$(gpu 2 Tenant)" slurm/94.0

# A pod by its cgroup, in a hierarchy of the kernel's. In the test's own mount namespace only.
pod=0a1b2c3d-1111-4222-8333-444455556666
cgroups=/sys/fs/cgroup folder=/sys/fs/cgroup/kubepods-reclaim-test
present() { [ "$(gpu 3 TenantPresence)" = "$1" ]; }
end_pod() { rmdir "$folder/pod$pod" "$folder"; }

[ -e $cgroups/cgroup.controllers ] || mount -t cgroup2 none $cgroups 2>/dev/null
if mkdir -p "$folder/pod$pod" 2>/dev/null; then
        trap 'end_pod 2>/dev/null' EXIT
        exits 0 "a pod books" gpuagentctl acquire --tenant "pod/$pod" -i 3
        eventually 5 "it is seen alive at once" present alive
        like "which status tells" "$(gpuagentctl status 3)" "tenant: +pod/$pod, which is alive on this node"
        pkill -KILL -x gpuagentd
        eventually 20 "the agent dies and comes back" present alive
        stop_service gpuagentd
        end_pod
        start_agent
        eventually 20 "the lease of a pod that ended meanwhile ends" nobody_has 3
        eventually 10 "with a reset" state_is 3 clean
        exits 0 "a pod that has no cgroup here books" gpuagentctl acquire --tenant "pod/$pod" -i 3
        eventually 5 "there is no sign of it" present no-sign
        like "which status tells" "$(gpuagentctl status 3)" "no sign on this node yet; it keeps the GPU until a release"
        is "it keeps its GPU" "$(gpu 3 Tenant)" "pod/$pod"
else
        skip "pods by their cgroups" "no cgroup can be made here"
fi
finish
