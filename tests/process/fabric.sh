#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Partition and clique: a change waits for the reset, the fabric settles after it.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms, fabric-timeout: 1s}'
in_tray

column() { gpuagentctl list --json=short | jq -rc "[.[].$1] | join(\" \")"; }
pending() { [ "$(manager ResetsPending) $(column partition)" = "4 7 7 7 7" ]; }

is "the tray starts in the default partition" "$(column partition)" "32766 32766 32766 32766"
is "with its clique" "$(column clique)" "1 1 1 1"
is "and nothing to wait for" "$(manager ResetsPending)" 0

gpuagent-emulate tenant write 0 secret
gpuagent-emulate partition remove default 0,1,2,3 >/dev/null
gpuagent-emulate partition create tray2 --id 7 0,1,2,3 >/dev/null
eventually 3 "a partition change shows, and is pending on every GPU" pending
is "and the old clique" "$(column clique)" "1 1 1 1"
eventually 2 "the driver asks for the reset" eval '[ "$(gpu 0 RecoveryAction)" = gpu-reset ]'
is "the list has it" "$(column reset)" "pending pending pending pending"
exits 1 "such a GPU is not clean" gpuagentctl verify

exits 0 "a reset takes the new clique" gpuagentctl reset
is "on every GPU" "$(column clique)" "7 7 7 7"
is "nothing is pending" "$(manager ResetsPending)" 0
is "the GPU's memory is empty" "$(gpuagent-emulate tenant read 0)" ""
is "the cliques are listed" "$(gpuagentctl clique --json=short | jq -rc '[.[].clique] | join(" ")')" 7

# A fabric that does not settle in time.
gpuagent-emulate settle 0 never
exits 1 "a fabric that never settles fails where a clique is expected" gpuagentctl reset -i 0
unlike "and the GPU is not clean" "$(gpu 0 State)" clean
gpuagent-emulate settle 0 default
exits 0 "once it settles the GPU gets clean" gpuagentctl reset -i 0

gpuagent-emulate partition delete tray2 >/dev/null
gpuagent-emulate partition add default 0,1,2,3 >/dev/null
exits 0 "back into the default partition" gpuagentctl reset
is "with the old clique again" "$(column clique)" "1 1 1 1"

gpuagent-emulate link 1 3 down
eventually 3 "a link that is down shows" eval '[ "$(gpu 1 NVLinksActive)" = 17 ]'
is "and degrades the GPU" "$(gpu 1 Health)" degraded

is "the domain has it" "$(gpuagentctl fabric domain --json=short | jq -c 'map(del(.cluster))')" \
        '[{"trays":1,"gpus":4,"partitions":[32766],"cliques":[1],"resets":0,"nvlinks":71,"down":1,"health":"degraded"}]'
is "the link is named" "$(gpuagentctl fabric links --no-legend | grep -w down | tr -s ' ')" "tray 1 3 down -"
is "the other 71 lead somewhere" "$(gpuagentctl fabric links --json=short | jq '[.[] | select(.state == "up" and .remote)] | length')" 71
echo 'client: {trays: [elsewhere.invalid, tray]}' >/etc/gpuagent/gpuagentctl.yaml
exits 1 "a tray that is not there" gpuagentctl fabric trays --timeout 5 --json=short
like "is named" "$output" '^gpuagentctl: elsewhere.invalid: '
is "and has a row without numbers" "$(gpuagentctl fabric trays --json=short 2>/dev/null | jq -c 'map([.slot, .tray, .gpus, .nvlinks, .down])')" \
        '[[1,"elsewhere.invalid",null,null,null],[2,"tray",4,71,1]]'
exits 2 "a view has a name" gpuagentctl fabric everything
finish
