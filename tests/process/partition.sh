#!/bin/bash
# SPDX-License-Identifier: MIT
#
# An operator's partitions over two trays: the GPU grammar, names and numbers, all or nothing, what has to be reset, and the
# way to new cliques that --wait goes. A stand-in for ssh leads to the trays.
. "$(dirname "$0")/lib.sh"
. "$here/rack.sh"
PATH=$GPUAGENT_BUILD/cli:$GPUAGENT_BUILD/agent/emulation:$PATH

# The trays look when they are told something, and else at no time that could be the wrong one.
config='driver: {poll-interval: 1h}'
rack_begin tray1 tray2

real=$(realpath "$here/../../agent/emulation/fabric-assign")
# The fabric, and what goes wrong with it: "refuses TRAY", "ends the agent of TRAY", "meanwhile TRAY COMMAND..." with another
# operator's change, "interrupts TRAY" with ^C.
cat >"$rack/assign" <<EOF2
#!/bin/bash
case \$(cat "$rack/fault" 2>/dev/null) in
"refuses \$1") echo "some words" >&2 && echo "\$1: no such domain" >&2 && exit 3 ;;
"ends \$1")
        nsenter -t "\$(cat "$rack/trays/\$1")" --mount --pid sh -c '
                pid=\$(cat /run/tray/gpuagentd.pid) && kill \$pid && while [ -e /proc/\$pid ]; do sleep 0.05; done'
        ;;
"meanwhile \$1 "*)
        read -r _ _ command <"$rack/fault"
        gpuagentctl --config "$rack/config" partition \$command >/dev/null
        ;;
"interrupts \$1") kill -INT -- "-\$(ps -o pgid= "\$PPID" | tr -d ' ')" ;;
esac
exec nsenter -t "\$(cat "$rack/trays/\$1")" --mount --uts --pid "$real" "\$@"
EOF2
chmod +x "$rack/assign"
cat >"$rack/config" <<EOF2
client: {trays: [tray1, root@tray2], fabric-assign: $rack/assign}
EOF2

partition() { gpuagentctl --config "$rack/config" partition "$@"; }
# "PARTITION TRAY GPUS;..."
partitions() { partition list --json=short | jq -r '[.[] | "\(.partition) \(.tray) \(.gpus | join(","))"] | join(";")'; }
cliques() { gpuagentctl --json=short -H tray1,tray2 list | jq -r '[.[].clique | tostring] | join(" ")'; }
# What the emulated fabrics themselves have.
fabric() { for tray in tray1 tray2; do in_rack "$rack" $tray gpuagent-emulate fabric-query | awk '{ print $2 }'; done | paste -sd ' '; }

all_default='32766 tray1 0,1,2,3;32766 tray2 0,1,2,3'
is "all GPUs are in the default partition" "$(partitions)" "$all_default"

exits 0 "GPUs of a whole tray leave it" partition remove default tray2
is "in so many words" "${output%%$'\n'*}" "GPUs removed: 32766 default"
like "and it is said how they are reset" "$output" 'tray2: GPUs 0,1,2,3 keep their old clique until reset: gpuagentctl -H root@tray2 reset -i 0,1,2,3  \(GPUs must be idle'
exits 0 "a partition is made of them" partition create tray2 --id 7 tray2
is "with its number and name" "${output%%$'\n'*}" "partition created: 7 tray2"
is "as the trays say" "$(partitions)" "7 tray2 0,1,2,3;32766 tray1 0,1,2,3"
is "and the fabric" "$(fabric)" "32766 32766 32766 32766 7 7 7 7"
is "with the old clique" "$(cliques)" "1 1 1 1 1 1 1 1"
exits 0 "the reset takes the new one" gpuagentctl -H tray2 reset
is "on that tray" "$(cliques)" "1 1 1 1 7 7 7 7"
exits 0 "a partition is deleted by its name" partition delete tray2
is "so that its GPUs are in none" "$(partitions)" "0 tray2 0,1,2,3;32766 tray1 0,1,2,3"
exits 0 "slots, ranges and lists name GPUs, and --wait resets them" partition add 32766 2:0-1 tray2:2,3 --wait
like "until they are in their clique" "$output" 'tray2: GPUs 0,1,2,3 reset, in clique 1$'
is "where they are then" "$(cliques)" "1 1 1 1 1 1 1 1"

partition remove default tray1:0-1 2:3 >/dev/null 2>&1
exits 0 "a number is found where none is given" partition create both tray1:0,1 tray2:3
like "that is nobody's clique either" "$output" 'partition created: 2 both'
like "a tray that is split is warned of" "$output" 'warning: the GPUs of tray1 are in more than one partition \(2 and 32766\)'
is "it has GPUs of both trays" "$(partitions)" "2 tray1 0,1;2 tray2 3;32766 tray1 2,3;32766 tray2 0,1,2"
exits 0 "and is deleted whole" partition delete 2 --wait
is "so that its GPUs are in no clique" "$(cliques)" "0 0 1 1 1 1 1 0"
partition add default 1:0,1 tray2:3 --wait >/dev/null

# --- --wait

