#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Many trays by one command: one that is dead or slow holds up no other and is named, and what it prints of all is one
# report. A stand-in for ssh leads to the trays.
. "$(dirname "$0")/lib.sh"
. "$here/rack.sh"
PATH=$GPUAGENT_BUILD/cli:$PATH

rack_begin tray1 tray2 tray3

json() { gpuagentctl --json=short "$@" 2>/dev/null; }
errors() { { gpuagentctl "$@" >/dev/null; } 2>&1; }

is "the list of one tray is as it is there" "$(gpuagentctl list tray1)" "$(in_rack "$rack" tray1 "$(command -v gpuagentctl)" list)"
is "many trays are one table, in the order they were named" \
        "$(gpuagentctl list tray3 tray1 | awk '{ print $1 }' | uniq | paste -sd ' ')" "TRAY tray3 tray1"
is "and one array" "$(json -H tray1,tray2 list | jq -c '[.[].tray] | unique')" '["tray1","tray2"]'
is "a tray that is named twice is asked once" "$(json -H tray1,tray1 list | jq length)" 4
is "a list without the tray gets a column" "$(gpuagentctl -H tray1,tray2 clique | head -n 1 | tr -s ' ')" "TRAY CLUSTER CLIQUE GPUS"
is "and a key" "$(json -H tray1,tray2 clique | jq -c '[.[] | [.tray, .clique]]')" '[["tray1",1],["tray2",1]]'
is "the state of many is an array" "$(json -H tray1,tray2 status | jq -c '[.[].tray.NodeName]')" '["tray1","tray2"]'
is "lines have the tray's name before them" "$(gpuagentctl -H tray1,tray2 verify | sort | paste -sd ';')" \
        "tray1: all GPUs are clean;tray2: all GPUs are clean"
is "a user may be named" "$(gpuagentctl -H root@tray1 verify)" "all GPUs are clean"
is "metrics of many have each head once" "$(gpuagentctl -H tray1,tray2 metrics | grep '^# HELP' | sort | uniq -d)" ""
is "and the samples of all behind it" \
        "$(gpuagentctl -H tray1,tray2 metrics | grep '^gpuagent_driver_up' | sed 's/.*host="\([^"]*\)".*/\1/' | paste -sd ' ')" "tray1 tray2"

exits 5 "a dead tray alone" gpuagentctl -H dead list
is "is told in one line" "$output" "gpuagentctl: dead: ssh: connect to host dead port 22: No route to host"
exits 1 "a dead tray among others" gpuagentctl -H tray1,dead,tray2 list
is "is named" "$(errors -H tray1,dead,tray2 list)" "gpuagentctl: dead: ssh: connect to host dead port 22: No route to host"
is "and the others are there" "$(json -H tray1,dead,tray2 list | jq length)" 8
exits 1 "a slow tray among others" gpuagentctl --timeout 4s -H slow,tray1,tray2 list
like "is named" "$output" "gpuagentctl: slow: ssh does not get through"
like "and the others are there" "$output" "tray1 +0 .*tray2 +0 "
gpuagentctl --timeout 20s -H slow,tray1,tray2 verify >"$rack/out" 2>&1 &
eventually 10 "a slow tray holds up no other" grep -q "tray2: all GPUs are clean" "$rack/out"
holds "while it is still waited for" kill -0 $!
kill $!

gpuagentctl --timeout 20s -H slow,tray1,tray2 list >"$rack/out" 2>&1 &
eventually 10 "nor does a table wait for it forever" grep -q "^tray2 " "$rack/out"
kill $!

if [ -w /dev/full ]; then
        is "a report that cannot be written is told of, with the tray's name" \
                "$({ gpuagentctl -H tray1 list >/dev/full; } 2>&1)" "gpuagentctl: tray1: cannot write the output"
fi

exits 0 "a reset of many" gpuagentctl -H tray1,tray2 reset -i 0
is "is told for each" "$(sort <<<"$output" | paste -sd ';')" "tray1: GPUs 0 reset;tray2: GPUs 0 reset"
exits 1 "one tray that has no such GPU" gpuagentctl -H tray1,tray2 reset -i 9
is "is told for each, too" "$(grep -c 'There is no GPU 9' <<<"$output")" 2
exits 0 "maintenance of many" gpuagentctl -H tray1,tray2 maintenance on new cables
exits 1 "is theirs" gpuagentctl -H tray1,tray3 reset
is "and nobody else's" "$(grep -c 'tray3: GPUs 0,1,2,3 reset' <<<"$output")" 1
like "with the reason" "$output" "tray1: .*new cables"
gpuagentctl -q -H tray1,tray2 maintenance off

gpuagentctl -H tray1,tray2 monitor --json=short >"$rack/events" &
monitor=$!
eventually 10 "the monitor hears both trays" eval 'gpuagentctl -q -H tray1,tray2 reset -i 1
        [ "$(jq -r .tray "$rack/events" | sort -u | paste -sd " ")" = "tray1 tray2" ]'
kill $monitor

for host in -oProxyCommand=true 'a b' 'a;b' '$(id)' "a'b" .hidden a@b@c @a a@ a:22 'tray1,,tray2' '' "$(printf 'a\nb')"; do
        exits 2 "$(printf %q "$host") is no tray" gpuagentctl "--host=$host" list
        is "which is told in one line" "$(wc -l <<<"$output")" 1
done
exits 2 "nor as an argument" gpuagentctl list -- -oProxyCommand=true
exits 2 "trays are named in one way" gpuagentctl -H tray1 list tray2
exits 2 "the boot's reset is for this tray" gpuagentctl -H tray1 boot-reset

gpuagentctl list --watch tray1 tray2 >"$rack/watch" 2>/dev/null &
watch=$!
eventually 10 "a view of many trays" grep -q "^tray2 " "$rack/watch"
gpuagentctl -q -H tray2 reset -i 3
eventually 10 "follows each of them" grep -q "^tray2 .*resetting" "$rack/watch"

# There is a tray, but nothing to talk to on it.
in_rack "$rack" tray1 sh -c 'kill $(cat /run/tray/gpuagentd.pid)'
eventually 20 "a tray without an agent" eval 'gpuagentctl -H tray1 list; [ $? = 5 ]'
like "says so" "$(errors -H tray1 list)" "tray1: gpuagentd is not running"
eventually 20 "and the view says so, too" grep -q "^tray1 says no more" "$rack/watch"
unlike "instead of what it said before" "$(tac "$rack/watch" | sed '/^TRAY/q')" "tray1 +0"
kill $watch
in_rack "$rack" tray2 rm /run/dbus/system_bus_socket
exits 5 "a tray without a bus" gpuagentctl -H tray2 list
like "says so" "$output" "tray2: (ssh reaches no system bus there|Failed to connect to .*bus.*: No such file)" # by newer bridges
in_rack "$rack" tray3 sh -c 'mount --bind /bin/false /usr/bin/systemd-stdio-bridge'
exits 5 "a tray without systemd-stdio-bridge" gpuagentctl -H tray3 list
finish
