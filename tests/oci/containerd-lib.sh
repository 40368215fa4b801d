# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For a test that has read lib.sh: a containerd of its own, set up as our manual says, and pods on it as kubelet has them.

work=${work:?} here=${here:?} cgroups=${cgroups:?}
export CRI_SOCKET=$work/containerd.sock
cri() { "$here/../oci/cri" "$@"; }

# What containerd 2 had to rename.
containerd_config() {
        if [[ $(containerd --version) == */v2* ]]; then
                cat <<EOF
version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "localhost/busybox:1"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "$work/base.json"
EOF
        else
                cat <<EOF
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/busybox:1"
  stream_server_port = "0"
  disable_apparmor = true
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      base_runtime_spec = "$work/base.json"
EOF
        fi
}
run_containerd() {
        exec setsid containerd --config "$work/config.toml" --root "$work/root" --state "$work/state" --address "$CRI_SOCKET" \
                >>"$work/containerd.log" 2>&1
}

# A newer one has the daemon unpack, with a snapshotter of its own choice.
import_image() {
        local options=(--snapshotter native)

        ! ctr images import --help | grep -q -e --local || options+=(--local)
        ctr --address "$CRI_SOCKET" --namespace k8s.io images import "${options[@]}" "$work/image.tar"
}

start_containerd() {
        mkdir -p "$work/seen"
        ctr oci spec | gpuagentctl oci-spec >"$work/base.json"
        containerd_config >"$work/config.toml"
        run_containerd &
        containerd=$!
        eventually 30 "containerd starts" cri version
        [ ! -e "$work/image.tar" ] || return 0
        cri image "$work/image.tar"
        holds "and has an image" import_image
}

kill_containerd() {
        kill -KILL "$containerd"
        wait "$containerd" 2>/dev/null
        return 0
}

cgroup_of() { echo "/$cgroups/burstable/pod$1"; }

# new_pod UID
new_pod() { cri pod "$1" "$(cgroup_of "$1")" >"$work/$1-pod"; }

# start UID NAME GPU COMMAND: a container of the pod, with that GPU ("" for none). What the runtime says is in $output.
start() {
        local options=(--env "POD=pod-$1" --mount "/seen=$work/seen")

        [ -z "$3" ] || options+=(--device "/dev/nvidia$3=$GPUAGENT_EMULATION_DEVICES/nvidia$3"
                --mount "/gpu=/run/gpuagent-emulation/memory")
        output=$(cri start "$(cat "$work/$1-pod")" "$1" "$(cgroup_of "$1")" "$2" "${options[@]}" -- \
                /bin/sh -c "$4" 2>&1 >"$work/$1-$2")
}

# state_of UID NAME STATE, or how it begins
state_of() {
        output=$(cri state "$(cat "$work/$1-$2")")
        [[ $output == "$3"* ]]
}

# What kubelet does at the end of a pod.
end_cgroup() { until remove_cgroups "$1" && [ -z "$(find /sys/fs/cgroup -type d -path "*$cgroups*pod$1")" ]; do sleep 0.05; done; }
end_pod() {
        cri end "$(cat "$work/$1-pod")"
        end_cgroup "$1"
}

memory() { head -c 100 "/run/gpuagent-emulation/memory/$1" | tr -d '\000'; }
said() { grep -qF "$1" /run/tray/journal; }
