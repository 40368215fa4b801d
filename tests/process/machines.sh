#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Machines whose GPUs are numbered in more than one way: nodes in another order than the driver's, other PCI domains than
# 0, a serial for two GPUs; and one whose GPUs are in no cluster.
. "$(dirname "$0")/lib.sh"
emulation=$'preset: gb300\nminors: [3, 2, 1, 0]'
config='driver: {poll-interval: 200ms}'
in_tray

counts() { for i in 0 1 2 3; do true_resets $i; done | paste -sd ' '; }

is "a GPU of another PCI domain has its whole address" "$(gpu 3 PCIBusID)" 00000019:06:00.0
is "two GPUs may have one serial" "$(for i in 0 1 2 3; do gpu $i Serial; done | uniq -c | awk '{ print $1 }' | paste -sd ' ')" \
        "2 2"
before=$(counts)
exits 0 "which is no reason to take one for the other" gpuagentctl reset -i "$(gpu 1 UUID)"
is "only that one is reset" "$(counts)" "$(awk '{ $2++; print }' <<<"$before")"
hold 3
like "who has the node nvidia3 holds the first GPU" "$(gpuagentctl ps)" $'\n0 +'"$holder "
before=$(counts)
exits 1 "which is not reset" gpuagentctl reset
is "the others are" "$(counts)" "$(awk '{ $2++; $3++; $4++; print }' <<<"$before")"
is "and clean" "$(states)" "in-use clean clean clean"
release
exits 0 "it is reset as soon as that process is gone" gpuagentctl reset -i 00000008:06:00.0

# Another driver for other GPUs: no cluster, and a clique of 0 that is none.
printf 'preset: h100\nname: other\nreset-time: 200ms\ndevices: %s\n' "$GPUAGENT_EMULATION_DEVICES" >/etc/gpuagent/emulation.yaml
gpuagent-emulate boot
eventually 5 "the GPUs of another machine are seen, and not known to be clean" \
        eval '[ "$(states | tr " " "\n" | grep -c unknown)" = 8 ]'
exits 0 "GPUs in no cluster are reset" gpuagentctl reset -i "$(gpuagentctl list --json=short |
        jq -r '[.[] | select(.state == "unknown") | .uuid] | join(",")')"
is "and clean without a clique" "$(gpuagentctl list --json=short | jq -c '[.[] | select(.state == "clean") | .clique] | unique')" \
        "[null]"
finish
