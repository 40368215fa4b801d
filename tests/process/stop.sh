#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The agent, and then the driver service before it, is stopped in the middle of a handover: that one ends first, and
# nothing new begins.
. "$(dirname "$0")/lib.sh"
emulation='{reset-time: 1s, settle-time: 1s}'
in_tray

resetting() { state_is 0 resetting; }

before=$(true_resets 0)
gpuagentctl reset -i 0 >/run/tray/answer 2>&1 &
caller=$!
eventually 3 "a reset is under way" resetting
stop_service gpuagentd &
stopping=$!
eventually 1 "the agent says that it stops" grep -q STOPPING=1 /run/tray/gpuagentd.notify-log
exits 1 "a new one is refused" gpuagentctl reset -i 1
like "with the reason" "$output" stopping
wait $caller && code=0 || code=$?
is "the one under way ends well" "$code" 0
is "it was a true one" "$(true_resets 0)" $((before + 1))
wait $stopping
like "and then the agent stops, with code 0" "$(tail -n 1 /run/tray/gpuagentd.log)" 'ended with code 0'

start_agent
is "the next one knows that the GPU is clean" "$(states)" "clean clean clean clean"

before=$(true_resets 0)
gpuagentctl reset -i 0 >/run/tray/answer 2>&1 &
caller=$!
eventually 3 "another reset is under way" resetting
stop_service gpuagent-driver &
driver=$!
eventually 1 "the driver service says that it serves on" grep -q 'until the handovers' /run/tray/gpuagent-driver.log
stop_service gpuagentd &
stopping=$!
wait $caller && code=0 || code=$?
is "it lets the handover end, which needs it after the reset, too" "$code $(cat /run/tray/answer)" "0 GPUs 0 reset"
is "that one was true, too" "$(true_resets 0)" $((before + 1))
wait $stopping $driver
like "and then the driver service stops, with code 0" "$(tail -n 1 /run/tray/gpuagent-driver.log)" 'ended with code 0'
finish
