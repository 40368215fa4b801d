#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Which partition a GPU belongs to: what SetPartition says, what a site's fabric.query does, and what of it counts. A
# query that lies, hangs or prints rubbish changes nothing.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms, fabric-timeout: 1s, probe-timeout: 6s}
fabric: {query: /run/tray/query}'
in_tray

set_partition() { busctl call org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager SetPartition 'asusa{sv}' "$@"; }
uuid() { gpu "$1" UUID; }
partitions() { gpuagentctl list --json=short | jq -rc '[.[].partition] | join(" ")'; }

# The query prints standard input from now on.
query_prints() {
        cat >/run/tray/lines.new
        mv /run/tray/lines.new /run/tray/lines
        printf '#!/bin/sh\n%s\nexec cat /run/tray/lines\n' "${1-}" >/run/tray/query.new
        chmod 755 /run/tray/query.new
        mv /run/tray/query.new /run/tray/query
        refresh
}

is "without a query nothing is known" "$(partitions)" "   "
holds "SetPartition is the word that counts then" set_partition 2 0 1 7 tray2 0
is "for these GPUs" "$(partitions)" "7 7  "
is "with the clique that follows from the number" "$(gpu 0 ExpectedCliqueID)" 7
is "so that they are not clean where they are" "$(gpu 0 State)" dirty
exits 1 "and a reset into another clique is not clean" gpuagentctl reset -i 0
like "and says which" "$output" 'is in clique 1, clique 7 is expected'
like "the cure is to repeat what the fabric has not done" "$(gpuagentctl status 0)" \
        'tell the fabric its partition once more, by gpuagentctl partition, then: gpuagentctl reset -i 0'
gpuagent-emulate partition assign 7 tray2 0,1
exits 0 "once the fabric has them there, it is" gpuagentctl reset -i 0,1
is "in the new clique" "$(gpu 0 CliqueID) $(gpu 1 CliqueID)" "7 7"
exits 0 "no caller changes another's word by chance" set_partition 1 2 32766 default 0

query_prints <<<"$(uuid 0) 7 tray2 7
$(uuid 1) 9 nine -
$(uuid 3) 0 - -"
is "the fabric's word counts where it has moved the GPU" "$(partitions)" "7 9 32766 0"
is "a clique of - follows from the partition" "$(gpu 1 ExpectedCliqueID) $(gpu 3 ExpectedCliqueID)" "9 0"
set_partition 1 1 7 tray2 0
is "SetPartition counts until it moves again" "$(partitions)" "7 7 32766 0"

query_prints <<<"$(uuid 0) 7 tray2 7
$(uuid 0) 8 eight 8"
eventually 3 "lines that contradict each other are told in the journal" grep -q 'contradict each other' /run/tray/gpuagent-driver.log
is "and change nothing" "$(partitions)" "7 7 32766 0"
query_prints <<<"rubbish
$(uuid 1) 70000 x 7
GPU-00000000-0000-0000-0000-000000000000 5 five 5
$(printf '%s 4 \e[31m 4' "$(uuid 2)")
$(head -c 100000 /dev/urandom | base64 -w0)"
is "nor do lines that cannot be" "$(partitions)" "7 7 32766 0"
eventually 3 "they are told, too" grep -q 'CLIQUE": rubbish' /run/tray/gpuagent-driver.log
unlike "escaped" "$(cat /run/tray/gpuagent-driver.log)" $'\e'

query_prints 'echo "no route to the fabric" >&2; exit 1' </dev/null
is "a query that fails has moved nothing" "$(partitions)" "7 7 32766 0"
eventually 3 "and its reason is in the journal, once" eval '[ "$(grep -c "no route to the fabric" /run/tray/gpuagent-driver.log)" = 1 ]'
query_prints 'head -c 3000000 /dev/zero | tr "\0" "x"' </dev/null
is "nor has one that does not end" "$(partitions)" "7 7 32766 0"
query_prints 'echo >>/run/tray/asked; sleep 1000 & sleep 1000' </dev/null
is "nor one that hangs" "$(partitions) $(manager DriverState)" "7 7 32766 0 ok"
gpuagent-emulate partition assign 9 nine 1
exits 1 "a reset is judged by its last word then" gpuagentctl reset -i 0,1
like "and not clean in another clique" "$output" 'GPU 1 is not clean after its reset: is in clique 9, clique 7 is expected'
is "and waits for it no more than once" "$(wc -l </run/tray/asked)" 1
query_prints </dev/null
holds "what it left behind is killed" eval '! pgrep -f "sleep 1000"'

stop_service gpuagentd
start_agent
is "SetPartition outlives the agent" "$(gpu 1 Partition) $(gpu 1 PartitionName)" "7 tray2"
exits 1 "an unknown GPU changes nothing" set_partition 2 0 17 5 five 0
is "of the others either" "$(gpu 0 Partition)" 7

# The end of a boot: what was said is forgotten, and the fabric has the GPUs where the operator left them.
query_prints </dev/null
stop_service gpuagentd
rm /run/gpuagent/state
start_agent
like "after a boot nobody has said which partitions there are" "$(gpuagentctl partition)" '- +- +tray +0,1,2,3'
exits 0 "the GPUs take what the fabric has for them" gpuagentctl reset
is "and it is what they were in before" "$(gpu 0 CliqueID) $(gpu 0 State)" "7 clean"
like "the audit has every change" "$(cat /run/tray/journal)" 'GPU 1 was given to another partition: 9 nine, clique 9'
finish
