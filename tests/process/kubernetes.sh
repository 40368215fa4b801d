#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What a cluster is told of its node: node-problem-detector by npd-check and its configuration, node-feature-discovery by
# a file.
. "$(dirname "$0")/lib.sh"
in_tray

npd=$here/../../hooks/node-problem-detector/gpuagent.json
features=/run/tray/features.d/gpuagent

# What node-problem-detector does with rule number $1: sets $code and $output, which it cuts.
rule() {
        local arguments path

        path=$(jq -r ".rules[$1].path" "$npd")
        mapfile -t arguments < <(jq -r ".rules[$1].args[]" "$npd")
        code=0
        output=$(timeout "$(jq -r ".rules[$1].timeout" "$npd")" "${path##*/}" "${arguments[@]}" 2>/dev/null) || code=$?
}
# rule_says NUMBER CLAIM CODE REGEX
rule_says() {
        rule "$1"
        like "$2" "$code $output" "^$3 $4"
        [ ${#output} -le "$(jq .pluginConfig.max_output_length "$npd")" ] || fail "$2, in short" "$output"
}
feature() { sed -n "s,^feature.node.kubernetes.io/gpuagent\.$1=,,p" "$features"; }

is "each rule has its condition" "$(jq -c '[.rules[].condition] - [.conditions[].type]' "$npd")" '[]'
is "and no two have the same" "$(jq '[.rules[].condition] | length - (unique | length)' "$npd")" 0
rule_says 0 "all is well" 0 '4 GPUs, none quarantined$'
rule_says 2 "with one GPU" 0 'GPU 1 is clean$'
rule_says 8 "a GPU that there is not is no problem" 0 'there is no GPU 7'

mkdir /run/tray/features.d
exits 0 "the features are written" gpuagentctl nfd-features $features
is "how many GPUs there are" "$(feature gpus) $(feature clean) $(feature quarantined)" '4 4 0'
like "in which clique" "$(feature clique) $(feature cluster-uuid)" '^[0-9]+ [0-9a-f]{8}-[0-9a-f-]{27}$'
expiry=$(sed -n 's/^# +expiry-time=//p' $features)
is "until when" "$(date -u -d "$expiry" +%FT%TZ)" "$expiry"
like "which is soon" "$(($(date -d "$expiry" +%s) - $(date +%s)))" '^(2[0-9][0-9]|300)$'
is "with values that labels may have" "$(grep -v '^#' $features | grep -cvE '^feature\.node\.kubernetes\.io/gpuagent\.[a-z-]+=[A-Za-z0-9._-]{1,63}$')" 0
is "for everybody to read" "$(stat -c %a $features)" 644
is "without anything beside it" "$(ls -A /run/tray/features.d)" gpuagent
is "the same goes to stdout" "$(gpuagentctl nfd-features | grep -v '^#')" "$(grep -v '^#' $features)"
exits 1 "a folder that there is not is told" gpuagentctl nfd-features /run/tray/nowhere/gpuagent
like "by its name" "$output" 'cannot write /run/tray/nowhere/gpuagent: No such file'

gpuagent-emulate fail-reset 1 >/dev/null
gpuagent-emulate fail-reset 3 >/dev/null
gpuagentctl --quiet reset -i 1 2>/dev/null
eventually 10 "a reset fails" state_is 1 quarantined
rule_says 0 "the tray has a problem" 1 'GPU 1 is quarantined: .*'
rule_says 2 "with that GPU" 1 'GPU 1 is quarantined: .*'
rule_says 1 "and with no other" 0 'GPU 0 is clean$'
gpuagentctl --quiet reset -i 3 2>/dev/null
eventually 10 "a second one fails" state_is 3 quarantined
rule_says 0 "both are named" 1 '2 GPUs \(1,3\): .*'
gpuagentctl --quiet nfd-features $features
is "the features count them" "$(feature clean) $(feature quarantined)" '2 2'

stop_service gpuagentd
rule_says 0 "without the agent nobody can tell" 2 'gpuagentd is not running'
old=$(cat $features)
exits 5 "and features are not made up" gpuagentctl nfd-features $features
is "the old ones stay, until they expire" "$(cat $features)" "$old"
start_agent
kill -STOP "$(main_pid gpuagentd)"
rule_says 2 "nor with one that hangs, within the time" 2 'gpuagentd does not answer'
kill -CONT "$(main_pid gpuagentd)"
gpuagent-emulate heal >/dev/null
gpuagentctl --quiet reset
eventually 10 "a reset that works cures it" states_are clean clean clean clean
rule_says 0 "and the problem is over" 0 '4 GPUs, none quarantined$'
finish
