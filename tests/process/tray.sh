#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The emulated tray itself.
. "$(dirname "$0")/lib.sh"
tray=$here/../tray

exits 0 "a command runs in the caller's folder, with its arguments" bash -c "cd /usr && '$tray' -- bash -c 'echo \"\$PWD\" \"\$1\"' x 'a  b'"
is "nothing else is printed" "$output" "/usr a  b"
exits 7 "its exit code is the tray's" "$tray" -- sh -c 'exit 7'
exits 137 "a killed command is told from a failed one" "$tray" -- sh -c 'kill -KILL $$'
exits 0 "it reads the caller's input" sh -c "echo hello | '$tray' -- cat"
is "as it is" "$output" hello
exits 2 "no command is wrong usage" "$tray" --gpus 2
exits 1 "an unknown build folder is refused" "$tray" --build /nonexistent -- true

exits 0 "the bus, the programs and the driver are there" "$tray" --gpus 3 -- sh -c '
        gpuagentctl list --no-legend | wc -l
        nvidia-smi -L | wc -l
        ls "$GPUAGENT_EMULATION_DEVICES" | grep -c "nvidia[0-9]"
        busctl call org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager GetGPU s 2 | cut -c1-3
        gpuagentctl verify >/dev/null && echo clean'
is "with as many GPUs as asked for, reset at boot" "$(tr '\n' ' ' <<<"$output")" '3 3 3 o " clean '

closed=$(mktemp -d) # as a home is, with a mode of 0700
mkdir "$closed/build"
exits 0 "it may be built where nobody else may look" timeout 30 unshare --mount sh -c \
        "mount --bind '${GPUAGENT_BUILD:-$here/../../build}' '$closed/build' && '$tray' --build '$closed/build' -- gpuagentctl verify"
rmdir "$closed/build" "$closed"

for i in 1 2 3; do "$tray" --gpus "$i" -- sh -c 'sleep 0.3; gpuagentctl list --no-legend | wc -l' >"/tmp/tray-$$-$i" & done
wait
is "several stand side by side" "$(cat /tmp/tray-$$-* | tr '\n' ' ')" "1 2 3 "
rm -f /tmp/tray-$$-*

# Whatever ends it, nothing is left: no process is in the PID namespace that the command was in.
noted=$(mktemp)
gone() { ! readlink /proc/[0-9]*/ns/pid | grep -qxF "$(cat "$noted")"; }
for signal in TERM KILL; do
        : >"$noted"
        "$tray" -- sh -c "readlink /proc/self/ns/pid >'$noted'; exec sleep 1000" &
        pid=$!
        until [ -s "$noted" ]; do sleep 0.05; done
        kill -$signal $pid
        wait $pid 2>/dev/null
        eventually 2 "nothing is left after SIG$signal to the tray" gone
done
"$tray" -- sh -c "readlink /proc/self/ns/pid >'$noted'; sleep 1000 & exit 0"
eventually 2 "nothing is left of what the command left running" gone
rm -f "$noted"
finish
