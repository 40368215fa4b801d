#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The NRI plugin and a runtime: pods get clean GPUs or none, and give them back; whoever of the three is away, no container
# gets a GPU past the gate.
. "$(dirname "$0")/lib.sh"
in_tray

plugin=$GPUAGENT_BUILD/hooks/nri/gpuagent-nri socket=/run/tray/nri.sock
pod_a=0a1b2c3d-1111-4222-8333-444455556666 pod_b=0a1b2c3d-1111-4222-8333-777788889999
pod_c=0a1b2c3d-1111-4222-8333-aaaabbbbcccc

start_plugin() {
        "$GPUAGENT_BUILD/tests/process/supervise" --name gpuagent-nri --notify -- "$plugin" --socket $socket
}
start_runtime() {
        coproc runtime { exec "$GPUAGENT_BUILD/tests/process/nri-runtime" $socket 2>&1; }
}
stop_runtime() {
        eval "exec ${runtime[1]}>&-"
        wait # for the runtime alone: supervisors are not our children
}
# event METHOD POD NODE: what the plugin answers. Time is the caller's: the runtime itself calls more than 2 s "gone".
event() {
        echo "$*" >&"${runtime[1]}"
        IFS= read -r -t 60 -u "${runtime[0]}" answer || answer='no answer at all'
        answer=${answer% }
}
told() { sed -n 's/^MESSAGE=//p' /run/tray/journal; }
tenant_is() { [ "$(gpu "$1" Tenant)" = "$2" ]; }

start_plugin
start_runtime
event CreateContainer $pod_a -
is "a container without a GPU may start" "$answer" 0
before=$(true_resets 0)
event CreateContainer $pod_a /dev/nvidia0
is "one with a GPU gets it" "$answer" 0
is "booked for its pod" "$(gpu 0 Tenant)" "pod/$pod_a"
like "the plugin is ready, and of this runtime" "$(cat /run/tray/gpuagent-nri.notify-log)" 'READY=1.*A plugin of nri-runtime 1'
event CreateContainer "$pod_b" /dev/nvidia0
like "another pod does not" "$answer" "^9 gpuagent: GPUs 0 refused: GPU 0 is leased to pod/$pod_a"
event StopContainer $pod_b /dev/nvidia0
event StopPodSandbox $pod_b -
is "its end takes nothing from the first" "$(gpu 0 Tenant)" "pod/$pod_a"
event StopContainer $pod_a /dev/nvidia0
event CreateContainer $pod_a /dev/nvidia0
is "a container that starts again gets it" "$answer" 0
is "without a reset in between" "$(true_resets 0)" "$before"
event StopPodSandbox $pod_a -
is "the pod's end is answered at once" "$answer" 0
eventually 10 "and ends the lease" tenant_is 0 ''
eventually 10 "with a reset" state_is 0 clean
event RemovePodSandbox $pod_a -
eventually 10 "one" test "$(true_resets 0)" = $((before + 1))
event CreateContainer "$pod_c" /dev/nvidia7
like "a GPU that there is not is refused" "$answer" '^9 gpuagent: GPUs refused: '
event UpdateContainer $pod_c -
like "what the plugin does not know is unimplemented" "$answer" '^12 '

# Slow is not late.
hold 1
event CreateContainer "$pod_b" /dev/nvidia1
like "a GPU that somebody holds is refused in time" "$answer" '^9 gpuagent: GPUs 1 refused: '
release
retry() {
        event CreateContainer "$pod_b" /dev/nvidia1
        [ "$answer" = 0 ]
}
eventually 20 "and had once it is free" retry

# The agent is away.
stop_service gpuagentd
event CreateContainer "$pod_c" /dev/nvidia2
like "without the agent a GPU is refused" "$answer" '^9 gpuagent: GPUs refused: gpuagentd is not running'
event CreateContainer "$pod_c" -
is "and nothing else" "$answer" 0
event StopPodSandbox $pod_b -
is "a pod may end" "$answer" 0
start_agent
kill -STOP "$(main_pid gpuagentd)"
event CreateContainer "$pod_c" /dev/nvidia2
like "from an agent that hangs as well" "$answer" '^9 gpuagent: GPUs refused: gpuagentd does not answer'
kill -CONT "$(main_pid gpuagentd)"

# The others come back.
kill -KILL "$(main_pid gpuagent-nri)"
retry() {
        event CreateContainer "$pod_c" /dev/nvidia2
        [ "$answer" = 0 ]
}
eventually 20 "a plugin that died registers again" retry
is "and books" "$(gpu 2 Tenant)" "pod/$pod_c"
stop_runtime
start_runtime
event StopPodSandbox $pod_c -
is "so it does with a runtime that starts anew" "$answer" 0
eventually 10 "the pod's GPU is free" tenant_is 2 ''
eventually 10 "and clean" state_is 2 clean

# Nonsense from the socket.
stop_runtime
python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX)
os.path.exists(sys.argv[1]) and os.unlink(sys.argv[1])
s.bind(sys.argv[1])
s.listen()
c, _ = s.accept()
c.sendall(b"\0\0\0\1\377\377\377\377" + b"\0\77\377\377\0\0\0\1\1\0" + b"x" * 20000)
c.sendall(b"\0" * 4200000)
while c.recv(65536): pass' $socket
start_runtime
event CreateContainer $pod_a /dev/nvidia3
is "a runtime that talks nonsense is left, and the next one met" "$answer" 0
exits 2 "a path that is too long is refused" "$plugin" --socket "/$(printf 'x%.0s' {1..200})"
exits 2 "as is what it does not know" "$plugin" --nonsense
finish
