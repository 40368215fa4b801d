#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What gpuagent-driver stops for a reset and starts again, by quiesce.command: there is no systemd here. Also when whoever
# asked leaves without a word, and when the service dies in between.
. "$(dirname "$0")/lib.sh"
config='quiesce: {command: /run/tray/monitoring of gpus}'
tray_options=(--bare)
in_tray

socket=/run/gpuagent-driver.socket
list=/run/gpuagent-driver/quiesced
ask() { "$GPUAGENT_BUILD/tests/process/driver-client" $socket "$@"; }
# monitoring COMMANDS: what it does besides remembering what it was told.
monitoring() {
        printf '#!/bin/sh\necho "$@" >>/run/tray/told\n%s\n' "$1" >/run/tray/monitoring.new
        chmod 755 /run/tray/monitoring.new
        mv /run/tray/monitoring.new /run/tray/monitoring
        rm -f /run/tray/told
}
told() { [ "$(cat /run/tray/told 2>/dev/null)" = "$1" ]; }
is_listed() { [ -e "$list" ]; }
is_not_listed() { [ ! -e "$list" ]; }

monitoring ''
start_driver
is "monitoring is stopped" "$(ask quiesce 10; cat /run/tray/told)" "of gpus stop"
is "which is on file" "$(cat "$list")" "command /run/tray/monitoring of gpus"
eventually 5 "one that has it stopped and leaves starts it by that" told $'of gpus stop\nof gpus start'
eventually 1 "and nothing is on file then" is_not_listed

# shellcheck disable=SC2016 # for the check
monitoring 'test "$3" = start || cat /run/gpuagent-driver/quiesced >/run/tray/list-then'
ask quiesce 10
is "the file is written before the act" "$(cat /run/tray/list-then)" "command /run/tray/monitoring of gpus"
is "a resume starts it" "$(ask resume 10)" ""
holds "once" told $'of gpus stop\nof gpus start'
is "a second resume has nothing to do" "$(ask resume 10; wc -l </run/tray/told)" 2
sleep 2.5
holds "nor has the service, when whoever asked is gone" told $'of gpus stop\nof gpus start'

monitoring ''
"$GPUAGENT_BUILD/tests/process/driver-client" $socket hold 10 sleep 1001 &
client=$!
eventually 2 "monitoring is stopped once more" told "of gpus stop"
sleep 3
holds "it stays so while whoever asked lives" told "of gpus stop"
kill -KILL "$(main_pid gpuagent-driver)"
eventually 5 "the service dies, and is started again" ask probe 5
eventually 5 "and starts what it finds on file" told $'of gpus stop\nof gpus start'
eventually 1 "and forgets it" is_not_listed
pkill -P $client -x sleep
wait $client

# shellcheck disable=SC2016 # for the program
monitoring 'test "$3" = start || { echo "it is needed" >&2; exit 1; }'
is "monitoring that does not stop is a failure with its words" "$(ask quiesce 10)" \
        'failure: quiesce.command: "/run/tray/monitoring of gpus stop" failed: it is needed'
holds "it is started again at once" told $'of gpus stop\nof gpus start'
holds "and not on file" is_not_listed

monitoring 'sleep 1000'
within 8 "one that takes too long is given up" ask quiesce 5
like "and named" "$output" '^failure: quiesce.command: .* stop": it did not end in time'

# shellcheck disable=SC2016 # for the program
monitoring 'test "$3" = stop || exit 1'
ask quiesce 10 >/dev/null
like "monitoring that does not start is a failure" "$(ask resume 10)" '^failure: quiesce.command: .* start" failed: it does not say why$'
holds "that is not forgotten" is_listed
monitoring ''
eventually 5 "but tried again" told "of gpus start"

rm /etc/gpuagent/gpuagentd.yaml.d/50-test.yaml
is "where nothing is configured nothing is done" "$(ask quiesce 10)" ""
holds "and nothing on file" is_not_listed
echo 'quiesce: {units: [a.service]}' >/etc/gpuagent/gpuagentd.yaml.d/60-units.yaml
like "a unit cannot be stopped without systemd" "$(ask quiesce 10)" '^failure: cannot reach systemd: '
holds "and is not on file" is_not_listed

stop_service gpuagent-driver
finish
