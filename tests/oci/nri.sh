#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Debian 13's containerd with its NRI switched on, asked over the CRI as kubelet does, and gpuagent-nri as its plugin.
. "$(dirname "$0")/lib.sh"
needs jq
plugin=${GPUAGENT_BUILD:-$here/../../build}/hooks/nri/gpuagent-nri
[ -x "$plugin" ] || { echo "1..0 # SKIP gpuagent-nri was not built" && exit 0; }
if [ -z "${CONTAINERD_ROOT-}" ]; then # which may be another Debian's
        CONTAINERD_ROOT=$("$here/../oci/containerd-root" 2>&1) ||
                { echo "1..0 # SKIP no Debian 13 tree: $CONTAINERD_ROOT" && exit 0; }
        export CONTAINERD_ROOT
fi
config='driver: {poll-interval: 500ms}'
in_tray
plugin=$GPUAGENT_BUILD/hooks/nri/gpuagent-nri

export CRI_SOCKET=/run/tray/containerd.sock
root=$work/root
pod_a=0a1b2c3d-1111-4222-8333-444455556666 pod_b=0a1b2c3d-1111-4222-8333-777788889999
pod_c=0a1b2c3d-1111-4222-8333-aaaabbbbcccc

make_root() {
        mkdir -p "$root" $work/upper $work/work
        mount -t overlay overlay -o "lowerdir=$CONTAINERD_ROOT,upperdir=$work/upper,workdir=$work/work" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount --rbind /run "$root/run"
        cp "$here/../oci/cri" "$root/usr/local/bin/cri"
        containerd_version=$(inside containerd --version | cut -d' ' -f3)
        containerd_config >"$root/etc/containerd/config.toml"
}
# In the words of containerd 1.7, or of 2.
containerd_config() {
        local version=2 runtime=io.containerd.grpc.v1.cri images=io.containerd.grpc.v1.cri image='' snapshotter=.containerd

        if [[ $containerd_version == v2* || $containerd_version == 2* ]]; then
                version=3 runtime=io.containerd.cri.v1.runtime images=io.containerd.cri.v1.images image=.pinned_images snapshotter=''
        fi
        cat <<CONFIG
version = $version
state = "/run/tray/containerd"
[grpc]
  address = "$CRI_SOCKET"
[plugins."$runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  ${image:+#}sandbox_image = "localhost/busybox:1"
[plugins."$images"$snapshotter]
  snapshotter = "native"
${image:+[plugins.\"$images\"$image]
  sandbox = \"localhost/busybox:1\"}
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "/run/tray/nri.sock"
CONFIG
        ! requires_plugins || cat <<'CONFIG'
[plugins."io.containerd.nri.v1.nri".default_validator]
  enable = true
  required_plugins = ["gpuagent"]
CONFIG
}
# Since 2.2 containerd can be told to start nothing without the plugin.
requires_plugins() { [[ $(printf '%s\n' 2.2 "${containerd_version#v}" | sort -V | head -n 1) == 2.2 ]]; }
inside() { chroot "$root" "$@"; }
cri() { inside cri "$@"; }

start_containerd() {
        (chroot "$root" setsid containerd >>/run/tray/containerd.log 2>&1 &)
        eventually 60 "containerd is up" inside ctr --address $CRI_SOCKET version
}
# The pods and shims of a containerd are its own processes' no more.
kill_containerd() {
        pkill -KILL -x containerd
        while pgrep -x containerd >/dev/null; do sleep 0.05; done
}
registered() { grep -c "A plugin of containerd" /run/tray/gpuagent-nri.notify-log; }
has_registered() { [ "$(registered)" -ge "$1" ]; }

# pod UID: sets $sandbox.
pod() { sandbox=$(cri pod "$1" "/$cgroups/pod$1"); }
# start UID GPU ("" for none) NAME COMMAND: sets $container and $output, and returns what cri returns.
start() {
        local device=()

        [ -z "$2" ] || device=(--device "/dev/nvidia$2=$GPUAGENT_EMULATION_DEVICES/nvidia$2")
        output=$(cri start "$sandbox" "$1" "/$cgroups/pod$1" "$3" "${device[@]}" -- /bin/sh -c "$4" 2>&1)
        local code=$?

        container=${output%%$'\n'*}
        return $code
}
# What is claimed about a start, which sets variables and so cannot be a check's own command.
started() {
        local claim=$1

        shift
        if start "$@"; then pass "$claim"; else fail "$claim" "$output"; fi
}
refused() { # CLAIM REGEX ARGUMENT...
        local claim=$1 regex=$2

        shift 2
        if start "$@"; then fail "$claim" "it started"; else like "$claim" "$output" "$regex"; fi
}
ended() { [[ $(cri state "$1") == exited* ]]; }
nobody_has() { [ "$(gpu "$1" Tenant)" = "" ]; }

mkdir $work
trap 'pkill -KILL containerd; remove_cgroups' EXIT
make_root
"$GPUAGENT_BUILD/tests/process/supervise" --name gpuagent-nri --notify -- "$plugin" --socket /run/tray/nri.sock
start_containerd
inside cri image /tmp/image.tar
import=()
[[ $containerd_version == 1.* ]] || import=(--local)
inside ctr --address $CRI_SOCKET --namespace k8s.io images import "${import[@]}" --snapshotter native /tmp/image.tar >/dev/null 2>&1
eventually 20 "the plugin registers" has_registered 1
like "with containerd $containerd_version" "$(cat /run/tray/gpuagent-nri.notify-log)" \
        "A plugin of containerd v?${containerd_version%%[~+]*}"

before=$(true_resets 0)
pod $pod_a
sandbox_a=$sandbox
started "a container without a GPU starts" $pod_a "" plain 'exit 3'
started "one with a GPU starts" $pod_a 0 main 'exec sleep 1000'
first=$container
is "and has it booked for its pod" "$(gpu 0 Tenant)" "pod/$pod_a"
eventually 5 "which is seen" eval '[ "$(gpu 0 TenantPresence)" = alive ]'

pod $pod_b
sandbox_b=$sandbox
refused "a second pod does not get it" "gpuagent: GPUs 0 refused: GPU 0 is leased to pod/$pod_a" $pod_b 0 main 'exec sleep 1000'
is "which changes nothing" "$(gpu 0 Tenant)" "pod/$pod_a"

cri stop "$first"
eventually 10 "the first one's container ends" ended "$first"
cri remove "$first"
sandbox=$sandbox_a
started "and starts again" $pod_a 0 main 'exec sleep 1000'
is "without a reset in between" "$(true_resets 0)" "$before"

cri stop "$container"
cri end "$sandbox_a"
eventually 10 "the pod's end ends its lease" nobody_has 0
eventually 10 "with a reset" state_is 0 clean
is "one" "$(true_resets 0)" $((before + 1))
sandbox=$sandbox_b
started "the second pod's retry has the GPU" $pod_b 0 main 'exec sleep 1000'
is "for itself" "$(gpu 0 Tenant)" "pod/$pod_b"

# What takes long is refused before containerd loses patience.
hold 1
pod $pod_c
refused "a GPU that a process holds is refused" 'gpuagent: GPUs 1 refused: ' $pod_c 1 main 'exit 0'
release
# shellcheck disable=SC2317 # eventually calls it
retry() { start "$pod_c" 1 main 'exec sleep 1000'; }
eventually 20 "and had on a retry" retry
is "by the same connection" "$(registered)" 1

# Whoever is away, no container gets past the gate.
stop_service gpuagentd
refused "without the agent no container gets a GPU" 'gpuagent: GPUs refused: gpuagentd is not running' $pod_c 2 other 'exit 0'
started "and others start" $pod_c "" plain 'exit 0'
start_agent

kill_containerd
start_containerd
eventually 20 "after containerd died the plugin registers anew" has_registered 2
sandbox=$sandbox_b
refused "and is asked" "GPU 1 is leased to pod/$pod_c" $pod_b 1 second 'exit 0'
# Of the end of such a pod containerd 1.7 says nothing: the agent sees that kubelet has taken its cgroup away.
cri end "$sandbox_b"
remove_cgroups "pod$pod_b"
eventually 10 "a pod from before ends as well" nobody_has 0
eventually 10 "with a reset" state_is 0 clean

kill -KILL "$(main_pid gpuagent-nri)"
eventually 20 "a plugin that died registers anew" has_registered 3
pod $pod_a
refused "and is asked" "GPU 1 is leased to pod/$pod_c" $pod_a 1 main 'exit 0'

# Its pod's end is not told to anybody: plugin and containerd are away.
stop_service gpuagent-nri
if requires_plugins; then
        pod $pod_b # by which it sees that the plugin is gone
        refused "without its plugin containerd starts no container" 'required plugin "gpuagent" not present' $pod_b "" lonely 'exit 0'
fi
kill_containerd
pkill -KILL containerd-shim && pkill -KILL -x sleep
eventually 20 "a pod whose end nobody tells of keeps its GPU while its cgroup is there" eval '[ "$(gpu 1 Tenant)" != "" ]'
remove_cgroups "pod$pod_c"
eventually 20 "and not longer" nobody_has 1
eventually 10 "and the GPU is clean" state_is 1 clean
finish
