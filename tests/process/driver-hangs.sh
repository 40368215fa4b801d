#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A driver that does not answer any more.
. "$(dirname "$0")/lib.sh"
config='driver: {probe-timeout: 1s, reset-timeout: 1s, poll-interval: 500ms}'
in_tray

vendor_processes() { pgrep -c -P "$(main_pid gpuagent-driver)" || true; }

gpuagent-emulate hang on
eventually 4 "it is told within its deadline" driver_is unresponsive
within 1 "every property answers at once all the same" gpuagentctl list
like "with the reason" "$(manager DriverError)" .
exits 1 "a reset fails" timeout 10 gpuagentctl reset -i 0 --job 5
like "with that reason" "$output" '[Rr]espon|answer'
unlike "and the GPU that a tenant had is not held to be clean" "$(gpu 0 State)" clean
exits 1 "verify fails" timeout 10 gpuagentctl verify -i 0
n=$(vendor_processes)
holds "there is never more than one worker" [ "$n" -le 1 ]

gpuagent-emulate hang off
eventually 5 "it heals by itself" driver_is ok
exits 0 "a reset works again" gpuagentctl reset
is "and all is clean" "$(states)" "clean clean clean clean"
finish
