#!/bin/bash
# SPDX-License-Identifier: MIT
#
# containerd as kubelet uses it, with our hooks in its base_runtime_spec.
. "$(dirname "$0")/lib.sh"
needs containerd ctr runc busybox python3
/usr/bin/python3 -c 'import grpc' 2>/dev/null || { echo "1..0 # SKIP python3-grpcio is not installed" && exit 0; }
config='oci: {timeout: 30s}
driver: {poll-interval: 500ms}'
in_tray
install_hooks
. "$(dirname "$0")/containerd-lib.sh"

a=0a1b2c3d-1111-4222-8333-4444$(printf %08x "$unique") b=0b1b2c3d-1111-4222-8333-4444$(printf %08x "$unique")

mkdir -p "$work"
trap remove_cgroups EXIT
start_containerd

# From its first container to its end a pod keeps its GPU.
before=$(true_resets 0)
new_pod "$a"
start "$a" init 0 'echo "$POD" >/gpu/0; exit 3'
eventually 20 "an init container with a GPU runs and exits" state_of "$a" init "exited 3 Error"
is "its pod has the GPU" "$(gpu 0 Tenant)" "pod/$a"
start "$a" main 0 'cat /gpu/0 >/tmp/seen; kill -9 $$'
eventually 20 "the next one, too, until it is killed" state_of "$a" main "exited 137 Error"
start "$a" again 0 'cat /gpu/0; sleep 1000'
holds "it is started again" state_of "$a" again "running 0 "
is "and has the GPU" "$(gpu 0 Tenant)" "pod/$a"
is "without a reset" "$(true_resets 0)" "$before"
like "with what it left there" "$(memory 0)" "pod-0a1b2c3d"

# Two pods for one GPU.
new_pod "$b"
start "$b" main 0 'head -c 100 /gpu/0 | tr -d "\000" >/seen/b; sleep 1000' &
starter=$!
eventually 10 "another pod waits for it" said "GPU 0 is leased to pod/$a"
cri stop "$(cat "$work/$a-again")"
eventually 10 "the first one's container is stopped" state_of "$a" again "exited 137 Error"
is "and its pod has the GPU still" "$(gpu 0 Tenant)" "pod/$a"
end_pod "$a"
wait $starter
eventually 20 "once the pod is gone the other one runs" state_of "$b" main "running 0 "
is "and has the GPU" "$(gpu 0 Tenant)" "pod/$b"
is "after one reset" "$(true_resets 0)" $((before + 1))
is "and finds nothing in it" "$(cat "$work/seen/b")" ""

# kill -9 of the agent, of the container, and of containerd.
kill -KILL "$(main_pid gpuagentd)"
eventually 20 "an agent that is killed comes back" answers
is "with the pod's lease" "$(gpu 0 Tenant)" "pod/$b"
kill_containerd
pkill -KILL -f 'sleep 1000'
end_cgroup "$b"
eventually 10 "a pod that ends while containerd is dead is seen to be gone" tenant_is 0 ""
eventually 10 "and its GPU is reset" was_reset 0 $((before + 1))
start_containerd
eventually 20 "containerd comes back and tidies up" state_of "$b" main exited
is "which resets nothing again" "$(gpu 0 Tenant) $(true_resets 0)" " $((before + 2))"
end_pod "$b"

# A pod that is refused, and its poststop.
configure 'oci: {timeout: 1s}'
gpuagentctl --quiet acquire --tenant slurm/1.0 -i 0
new_pod "$a"
start "$a" main 0 'sleep 1000'
like "a pod whose GPU is another's is refused" "$output" "gpuagent: GPUs 0 refused: GPU 0 is leased to slurm/1.0"
state_of "$a" main "exited 128 StartError"
is "as kubelet sees it" "$output" "exited 128 StartError"
end_pod "$a"
is "its end changes nothing" "$(gpu 0 Tenant) $(true_resets 0)" "slurm/1.0 $((before + 2))"
gpuagentctl --quiet release --tenant slurm/1.0
eventually 10 "the GPU is free again" state_is 0 clean

# Without an agent.
stop_service gpuagentd
new_pod "$a"
within 10 "without an agent a container with a GPU is refused" start "$a" main 0 'sleep 1000'
state_of "$a" main "exited 128 StartError"
is "at once" "$output" "exited 128 StartError"
start "$a" other "" 'exit 7'
eventually 20 "one without runs" state_of "$a" other "exited 7 Error"
end_pod "$a"
finish
