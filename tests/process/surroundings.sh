#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What is around the agent fails: there is no room in /run, the root file system cannot be written, the journal is gone,
# or takes nothing any more.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms}'
in_tray

# --- /run is full
stop_service gpuagentd
mount -t tmpfs -o "size=256k,mode=755,uid=$(id -u gpuagent),gid=$(id -g gpuagent)" tmpfs /run/gpuagent
start_agent
exits 0 "the tray is reset" gpuagentctl reset
dd if=/dev/zero of=/run/gpuagent/filler bs=4k 2>/dev/null
before=$(true_resets 0)
exits 1 "a booking that cannot be put on record is refused" gpuagentctl acquire --tenant pod/x -i 0
like "and says why" "$output" "No space left"
is "nobody has the GPU" "$(gpu 0 Tenant)" ""
exits 1 "so is a reset" gpuagentctl reset -i 0
is "and nothing is reset" "$(true_resets 0)" "$before"
holds "the agent goes on answering" answers
kill -KILL "$(main_pid gpuagentd)"
eventually 5 "also when it is started anew" answers
rm /run/gpuagent/filler
eventually 5 "it works again once there is room" gpuagentctl --quiet reset -i 0
is "and the GPU is clean" "$(gpu 0 State)" clean
holds "with a true reset" [ "$(true_resets 0)" -gt "$before" ]

# --- nothing can be written but in /run
mount -o remount,bind,ro / && mount -o remount,bind,ro /etc
exits 1 "no file can be made elsewhere" touch /etc/gpuagent/file /a-file
stop_service gpuagentd
stop_service gpuagent-driver
start_driver
start_agent
exits 0 "the agent starts on it" gpuagentctl verify -i 0
exits 0 "books" gpuagentctl acquire --tenant pod/x -i 0
before=$(true_resets 0)
exits 0 "and resets" gpuagentctl release --tenant pod/x -i 0
is "for true" "$(true_resets 0)" $((before + 1))

# --- the journal takes nothing any more: its socket is full before long
sink=$(pgrep -x journal-sink)
kill -STOP "$sink"
n=0
for _ in {1..60}; do
        timeout 5 gpuagentctl --quiet acquire --tenant pod/x -i 1 && timeout 5 gpuagentctl --quiet release --tenant pod/x -i 1 &&
                n=$((n + 1))
        [ $n -lt 20 ] || break
done
is "the agent works with a journal that takes nothing" "$n" 20
within 1 "and answers" gpuagentctl list
kill -CONT "$sink"
exits 0 "as it does when the journal is back" gpuagentctl reset -i 1

# --- no journal at all
kill -KILL "$sink"
exits 0 "the agent works with a journal that is gone" gpuagentctl reset -i 2
rm /run/systemd/journal/socket
exits 0 "and without one" gpuagentctl reset -i 3
is "all are clean" "$(states)" "clean clean clean clean"
finish
