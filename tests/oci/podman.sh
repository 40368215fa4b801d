#!/bin/bash
# SPDX-License-Identifier: MIT
#
# podman with the hooks that it finds at their place. What it does there CRI-O does, too: both read them with the same code.
. "$(dirname "$0")/lib.sh"
needs podman runc conmon busybox
config='oci: {timeout: 10s}
driver: {poll-interval: 500ms}'
in_tray
install_hooks

mkdir -p $work
trap remove_cgroups EXIT
make_rootfs $work/rootfs

# With little that it needs of the machine.
podman() {
        command podman --root $work/root --runroot $work/run --tmpdir $work/tmp --storage-driver vfs --events-backend none \
                --cgroup-manager cgroupfs --runtime "$(command -v runc)" "$@"
}

# start OPTION... -- COMMAND
start() {
        local options=() command

        while [ "$1" != -- ]; do options+=("$1") && shift; done
        command=$2
        podman run --network none --cgroup-parent "/$cgroups" --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
                --security-opt seccomp=unconfined --security-opt apparmor=unconfined "${options[@]}" --rootfs $work/rootfs /bin/sh -c "$command"
}
gpu_option() { echo "--device=$GPUAGENT_EMULATION_DEVICES/nvidia$1:/dev/nvidia$1"; }
has_container() { [[ $(gpu "$1" Tenant) == container/* ]]; }

before=$(true_resets 0)
exits 4 "a container with a GPU runs" start --rm "$(gpu_option 0)" -- 'exit 4'
eventually 10 "its GPU is reset" was_reset 0 "$before"
is "and nobody's" "$(tenants)" "- - - -"
is "once" "$(true_resets 0)" $((before + 1))
exits 5 "one without a GPU runs" start --rm -e NVIDIA_VISIBLE_DEVICES=all -- 'exit 5'
is "and touches none" "$(counts)" "$((before + 1)) 1 1 1"

end=$before
for way in "kill $work/c1" stop "rm -f" exit; do
        end=$((end + 1))
        exits 0 "$way: a container starts" start --detach --name c1 "$(gpu_option 0)" -- "[ $way != exit ] || exit 0; exec sleep 1000"
        case $way in
        kill*) podman kill --signal KILL c1 ;;
        stop) podman stop --time 0 c1 ;;
        rm*) podman rm --force --time 0 c1 ;;
        esac >/dev/null 2>&1
        eventually 20 "$way: its GPU is reset" was_reset 0 $end
        eventually 5 "$way: and nobody's" tenant_is 0 ""
        podman rm --force --time 0 c1 >/dev/null 2>&1
        is "$way: once" "$(true_resets 0)" $((end + 1))
done

start --detach --name c2 "$(gpu_option 0)" -- 'exec sleep 1000' >/dev/null
holds "a container runs" has_container 0
exits 126 "another one for its GPU does not" start --rm "$(gpu_option 0)" -- 'exit 4'
like "and says why" "$output" "gpuagent: GPUs 0 refused: GPU 0 is leased to container/[0-9a-f]{64}"
is "and resets nothing" "$(true_resets 0)" $((end + 1))
stop_service gpuagentd
podman rm --force --time 0 c2 >/dev/null 2>&1
exits 126 "without an agent none with a GPU starts" start --rm "$(gpu_option 1)" -- 'exit 4'
exits 5 "one without does" start --rm -- 'exit 5'
start_agent
eventually 20 "the end that the agent missed is made good" was_reset 0 $((end + 1))
eventually 5 "by the lease's end" tenant_is 0 ""
finish