in_rack "$rack" tray1 "$(command -v gpuagentctl)" acquire --tenant slurm/5.0 -i 0,1 >/dev/null
in_rack "$rack" tray1 sh -c 'echo $$ >/run/tray/holder && exec sleep 1000 3<>/run/tray/devices/nvidia2' &
eventually 10 "a process has a GPU" in_rack "$rack" tray1 sh -c '[ -e "/proc/$(cat /run/tray/holder)/fd/3" ]'
exits 1 "who waits may set a time" partition --timeout 3s remove default tray1 --wait
like "and is told what was not done in it" "$output" 'tray1: GPU 0 is not in its new clique in time: it is in-use: leased to slurm/5.0'
is "but the change stands" "$(partitions)" "0 tray1 0,1,2,3;32766 tray2 0,1,2,3"
is "and what was free is reset" "$(cliques)" "1 1 1 0 1 1 1 1"
partition create mine --id 9 tray1 --wait >"$rack/out" 2>&1 &
waiting=$!
eventually 20 "--wait says which tenant it waits for" grep -q 'tray1: waits for GPUs 0,1: leased to slurm/5.0' "$rack/out"
eventually 20 "and which process" grep -q 'tray1: waits for GPU 2: held by' "$rack/out"
in_rack "$rack" tray1 "$(command -v gpuagentctl)" release --tenant slurm/5.0 >/dev/null
in_rack "$rack" tray1 sh -c 'kill "$(cat /run/tray/holder)"'
wait $waiting
is "and ends when they have" $? 0
like "in the new clique" "$(cat "$rack/out")" 'tray1: GPUs 0,1,2,3 reset, in clique 9$'
is "on all of them" "$(cliques)" "9 9 9 9 1 1 1 1"
partition delete mine >/dev/null
exits 0 "a tray comes back as it was" partition add default tray1 --wait

# --- refused, and nothing is changed

refused() {
        exits "$1" "$2" partition "${@:4}"
        like "which says why" "$output" "$3"
        is "and changes nothing" "$(partitions) $(fabric)" "$all_default 32766 32766 32766 32766 32766 32766 32766 32766"
}
refused 1 "a GPU of another partition" 'GPU 0 of tray1 is in partition 32766 default; remove it there first' create x tray1
refused 1 "a number that is there" 'there is a partition 32766 default already' create default --id 7 tray1
refused 1 "an unknown partition" 'there is no partition x' remove x tray1
refused 1 "the default partition" 'the default partition stays' delete default
refused 2 "a name like a number" "'7' is no name of a partition" create 7 tray1
refused 2 "a name that a shell would read" "is no name of a partition" create 'x;reboot' tray1
refused 2 "a number that there cannot be" 'a partition is a number from 1 to 32765' create x --id 32766 tray1
refused 3 "an unknown tray" "'tray3' is no tray of client.trays" remove default tray3
refused 3 "an unknown slot" "'3' is no tray" remove default 3:0
refused 3 "an unknown GPU" 'tray2 has no GPU 4' remove default tray1 tray2:3-4
refused 2 "what names no GPUs" "'tray1:0-' names no GPUs" remove default tray1:0-
refused 2 "no GPUs" 'the command is: partition remove PARTITION GPU' remove default
refused 2 "an option of another verb" 'the command is: partition add' add default tray1 --id 3

refused 2 "a name like an option" "'--help' is no name of a partition" create -- --help tray1

# --- two operators, and one who has second thoughts

partition remove default tray1 tray2 >/dev/null
echo "meanwhile tray1 create theirs tray2:0" >"$rack/fault"
exits 1 "a number that somebody else takes meanwhile" partition create ours tray1:0 --wait
like "is told of" "$output" 'GPU 0 of tray2 is in partition 2, too: somebody else has made it meanwhile'
is "before a GPU is reset into it" "$(cliques)" "1 1 1 1 1 1 1 1"
rm "$rack/fault"
partition remove 2 tray1:0 >/dev/null
is "each goes his way" "$(partitions)" "0 tray1 0,1,2,3;0 tray2 1,2,3;2 tray2 0"
partition delete theirs >/dev/null
echo "meanwhile tray2 create theirs --id 9 tray2:0" >"$rack/fault"
exits 1 "a GPU that somebody else takes meanwhile" partition create ours --id 8 tray1:0 tray2:0
like "is not taken again" "$output" 'tray2: GPU 0 is in partition 9 theirs meanwhile'
rm "$rack/fault"
is "but stays his, by the trays" "$(partitions)" "0 tray1 0,1,2,3;0 tray2 1,2,3;9 tray2 0"
is "and by the fabric" "$(fabric)" "0 0 0 0 9 0 0 0"
partition delete theirs >/dev/null
echo "interrupts tray2" >"$rack/fault"
setsid gpuagentctl --config "$rack/config" partition add default tray1 tray2 >/dev/null 2>&1
rm "$rack/fault"
is "who has second thoughts gets all of it" "$(partitions) $(fabric)" "$all_default 32766 32766 32766 32766 32766 32766 32766 32766"
partition add default tray1 tray2 --wait >/dev/null

# --- all or nothing

echo "refuses tray2" >"$rack/fault"
refused 1 "what the fabric refuses for one tray" 'tray2: the fabric refuses \(client.fabric-assign\): tray2: no such domain' remove default tray1 tray2
echo "ends tray2" >"$rack/fault"
exits 5 "what one tray cannot be told" partition remove default tray1 tray2
like "is said" "$output" 'tray2: gpuagentd (went away|is not running)'
rm "$rack/fault"
is "and undone in the fabric" "$(fabric)" "32766 32766 32766 32766 32766 32766 32766 32766"
is "and on the tray that was told" "$(gpuagentctl --json=short -H tray1 list | jq -r '[.[].partition] | unique | join(" ")')" 32766
exits 5 "the tray is missed where all of them count" partition delete default
like "by its name" "$output" 'tray2: gpuagentd is not running'
exits 0 "but not where another is meant" partition remove default tray1:3
exits 5 "it may have GPUs of a partition that is made" partition create x --id 9 tray1:3
exits 0 "as one that is not asked cannot" partition -H tray1 create x --id 9 tray1:3
partition delete -H tray1 x >/dev/null
partition add default tray1:3 --wait >/dev/null

finish
