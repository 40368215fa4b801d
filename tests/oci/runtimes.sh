#!/bin/bash
# SPDX-License-Identifier: MIT
#
# runc and crun with our hooks in config.json.
. "$(dirname "$0")/lib.sh"
needs runc crun busybox
config='oci: {timeout: 10s}
driver: {poll-interval: 500ms}'
in_tray
install_hooks

# bundle RUNTIME ID GPU COMMAND: a bundle for that container and GPU ("" for none).
bundle() {
        local hook=/usr/lib/gpuagent/gpuagent-oci-hook

        rm -rf "${work:?}/$1" && mkdir -p "$work/$1"
        make_rootfs "$work/$1/rootfs"
        jq -n --arg command "$4" --argjson devices "[${3:+$(node "$3")}]" --arg hook $hook --arg cgroup "/$cgroups/$2" '{
                ociVersion: "1.0.2",
                process: {terminal: false, cwd: "/", args: ["/bin/sh", "-c", $command], env: ["PATH=/bin"],
                          user: {uid: 0, gid: 0}},
                root: {path: "rootfs"},
                mounts: [{destination: "/proc", type: "proc", source: "proc"}],
                linux: {cgroupsPath: $cgroup, devices: $devices, namespaces: [{type: "pid"}, {type: "mount"}, {type: "ipc"}]},
                hooks: {prestart: [{path: $hook, args: ["h", "prestart"], timeout: 110}],
                        poststop: [{path: $hook, args: ["h", "poststop"], timeout: 10}]}}' >"$work/$1/config.json"
}
runtime() { (cd "$work/$1" && exec "$@"); }
ended() { ! runtime "$1" state "$2" 2>/dev/null | jq -e '.status == "running"' >/dev/null; }
alive() { [ "$(gpu "$1" TenantPresence)" = alive ]; }

mkdir $work
id=c$unique-
trap remove_cgroups EXIT
# What crun wants, and runc takes.
[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup

for name in runc crun; do
        before=$(true_resets 0)
        bundle $name "${id}1" 0 'exit 4'
        exits 4 "$name: a container with a GPU runs" runtime $name run "${id}1"
        eventually 10 "$name: its GPU is reset" was_reset 0 "$before"
        eventually 5 "$name: and nobody's" tenant_is 0 ""
        is "$name: once" "$(true_resets 0)" $((before + 1))

        bundle $name "${id}2" 0 'sleep 1000'
        runtime $name run --detach "${id}2" >/dev/null 2>&1 </dev/null
        is "$name: a container that runs has the GPU" "$(gpu 0 Tenant)" "container/${id}2"
        eventually 10 "$name: and is seen" alive 0
        exits 1 "$name: nobody else gets it" gpuagentctl acquire --tenant slurm/1.0 -i 0
        runtime $name kill "${id}2" KILL
        eventually 10 "$name: it is killed" ended $name "${id}2"
        runtime $name delete --force "${id}2" >/dev/null 2>&1
        eventually 10 "$name: its GPU is reset" was_reset 0 $((before + 1))

        gpuagentctl --quiet acquire --tenant slurm/1.0 -i 0
        bundle $name "${id}3" 0 'exit 5'
        code=0
        output=$(runtime $name run "${id}3" 2>&1) || code=$?
        is "$name: a container whose GPU is another's does not start" "$((code > 0)) $(gpu 0 Tenant)" "1 slurm/1.0"
        [ $name = crun ] || like "$name: and says why" "$output" "gpuagent: GPUs 0 refused: GPU 0 is leased to slurm/1.0"
        runtime $name delete --force "${id}3" >/dev/null 2>&1
        is "$name: its poststop changes nothing" "$(gpu 0 Tenant) $(true_resets 0)" "slurm/1.0 $((before + 2))"
        gpuagentctl --quiet release --tenant slurm/1.0

        # It never comes to its command, and crun calls no poststop.
        before=$(true_resets 0)
        eventually 10 "$name: the GPU is free" state_is 0 clean
        bundle $name "${id}7" 0 'exit 5'
        sed -i 's,/bin/sh,/bin/none,' "$work/$name/config.json"
        runtime $name run "${id}7" >/dev/null 2>&1
        eventually 10 "$name: a container that cannot be started gives its GPU back" was_reset 0 "$before"
        eventually 5 "$name: whoever noticed" tenant_is 0 ""

        # The agent is not there when the container ends.
        bundle $name "${id}4" 0 'sleep 1000'
        runtime $name run --detach "${id}4" >/dev/null 2>&1 </dev/null
        eventually 10 "$name: a container has the GPU" alive 0
        stop_service gpuagentd
        runtime $name kill "${id}4" KILL
        eventually 10 "$name: it is killed" ended $name "${id}4"
        exits 0 "$name: it is deleted without an agent" runtime $name delete --force "${id}4"
        bundle $name "${id}5" 1 'exit 5'
        code=0
        output=$(runtime $name run "${id}5" 2>&1) || code=$?
        is "$name: one with a GPU does not start then" "$((code > 0)) $((code != 5))" "1 1"
        bundle $name "${id}6" "" 'exit 5'
        exits 5 "$name: one without does" runtime $name run "${id}6"
        before=$(true_resets 0)
        start_agent
        eventually 10 "$name: the end that was missed is made good" was_reset 0 "$before"
        eventually 5 "$name: by the lease's end" tenant_is 0 ""
done
finish
