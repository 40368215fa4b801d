#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A driver whose words are not what it did, and what it asks for beyond a reset.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms}'
in_tray

gpuagent-emulate fail-reset 0 --count 1
exits 1 "a reset that fails, fails" gpuagentctl reset -i 0
is "and quarantines the GPU" "$(gpu 0 State)" quarantined
is "which is counted" "$(manager Quarantined)" 1
is "under its result" "$(gpu 0 LastResetResult)" reset-failed
exits 1 "verify says so" gpuagentctl verify -i 0
exits 0 "a verified reset lifts it" gpuagentctl reset -i 0
is "the GPU is clean" "$(gpu 0 State)" clean

gpuagent-emulate recovery 1 gpu-reset
gpuagent-emulate reset-lies 1 on
exits 1 "a reset that did nothing is found out" gpuagentctl reset -i 1
unlike "the GPU is not clean" "$(gpu 1 State)" clean
gpuagent-emulate heal 1
exits 0 "an honest one is taken" gpuagentctl reset -i 1

before=$(true_resets 2)
gpuagent-emulate recovery 2 node-reboot
exits 1 "a GPU that needs a reboot is not reset" gpuagentctl reset -i 2
like "and that is said" "$output" '[Rr]eboot'
is "no reset was tried" "$(true_resets 2)" "$before"
gpuagent-emulate heal 2
exits 0 "after the cure it is reset" gpuagentctl reset -i 2

gpuagent-emulate recovery 3 9
sleep 1
exits 1 "a GPU with an action that nobody knows is not clean" gpuagentctl verify -i 3
gpuagent-emulate heal 3

gpuagent-emulate blank on
sleep 1.5
exits 0 "a driver that leaves its answers blank is survived" gpuagentctl list
unlike "and nothing it did not say is believed" "$(gpuagentctl list --json=short | jq -r '[.[].uuid] | join(" ")')" 'GPU-0000'
gpuagent-emulate blank off
refresh # a driver that seems not to be in persistence mode is not woken by the timer
gpuagent-emulate init-error 999
eventually 3 "a driver that cannot start is told" driver_is failed
gpuagent-emulate init-error off
eventually 3 "and one that can again" driver_is ok
exits 0 "and a reset works" gpuagentctl reset
is "for all GPUs" "$(states)" "clean clean clean clean"

gpuagent-emulate lost 2
exits 1 "a lost GPU fails its reset" gpuagentctl reset -i 2
is "and is lost" "$(gpu 2 State)" lost
finish
