#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The hook of container engines by itself: what a runtime may say on its stdin, and what then becomes of the GPUs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/oci-lib.sh"
config='oci: {timeout: 3s, observers: [monitoring]}'
in_tray
install_hooks

program=/usr/lib/gpuagent/gpuagent-oci-hook bundle=/run/tray/bundle init=1
pod=0a1b2c3d-1111-4222-8333-444455556666
mkdir $bundle

# bundle CONFIG: what config.json is from now on.
bundle() { printf '%s' "$1" >$bundle/config.json; }
# The state of container $1, with annotations $2.
state() { printf '{"ociVersion":"1.0.2","id":"%s","status":"x","pid":%s,"bundle":"%s","annotations":{%s}}' "$1" "$init" $bundle "${2-}"; }
hook() { state "$2" "${3-}" | $program "$1"; }
# hostile STAGE COMMAND...: its output is the state.
hostile() {
        local stage=$1

        shift
        "$@" 2>/dev/null | $program "$stage"
        return "${PIPESTATUS[1]}"
}

gpuless='{"process":{"env":["PATH=/bin","NVIDIA_VISIBLE_DEVICES=all"]},"linux":{"devices":[{"path":"/dev/nvidiactl","type":"c","major":195,"minor":255}]}}'
one='{"linux":{"devices":['$(node 0)']}}'
two='{"linux":{"devices":['$(node 0),$(node 1)']}}'

# A pair.
read -r a b c d <<<"$(counts)"
bundle "$two"
exits 0 "a container's GPUs are booked" hook prestart c1
is "for it" "$(tenants)" "container/c1 container/c1 - -"
exits 0 "again by a hook that comes twice" hook prestart c1
exits 1 "another container is refused" hook prestart c2
like "with who has them" "$output" "^gpuagent: GPUs 0,1 refused: GPU 0 is leased to container/c1; GPU 1 is leased to container/c1"
is "in one line" "$(wc -l <<<"$output")" 1
exits 0 "its poststop comes all the same" hook poststop c2
is "and changes nothing" "$(tenants) $(counts)" "container/c1 container/c1 - - $a $b $c $d"
bundle '{"linux":{"devices":[]}}'
exits 0 "a container with a GPU ends" hook poststop c1
is "by what was booked, if config.json says so" "$(tenants)" "container/c1 container/c1 - -"
bundle "$one"
exits 0 "it ends" hook poststop c1
eventually 10 "its GPUs are reset" was_reset 0 "$a"
eventually 10 "all of them" was_reset 1 "$b"
exits 0 "a poststop that comes again" hook poststop c1
is "resets nothing" "$(tenants) $(counts)" "- - - - $((a + 1)) $((b + 1)) $c $d"
exits 0 "a container books" hook prestart c3
rm $bundle/config.json
exits 0 "a poststop without a config.json" hook poststop c3
eventually 10 "ends the lease, too" tenant_is 0 ""

# A pod.
cgroup='"linux":{"cgroupsPath":"/kubepods/burstable/pod'$pod'/x","devices":['$(node 2)']}'
sandbox='"io.kubernetes.cri.sandbox-uid":"'$pod'","io.kubernetes.cri.sandbox-namespace":"jobs"'
bundle "{$cgroup}"
exits 0 "a pod's init container books" hook prestart i1 "$sandbox"
is "for the pod" "$(gpu 2 Tenant)" "pod/$pod"
exits 0 "it ends" hook poststop i1 "$sandbox"
exits 0 "the next container has the GPU" hook prestart i2 "$sandbox"
is "without a reset" "$(gpu 2 Tenant) $(true_resets 2)" "pod/$pod $c"
within 10 "another pod waits" hook prestart j1 "${sandbox/0a1b2c3d/ff1b2c3d}"
exits 1 "and is refused" hook prestart j1 "${sandbox/0a1b2c3d/ff1b2c3d}"
like "with who has it" "$output" "^gpuagent: GPUs 2 refused: GPU 2 is leased to pod/$pod"

# Its engine is killed, or it is deleted, while it waits: no cgroup of it was seen, and none will be.
late=${pod/0a1b2c3d/ee1b2c3d}
knows_its_process() { find "/proc/$(pgrep -x gpuagentctl)/fd" -lname '*pidfd*' | grep .; }
configure 'oci: {timeout: 1min}'
bundle "{${cgroup/$pod/$late}}"
sleep 1000 &
init=$!
hook prestart j2 "${sandbox/$pod/$late}" >/run/tray/late 2>&1 &
waiter=$!
eventually 10 "a third pod waits" knows_its_process
kill $init
wait $init 2>/dev/null
init=1
gpuagentctl --quiet release --tenant "pod/$pod"
wait $waiter && code=0 || code=$?
is "a container that ends meanwhile is refused" "$code $(cat /run/tray/late)" \
        "1 gpuagent: GPUs 2 refused: the container has ended before it began"
eventually 10 "and has no GPU any more" tenant_is 2 ""
eventually 10 "which is reset" state_is 2 clean
configure '{}'

