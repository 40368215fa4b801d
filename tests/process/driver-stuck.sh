#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A worker in uninterruptible sleep, where no signal helps: it reads a file of a filesystem that never answers.
. "$(dirname "$0")/lib.sh"
config='driver: {probe-timeout: 1s, reset-timeout: 1s, poll-interval: 500ms}'
in_tray

if [ ! -x "$GPUAGENT_BUILD/tests/process/hang-fs" ] || [ ! -c /dev/fuse ]; then
        skip "a stuck worker" "no /dev/fuse"
        finish
fi

mkdir /run/tray/stuck
coproc hang_fs { exec "$GPUAGENT_BUILD/tests/process/hang-fs" /run/tray/stuck 4096; }
read -r -t 5 _ <&"${hang_fs[0]}"

# Those in uninterruptible sleep.
stuck() { ps -eo state=,pid= | awk '$1 == "D" { print $2 }'; }
is_stuck() { [ -n "$(stuck)" ]; }

gpuagent-emulate hang on --path /run/tray/stuck/hang
eventually 5 "a worker is stuck" is_stuck
eventually 5 "and that is told" driver_is unresponsive
within 1 "every property answers" gpuagentctl list
sleep 2
is "no second one gets stuck behind it" "$(stuck | wc -l)" 1
exits 1 "a reset is refused in time" timeout 10 gpuagentctl reset -i 0

# A new driver service knows of it, too.
kill -KILL "$(main_pid gpuagent-driver)"
sleep 1
refresh 2>/dev/null
is "nor one of a driver service that was started anew" "$(stuck | wc -l)" 1

gpuagent-emulate hang off
# shellcheck disable=SC2154 # coproc sets it
kill "$hang_fs_PID"
eventually 6 "it heals by itself once the driver lets go" driver_is ok
exits 0 "a reset works again" gpuagentctl reset
is "and all is clean" "$(states)" "clean clean clean clean"
finish
