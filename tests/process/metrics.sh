#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The metrics, by the rules of the text format, and what they say.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms}'
in_tray

# One HELP and one TYPE a family before its samples, its samples together, numbers that are numbers, no sample twice.
well_formed() {
        awk '
                function bad(why) { print FNR ": " why ": " $0; failed = 1 }
                function family(name) {
                        if (type[name]) return name
                        sub(/_(bucket|sum|count|total)$/, "", name)
                        return name
                }
                /^# HELP / { if (help[$3]++) bad("a second HELP"); next }
                /^# TYPE / {
                        if (type[$3]) bad("a second TYPE")
                        if ($4 !~ /^(gauge|counter|histogram|summary|untyped)$/) bad("no such type")
                        type[$3] = $4
                        next
                }
                /^#/ || /^$/ { next }
                !/^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\.)*",?)*\})? (-?[0-9.]+(e[-+]?[0-9]+)?|NaN|[-+]Inf)( [0-9]+)?$/ {
                        bad("no sample")
                        next
                }
                {
                        name = $0
                        sub(/[{ ].*/, "", name)
                        name = family(name)
                        if (!(name in type)) bad("no TYPE before it")
                        if (name != last && name in seen) bad("its family is torn apart")
                        seen[name] = 1
                        last = name
                        sample = $0
                        sub(/ [^ ]*$/, "", sample)
                        if (samples[sample]++) bad("twice")
                }
                END { if (!FNR) bad("empty"); exit failed }' "$1"
}

value() { gpuagentctl metrics | grep -v '^#' | grep -F "$1" | grep -F "$2" | head -n 1 | sed 's/.* //'; }
metrics_say() { [ "$(value "$1" "$2")" = "$3" ]; }
all_are_clean() { [ "$(grep -c '^gpuagent_gpu_state{.*state="clean".*} 1$' /run/gpuagent/metrics.prom)" = 4 ]; }

uuid=$(gpu 0 UUID)
eventually 3 "they follow the reset at boot" all_are_clean
holds "they are well-formed" well_formed /run/gpuagent/metrics.prom
is "what is printed is the file" "$(gpuagentctl metrics | md5sum)" "$(md5sum </run/gpuagent/metrics.prom)"
eventually 3 "the GPUs are in it" grep -q ^gpuagent_gpu_state /run/gpuagent/metrics.prom
for name in nvlink_gpu_reset_pending nvlink_gpu_partition_id nvlink_gpu_clique_id nvlink_gpu_links nvlink_gpu_active_links \
        nvlink_gpu_healthy gpuagent_gpu_state gpuagent_resets_total gpuagent_reset_duration_seconds_bucket \
        gpuagent_gpu_recovery_action gpuagent_gpu_holders gpuagent_driver_up gpuagent_last_update_timestamp_seconds \
        gpuagent_build_info; do
        holds "$name is there" grep -q "^${name}[{ ]" /run/gpuagent/metrics.prom
done
is "a GPU has one state" "$(grep '^gpuagent_gpu_state{' /run/gpuagent/metrics.prom | grep -F "$uuid" | grep -c ' 1$')" 1
is "a link count" "$(value nvlink_gpu_active_links "$uuid")" 18
is "a clique" "$(value nvlink_gpu_clique_id "$uuid")" 1
is "a driver that is up" "$(value gpuagent_driver_up '')" 1
is "labels host, gpu and uuid" "$(grep '^nvlink_gpu_links{' /run/gpuagent/metrics.prom | head -n 1 |
        sed 's/="[^"]*"//g')" "nvlink_gpu_links{host,gpu,uuid} 18"

gpuagent-emulate partition remove default 0 >/dev/null
eventually 3 "a pending reset shows" metrics_say nvlink_gpu_reset_pending "$uuid" 1
gpuagentctl --quiet reset -i 0
eventually 3 "and is gone after the reset" metrics_say nvlink_gpu_reset_pending "$uuid" 0
gpuagent-emulate fail-reset 1 --count 1
gpuagentctl --quiet reset -i 1 2>/dev/null
eventually 3 "a quarantine shows" metrics_say 'state="quarantined"' "$(gpu 1 UUID)" 1
holds "they are still well-formed" well_formed /run/gpuagent/metrics.prom
is "anybody can read them" "$(stat -c %a /run/gpuagent/metrics.prom)" 644
if command -v promtool >/dev/null; then holds "Prometheus takes them" promtool check metrics </run/gpuagent/metrics.prom; fi
finish
