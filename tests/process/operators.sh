#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Two operators at the same time, one who is killed in the middle of a change, and one whose fabric controller is out of its
# mind. The trays have no fabric.query: what they know of their partitions is what they were told.
. "$(dirname "$0")/lib.sh"
. "$here/rack.sh"
PATH=$GPUAGENT_BUILD/cli:$GPUAGENT_BUILD/agent/emulation:$PATH

config='fabric: {query: ""}'
rack_begin tray1 tray2

real=$(realpath "$here/../../agent/emulation/fabric-assign")
# The fabric, and what goes wrong: "dies before TRAY" or "dies after TRAY" (whoever calls), "meanwhile TRAY COMMAND..." (of
# another operator), "babbles", "is killed".
cat >"$rack/assign" <<E2
#!/bin/bash
fault=\$(cat "$rack/fault" 2>/dev/null)
case \$fault in
"dies before \$1") kill -KILL "\$PPID" && exit ;;
"meanwhile \$1 "*)
        read -r _ _ command <"$rack/fault"
        gpuagentctl --config "$rack/config" partition \$command >/dev/null
        ;;
babbles) printf '\033[31mred\033[0m\xff\n\n%s' "\$(head -c 100000 /dev/zero | tr '\0' x)" >&2 && exit 1 ;;
"is killed") kill -KILL \$\$ ;;
esac
nsenter -t "\$(cat "$rack/trays/\$1")" --mount --uts --pid "$real" "\$@" || exit
[ "\$fault" != "dies after \$1" ] || kill -KILL "\$PPID"
E2
chmod +x "$rack/assign"
echo "client: {trays: [tray1, tray2], fabric-assign: $rack/assign}" >"$rack/config"

partition() { gpuagentctl --config "$rack/config" partition "$@"; }
# "PARTITION TRAY GPUS;..."
partitions() { partition list --json=short | jq -r '[.[] | "\(.partition) \(.tray) \(.gpus | join(","))"] | join(";")'; }
cliques() { gpuagentctl --json=short -H tray1,tray2 list | jq -r '[.[].clique | tostring] | join(" ")'; }
fabric() { for tray in tray1 tray2; do in_rack "$rack" $tray gpuagent-emulate fabric-query | awk '{ print $2 }'; done | paste -sd ' '; }
all() { echo "$1 tray1 0,1,2,3;$1 tray2 0,1,2,3"; }
all_fabric() { echo "$1 $1 $1 $1 $1 $1 $1 $1"; }

is "nobody has said which partitions there are" "$(partitions)" "$(all null)"
exits 1 "so nothing is taken out of one" partition remove default tray1
like "that is not known" "$output" 'GPU 0 of tray1 is not in partition 32766, but in none that is known'
exits 1 "nor is a number given away that a clique has" partition create x --id 1 tray1
like "where its partition may be there" "$output" 'GPU 0 of tray2 is in clique 1, and its partition is not known: see AFTER A BOOT'
exits 0 "an operator says it" partition add default tray1 tray2
is "for all of them" "$(partitions)" "$(all 32766)"

# --- killed in the middle; the same command once more finishes it

for fault in "dies before tray2" "dies after tray2"; do
        while read -r id command; do
                echo "$fault" >"$rack/fault"
                # shellcheck disable=SC2086 # words of a command
                partition $command >/dev/null 2>&1
                rm "$rack/fault"
                # shellcheck disable=SC2086
                exits 0 "partition $command, whose operator $fault, is finished by the same command" partition $command
                is "on every tray and in the fabric" "$(partitions) $(fabric)" "$(all "$id") $(all_fabric "$id")"
        done <<<"0 remove default tray1 tray2
7 create whole --id 7 tray1 tray2
0 delete whole
32766 add default tray1 tray2"
done
exits 0 "what is done already stays done" partition add default tray1 tray2 --wait
is "in the same clique" "$(cliques)" "1 1 1 1 1 1 1 1"

# --- two at the same time

partition remove default tray1 tray2 >/dev/null
partition create mine --id 7 tray1:2 >/dev/null
exits 1 "a partition of that name which has other GPUs" partition create mine tray1:3
like "is not made again" "$output" 'there is a partition 7 mine already'
exits 1 "nor is one of that number and another name" partition create other --id 7 tray1:2
exits 1 "or of that name and another number" partition create mine --id 8 tray1:2
partition delete mine >/dev/null

# Before the fabric is asked for that GPU, or while it is.
for tray in tray1 tray2; do
        partition delete theirs >/dev/null 2>&1
        echo "meanwhile $tray create theirs --id 9 tray2:0" >"$rack/fault"
        exits 1 "the second of two who take the same GPU is refused" partition create ours --id 8 tray1:0 tray2:0
        rm "$rack/fault"
        like "by its tray" "$output" 'tray2: GPU 0 is in partition 9 theirs meanwhile'
        unlike "with nothing left to be done by hand" "$output" 'cannot be put back'
        is "and the first one's change stands" "$(partitions)" "0 tray1 0,1,2,3;0 tray2 1,2,3;9 tray2 0"
        is "in the fabric, too" "$(fabric)" "0 0 0 0 9 0 0 0"
done
in_rack "$rack" tray1 sh -c 'echo $$ >/run/tray/holder && exec sleep 1000 3<>/run/tray/devices/nvidia1' &
eventually 10 "a process has a GPU" in_rack "$rack" tray1 sh -c '[ -e "/proc/$(cat /run/tray/holder)/fd/3" ]'
partition create waits --id 8 tray1:1 --wait >"$rack/out" 2>&1 &
waiting=$!
eventually 20 "one operator waits for it" grep -q 'tray1: waits for GPU 1: held by' "$rack/out"
exits 0 "another takes the GPU" partition remove waits tray1:1
wait $waiting
is "who waits is told" "$? $(grep -c 'tray1: GPU 1 was moved meanwhile' "$rack/out")" "1 1"
in_rack "$rack" tray1 sh -c 'kill "$(cat /run/tray/holder)"'
partition delete theirs >/dev/null
exits 0 "it ends as it began" partition add default tray1 tray2 --wait

# --- a tray that calls its partition something

partition remove default tray1:0 >/dev/null 2>&1
in_rack "$rack" tray2 busctl call -- org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager \
        SetPartition 'asusa{sv}' 1 0 32766 '--$(reboot)' 0
sed -i "2i printf '%s\\\\n' \"\${@: -1}\" >>$rack/names" "$rack/assign"
exits 0 "it is known by that" partition add -- '--$(reboot)' tray1:0
is "which is no argument of the fabric's controller" "$(sort -u "$rack/names" | wc -l) $(head -n 1 "$rack/names")" "1 "
exits 0 "unlike a plain name" partition add default tray1:0 tray2:0 --wait
is "of those that we give" "$(tail -n 1 "$rack/names")" default

# --- a fabric controller that is out of its mind

refused() {
        echo "$1" >"$rack/fault"
        exits 1 "a fabric controller that $1" partition remove default tray1
        rm "$rack/fault"
        like "is refused in one line" "$output" "^gpuagentctl: tray1: the fabric refuses \\(client.fabric-assign\\): [ -~]{1,256}\$"
        is "and changes nothing" "$(partitions) $(fabric)" "$(all 32766) $(all_fabric 32766)"
}
refused babbles
refused "is killed"

finish