# Words for GPUs.
uuid=$(gpu 3 UUID)
legacy='"hooks":{"prestart":[{"path":"/usr/bin/nvidia-container-runtime-hook"}]}'
bundle "$gpuless"
exits 0 "a CUDA image without a GPU" hook prestart c4
is "has none" "$(tenants)" "- - - -"
bundle "{\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=${uuid:0:12}\"]},$legacy}"
exits 0 "a variable that NVIDIA's hook acts on" hook prestart c4
is "names a GPU" "$(tenants)" "- - - container/c4"
hook poststop c4
eventually 10 "until its end" tenant_is 3 ""
configure 'oci: {nvidia-runtime: true, timeout: 3s, observers: [monitoring]}'
bundle '{"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]}}'
exits 0 "where NVIDIA's runtime is at work it does, too" hook prestart c5
is "and all are all" "$(tenants)" "container/c5 container/c5 container/c5 container/c5"
hook poststop c5
eventually 10 "until its end" tenant_is 3 ""
exits 0 "a pod that observes" hook prestart o1 "${sandbox/jobs/monitoring}"
is "has none" "$(tenants)" "- - - -"
configure '{}'
bundle "{\"linux\":{\"devices\":[$(node 0)],\"resources\":{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]}}}"
exits 0 "a privileged container" hook prestart p1
is "has none" "$(tenants)" "- - - -"
bundle '{"linux":{"devices":['"$(node 9)"']}}'
exits 3 "a GPU that is not there" hook prestart c6
is "is named" "$output" "gpuagent: GPUs refused: no GPU has /dev/nvidia9"

# What is no state, and what is no configuration.
bundle "$one"
refused() { like "$1" "$output" "^gpuagent: [^"$'\n'"]+$"; }
exits 1 "an empty state" hostile prestart true && refused "is refused in a line"
exits 1 "half a state" hostile prestart printf '{"id":"x","bundle":"' && refused "is refused in a line"
exits 1 "bytes" hostile prestart head -c 5000 /dev/urandom && refused "are refused in a line"
exits 1 "a state without a bundle" hostile prestart printf '{"id":"x","bundle":""}' && refused "is refused in a line"
exits 1 "64 MiB of brackets" hostile prestart sh -c "head -c 67108864 /dev/zero | tr '\\0' '['" && refused "are refused"
within 5 "within five seconds" hostile prestart sh -c "head -c 67108864 /dev/zero | tr '\\0' '['"
exits 1 "a state that never ends" hostile prestart yes && refused "is refused"
within 5 "within five seconds" hostile prestart yes
exits 1 "one that never begins" hostile prestart sleep 3 && refused "is refused"
exits 1 "another one's container" hook prestart '../../x' && refused "is refused"
bundle '[1]'
exits 1 "a config.json that is none" hook prestart c7 && refused "is refused"
bundle "$(printf '{"a":%0100d' 1 | tr 01 '[[')"
exits 1 "one that is deep" hook prestart c7 && refused "is refused"
head -c 5000000 /dev/zero | tr '\0' ' ' >$bundle/config.json
exits 1 "one that is long" hook prestart c7 && refused "is refused"
rm $bundle/config.json && mkfifo $bundle/config.json
within 5 "a fifo in its place is not waited for" hook prestart c7
exits 1 "nor taken" hook prestart c7
rm $bundle/config.json
exits 1 "none at all" hook prestart c7 && refused "is refused"
for stage in prestart poststop; do
        exits 2 "gpuagentctl wants a stage" gpuagentctl oci-hook "${stage}x"
        exits 2 "as the program does" $program "${stage}x"
done
exits 0 "a poststop is content with bytes" hostile poststop head -c 5000 /dev/urandom
exits 0 "and with what never ends" hostile poststop yes
exits 0 "or never begins" hostile poststop sleep 3
is "all that changed nothing" "$(tenants)" "- - - -"

# What is not clean; a site that only observes, or has the handover off.
bundle "$one"
hold 0
exits 1 "a foreign process is found before the container" hook prestart c8
like "with its name" "$output" "^gpuagent: GPUs 0 refused: GPU 0 is held by holder \(pid $holder, user root"
configure 'mode: observe'
exits 0 "a site that only observes refuses nothing" hook prestart c8
hook poststop c8
configure 'handover: {reset: false}'
exits 0 "nor one that resets nothing" hook prestart c9
is "and books" "$(gpu 0 Tenant)" "container/c9"
hook poststop c9
release
configure '{}'
bundle "{\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=MIG-1\"]},$legacy}"
exits 1 "MIG devices are refused" hook prestart m1
like "with the reason" "$output" "MIG devices \(MIG-1\), which cannot be reset one by one"
configure 'handover: {mig: skip}'
exits 0 "unless they are to be left alone" hook prestart m1
configure '{}'

# An agent that hangs, and none.
gpuagentctl --quiet reset -i 0
bundle "$one"
exits 0 "a container books" hook prestart h1
kill -STOP "$(main_pid gpuagentd)"
within 4 "an agent that hangs does not hold up an end" hook poststop h1
exits 0 "nor make it fail" hook poststop h1
kill -CONT "$(main_pid gpuagentd)"
stop_service gpuagentd
within 5 "without an agent a container with a GPU is refused at once" hook prestart n1
exits 5 "with a code" hook prestart n1
refused "and a line"
exits 0 "its end is well" hook poststop n1
bundle "$gpuless"
exits 0 "one without a GPU starts" hook prestart n2
exits 0 "and ends" hook poststop n2
is "without a word" "$output" ""

# The configuration for containerd.
spec='{"ociVersion":"1.0.2","process":{"rlimits":[1],"apparmorProfile":"x","args":[]},"hooks":{"prestart":[{"path":"/a"}]},"linux":{"seccomp":{},"namespaces":[]}}'
base=$(printf %s "$spec" | gpuagentctl oci-spec)
is "oci-spec puts the hooks first" "$(jq -c '[.hooks.prestart[].path, .hooks.poststop[].path]' <<<"$base")" \
        "[\"$program\",\"/a\",\"$program\"]"
is "and takes out what containerd would" "$(jq -c '[.process, .linux]' <<<"$base")" '[{"args":[]},{"namespaces":[]}]'
is "once, however often it is run" "$(gpuagentctl oci-spec <<<"$base")" "$base"
exits 1 "what is no specification is refused" gpuagentctl oci-spec </dev/null
finish
