#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The daemons as services: signals, notifications, reloading.
. "$(dirname "$0")/lib.sh"
in_tray

second_agent() { timeout 5 "$@" "$(command -v gpuagentd)"; }
told() { grep -q "$1" /run/tray/gpuagentd.notify-log; }
configuration=/etc/gpuagent/gpuagentd.yaml.d/60-more.yaml

holds "the agent said when it was ready" told '^READY=1'
like "its status names the GPUs" "$(grep -h ^STATUS= /run/tray/gpuagentd.notify-log | tail -n 1)" '4 GPUs'

exits 1 "a second agent does not start" second_agent setpriv --reuid=gpuagent --regid=gpuagent --clear-groups
like "and says why" "$output" "Another gpuagentd works in /run/gpuagent"
exits 1 "nor does one that root starts" second_agent
exits 0 "the first has lost nothing by it" env DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere gpuagentctl list

echo 'metrics: {nvlink: false}' >$configuration
exits 0 "a good configuration is taken" gpuagentctl reload
eventually 3 "and shows" eval '! grep -q ^nvlink_gpu_healthy /run/gpuagent/metrics.prom'

printf 'handover:\n  reset: false\n  rest: true\n' >$configuration
exits 1 "a bad configuration is refused" gpuagentctl reload
like "with file and line" "$output" "60-more.yaml:3:"
is "and the old one stays" "$(manager HandoverReset)" true
exits 1 "the check of a configuration finds the same" gpuagentd --check-config
like "with file and line, too" "$output" "60-more.yaml:3:"

stop_service gpuagentd
exits 1 "the agent does not start with it" timeout 5 setpriv --reuid=gpuagent --regid=gpuagent --clear-groups \
        "$(command -v gpuagentd)"
like "and says where" "$output" "60-more.yaml:3:"
rm $configuration

: >/run/tray/gpuagentd.notify-log
start_agent --watchdog-usec 400000
sleep 1
pings=$(grep -c WATCHDOG=1 /run/tray/gpuagentd.notify-log)
holds "it pings the watchdog" [ "$pings" -ge 3 ]

pid=$(main_pid gpuagentd)
within 1 "SIGTERM ends the agent within a second" stop_service gpuagentd
holds "and for good" [ ! -e "/proc/$pid" ]
like "with code 0" "$(tail -n 1 /run/tray/gpuagentd.log)" 'ended with code 0'
holds "it said that it stops" told STOPPING=1

exits 5 "without an agent a client fails at once" timeout 2 gpuagentctl list
start_agent
is "what was clean is clean after a restart" "$(states)" "clean clean clean clean"

gpuagentctl list >/dev/null
refresh
within 1 "SIGTERM ends the driver service within a second" stop_service gpuagent-driver
like "with code 0, too" "$(tail -n 1 /run/tray/gpuagent-driver.log)" 'ended with code 0'
finish
