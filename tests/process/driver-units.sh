#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Units that gpuagent-driver stops for a reset and starts again, by a real systemd: a user's manager stands where PID 1
# would, at its private socket. There is no bus that leads to it.
. "$(dirname "$0")/lib.sh"
config='quiesce: {units: [fast.service, idle.service, absent.service]}'
tray_options=(--bare)
in_tray

socket=/run/gpuagent-driver.socket
list=/run/gpuagent-driver/quiesced
ask() { "$GPUAGENT_BUILD/tests/process/driver-client" $socket "$@"; }
is_listed() { [ -e "$list" ]; }
is_not_listed() { [ ! -e "$list" ]; }
state() { systemctl --user is-active "$@" | paste -sd ' ' -; }
is_state() { [ "$(state "$1")" = "$2" ]; }
answers() { systemctl --user list-units >/dev/null; }

# unit NAME SHELL-COMMANDS [MORE-LINES]
unit() {
        printf '%s\n' '[Unit]' "${3-}" '[Service]' "ExecStart=/bin/sh -c '$2; while :; do sleep 1; done'" \
                TimeoutStopSec=60 >"$XDG_RUNTIME_DIR/systemd/user/$1.service"
}

manager=
for path in /lib/systemd/systemd /usr/lib/systemd/systemd; do [ ! -x $path ] || manager=$path; done
group=/sys/fs/cgroup/gpuagent-test-$$
if [ -z "$manager" ] || ! mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null || ! mkdir $group 2>/dev/null ||
        ! echo $$ >$group/cgroup.procs; then
        skip "units are stopped and started again" "no systemd, or no cgroup of our own"
        finish
fi
export XDG_RUNTIME_DIR=/run/tray/user HOME=/run/tray
mkdir -p $XDG_RUNTIME_DIR/systemd/user /run/systemd/system
unit fast :
unit idle :
unit stubborn 'trap "" TERM'
unit broken 'test ! -e /run/tray/break || exit 1' $'StartLimitIntervalSec=0'
unit later : 'After=slow.service'
printf '%s\n' '[Service]' Type=oneshot 'ExecStart=/bin/sleep 1000' >$XDG_RUNTIME_DIR/systemd/user/slow.service
"$manager" --user --unit=basic.target >/run/tray/systemd.log 2>&1 &
eventually 60 "systemd runs" answers
ln -s $XDG_RUNTIME_DIR/systemd/private /run/systemd/private
systemctl --user start fast stubborn broken
start_driver

is "units are stopped" "$(ask hold 10 systemctl --user is-active fast.service idle.service)" $'inactive\ninactive'
eventually 5 "and started again when whoever asked leaves without a word" is_state fast active
is "but none that did not run" "$(state idle)" inactive
eventually 1 "nothing is on file then" is_not_listed

ask hold 10 sleep 1001 &
eventually 5 "a unit is stopped" is_state fast inactive
is "which is on file" "$(cat "$list")" "unit fast.service"
kill -KILL "$(main_pid gpuagent-driver)"
eventually 5 "the service dies, and is started again" ask probe 5
eventually 5 "and starts the unit that it finds on file" is_state fast active
eventually 1 "and forgets it" is_not_listed

configure() {
        echo "quiesce: {units: [$1]}" >/etc/gpuagent/gpuagentd.yaml.d/60-units.yaml
}
configure "fast.service, stubborn.service"
within 6 "a unit that does not stop is not waited for without end" ask quiesce 5
like "and named" "$output" '^failure: stubborn\.service did not stop within [23] s$'
eventually 5 "the other one runs again" is_state fast active
is "nothing is on file" "$(cat "$list" 2>&1)" "cat: $list: No such file or directory"

configure "broken.service"
ask quiesce 10
touch /run/tray/break
like "a unit that cannot be started again is tried and left to systemd" "$(ask resume 10; echo ready)" "^ready$"
holds "and not on file" is_not_listed

# What waits for something that itself waits, as a unit that is ordered after a boot's reset does.
configure "later.service"
systemctl --user start later.service
ask quiesce 10
systemctl --user --no-block start slow.service
within 7 "a start that has to wait is not waited for" ask resume 60
is "and no failure" "$output" ""
holds "systemd will see to it" is_not_listed
systemctl --user stop slow.service
eventually 5 "and does" is_state later active

configure "fast.service"
ask quiesce 10
rm $XDG_RUNTIME_DIR/systemd/user/fast.service
systemctl --user daemon-reload
like "a unit that is no more is a failure" "$(ask resume 10)" '^failure: fast\.service does not start: '
holds "and forgotten" is_not_listed

stop_service gpuagent-driver
kill %1 2>/dev/null
cleanup() { for _ in {1..50}; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && return; sleep 0.1; done; }
echo $$ >/sys/fs/cgroup/cgroup.procs
find $group -name cgroup.kill -exec sh -c 'echo 1 >"$1"' sh {} \; 2>/dev/null
cleanup
finish
