#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The state file: torn, foreign, not writable. What is not known for certain is not clean.
. "$(dirname "$0")/lib.sh"
in_tray

state=/run/gpuagent/state
holds "there is a state file" [ -s $state ]
is "the GPUs were clean" "$(states)" "clean clean clean clean"

stop_service gpuagentd
size=$(stat -c %s $state)
truncate -s $((size / 2)) $state
start_agent
eventually 3 "after a torn state file nothing is known to be clean" states_are unknown unknown unknown unknown
holds "which is said" grep -q "/run/gpuagent/state cannot be read (Bad message): every GPU is unknown" /run/tray/gpuagentd.log
exits 0 "a reset cures that" gpuagentctl reset
is "for all GPUs" "$(states)" "clean clean clean clean"

stop_service gpuagentd
head -c 100000 /dev/urandom >$state
start_agent
eventually 3 "after a foreign one neither" states_are unknown unknown unknown unknown
gpuagentctl --quiet reset

stop_service gpuagentd
sed -i 's/^state .*/state victorious/' $state
start_agent
eventually 3 "a state that nobody wrote counts as torn" states_are unknown unknown unknown unknown
gpuagentctl --quiet reset

# The folder cannot be written any more: a reset could not be put on record, so there is none.
before=$(gpu 0 ResetCount)
chown root /run/gpuagent && chmod 755 /run/gpuagent
exits 1 "a request that cannot be put on record is refused" gpuagentctl reset -i 0
is "and nothing is reset" "$(gpu 0 ResetCount)" "$before"
holds "the agent goes on answering" answers
chown gpuagent /run/gpuagent
exits 0 "it works again once the folder does" gpuagentctl reset -i 0
finish
