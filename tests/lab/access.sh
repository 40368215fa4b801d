#!/bin/bash
# SPDX-License-Identifier: MIT
# Who may do what, with polkit itself and on both implementations of the bus: a member of the group, one whom a rule of
# polkit allows one thing, and one who is neither.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

repository=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
tray1=sched-worker1
tray2=sched-worker2

add_people() {
        on "$1" 'useradd --groups gpuagent-admin ann && useradd bob && useradd eve'
        on "$1" "printf '%s\n' 'polkit.addRule(function(action, subject) {' \
                '        if (action.id == \"org.gpuagent1.reset\" && subject.user == \"bob\")' \
                '                return polkit.Result.YES;' \
                '});' >/etc/polkit-1/rules.d/10-test.rules && systemctl restart polkit"
}

remove_people() {
        on "$1" 'systemctl unmask polkit; rm -f /etc/polkit-1/rules.d/10-test.rules
                for user in ann bob eve; do userdel $user; done' 2>/dev/null
}

# as TRAY USER COMMAND: prints what it says, and its exit code.
as() {
        on "$1" "{ runuser -u $2 -- $3; echo \"exit code \$?\"; } 2>&1"
}

# resets_of_0 TRAY: of GPU 0 since remember_resets.
last_count=0
resets_of_0() {
        local counts count

        counts=$(reset_counts "$1") count=${counts%% *}
        echo $((count - last_count))
}
remember_resets() {
        local counts

        counts=$(reset_counts "$1") last_count=${counts%% *}
}

people_may_do_what_they_may() {
        local tray=$1 bus=$2

        is "$bus: polkit knows the actions" "$(on "$tray" 'pkaction | grep ^org.gpuagent1')" \
                "$(sed -nE 's/.*<action id="([^"]+)".*/\1/p' "$repository/dbus/org.gpuagent1.policy" | LC_ALL=C sort)"
        remember_resets "$tray"
        like "$bus: all may look" "$(as "$tray" eve 'gpuagentctl list')" 'clean.*exit code 0$'
        like "$bus: a stranger may not reset" "$(as "$tray" eve 'gpuagentctl reset -i 0')" 'exit code 4$'
        like "$bus: nor see who holds the GPUs" "$(as "$tray" eve 'gpuagentctl ps')" 'exit code 4$'
        is "$bus: and nothing was reset" "$(resets_of_0 "$tray")" 0
        like "$bus: a member of the group may" "$(as "$tray" ann 'gpuagentctl reset -i 0')" 'exit code 0$'
        is "$bus: and it was" "$(resets_of_0 "$tray")" 1
        like "$bus: so may whom a rule of polkit allows it" "$(as "$tray" bob 'gpuagentctl reset -i 0')" 'exit code 0$'
        is "$bus: and it was, again" "$(resets_of_0 "$tray")" 2
        like "$bus: but no more than that" "$(as "$tray" bob 'gpuagentctl maintenance on')" 'exit code 4$'
        is "$bus: maintenance is off" "$(on "$tray" "busctl get-property $bus_manager Maintenance")" 'b false'

        on "$tray" 'systemctl mask --now polkit' 2>/dev/null
        like "$bus: without polkit the rule is worth nothing" "$(as "$tray" bob 'gpuagentctl reset -i 0')" 'exit code 4$'
        is "$bus: and nothing was reset then" "$(resets_of_0 "$tray")" 2
        like "$bus: while the group still may" "$(as "$tray" ann 'gpuagentctl reset -i 0')" 'exit code 0$'
        on "$tray" 'systemctl unmask polkit' 2>/dev/null
}

handover_works() {
        local job

        job=$(submit --nodes=1 --nodelist="$1" --gpus=4 true)
        within 90 "$2: a job's epilog ends" has_audit "$1" "$job"
        is "$2: and has reset its GPUs" "$(audit "$1" "$job")" "job $job: GPUs 0,1,2,3 reset"
}

bus_is() {
        [[ $(on "$1" "systemctl show --property=Id --value dbus.service") == "$2" ]]
}

use_broker() {
        on "$tray2" 'systemctl --quiet enable dbus-broker'
        "$lab" reboot "$tray2" >&2
        make_ready "$tray2" >/dev/null 2>&1
}

use_daemon() {
        on "$tray2" 'systemctl --quiet disable dbus-broker'
        "$lab" reboot "$tray2" >&2
}

clean_up() {
        remove_people "$tray1"
        remove_people "$tray2"
        use_daemon
}

begin
trap clean_up EXIT
add_people "$tray1"
succeeds "one tray has dbus-daemon" bus_is "$tray1" dbus.service
people_may_do_what_they_may "$tray1" dbus-daemon
use_broker
succeeds "the other has dbus-broker" bus_is "$tray2" dbus-broker.service
add_people "$tray2"
people_may_do_what_they_may "$tray2" dbus-broker
handover_works "$tray2" dbus-broker
finish
