#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Slurm's topology from the cliques of three trays: each form, numbers that stay, trays that are split or say nothing,
# and files that slurmctld would not take.
. "$(dirname "$0")/lib.sh"
. "$here/rack.sh"
PATH=$GPUAGENT_BUILD/cli:$PATH

rack_begin tray1 tray2 tray3
cluster=7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91
file=$rack/topology.conf

# configure [LINE OF client.topology]...
configure() {
        printf 'client:\n  trays: [tray1, tray2, tray3]\n' >"$rack/config.yaml"
        [ $# = 0 ] || printf '  topology:\n' >>"$rack/config.yaml"
        [ $# = 0 ] || printf '    %s\n' "$@" >>"$rack/config.yaml"
}
topology() { gpuagentctl --config "$rack/config.yaml" --timeout 10s topology "$@"; }
body() { sed 1d "${1:-$file}"; }
emulate() { in_rack "$rack" "$1" "$GPUAGENT_BUILD/agent/emulation/gpuagent-emulate" "${@:2}" >/dev/null; }
# clique TRAY GPUS CLIQUE: and the agent knows.
clique() {
        emulate "$1" clique "$2" "$3"
        for _ in {1..100}; do
                [[ " $(gpuagentctl --json=short list "$1" | jq -r ".[] | select([.gpu] | inside([$2])) | .clique" | sort -u | paste -sd ' ') " == " $3 " ]] && return
                sleep 0.1
        done
        fail "$1 tells clique $3 of GPUs $2"
}
inode() { stat -c %i "$file"; }

configure
exits 0 "trays of one clique" topology -o "$file"
is "are one block" "$(body)" "# block001=$cluster.1
BlockName=block001 Nodes=tray[1-3]
BlockSizes=3"
like "the file says whose it is" "$(head -n 1 "$file")" "^# .*written by gpuagentctl topology"
is "anybody may read it" "$(stat -c %a "$file")" 644
before=$(inode)
topology -o "$file"
is "what has not changed is not written" "$(inode)" "$before"
is "without -o it is printed" "$(topology)" "$(cat "$file")"
is "trays may be named by hand" "$(topology -H tray1,tray3 | body -)" "# block001=$cluster.1
BlockName=block001 Nodes=tray[1,3]
BlockSizes=2"

clique tray1 0,1,2,3 7
topology -o "$file"
is "another clique is another block, and the first keeps its number" "$(body)" "# block001=$cluster.1
BlockName=block001 Nodes=tray[2-3]
# block002=$cluster.7
BlockName=block002 Nodes=tray1
BlockSizes=1"
clique tray2 0,1,2,3 9
clique tray3 0,1,2,3 9
topology -o "$file"
is "a number that is free is used again, another stays" "$(body | grep -v '^#')" "BlockName=block001 Nodes=tray[2-3]
BlockName=block002 Nodes=tray1
BlockSizes=1"
clique tray3 2 1
exits 0 "a tray in two cliques" topology -o "$file"
is "is told of" "$output" "gpuagentctl: tray3 is left out: its GPUs are in several cliques"
is "and left out" "$(body)" "# block001=$cluster.9
BlockName=block001 Nodes=tray2
# block002=$cluster.7
BlockName=block002 Nodes=tray1
# tray3 is left out: its GPUs are in several cliques
BlockSizes=1"
clique tray3 2 9
topology -o "$file"

# One that slurmctld would not take.
configure 'block-sizes: [2, 4]'
before=$(cat "$file")
exits 1 "a block that is smaller than the base" topology -o "$file"
like "is told of" "$output" "block002 has 1 node, and client.topology.block-sizes starts with 2.*; the file stays as it is"
is "and nothing is written" "$(cat "$file")" "$before"
configure 'block-sizes: [2, 6]'
exits 1 "sizes that are no powers of two" topology -o "$file"
configure 'format: block-levels'
exits 1 "blocks of two sizes, for 23.11" topology -o "$file"
is "write nothing either" "$(cat "$file")" "$before"
configure 'format: yaml' 'block-sizes: [2, 4]'
is "but 25.05 takes small blocks" "$(topology | body -)" "- topology: default
  cluster_default: true
  block:
    block_sizes:
    - 2
    - 4
    blocks:
    # block001=$cluster.7
    - block: block001
      nodes: tray1
    # block002=$cluster.9
    - block: block002
      nodes: tray[2-3]"
configure 'format: features'
is "and features have no sizes" "$(topology | body - | grep -v '^#')" "NodeName=tray1 Features=block001
NodeName=tray[2-3] Features=block002"
clique tray2 0,1,2,3 7
configure 'format: block-levels' 'block-sizes: [1, 2]'
is "levels are powers of two" "$(topology -H tray1,tray3 | body - | tail -n 1)" "BlockLevels=0,1"

# Silence.
configure
topology -o "$file"
before=$(body | grep -v '^#')
in_rack "$rack" tray3 sh -c 'kill -STOP $(cat /run/tray/gpuagentd.main-pid)'
exits 0 "a tray that says nothing" topology --timeout 4s -o "$file"
like "is named" "$output" "tray3: "
is "and keeps its block" "$(body | grep -v '^#')" "$before"
like "with the time" "$(cat "$file")" "# tray3: silent since 20[0-9T:-]+Z"
written=$(inode)
topology --timeout 4s -o "$file" 2>/dev/null
is "which does not change" "$(inode)" "$written"
sed -i 's/silent since .*/silent since 2020-01-01T00:00:00Z/' "$file"
exits 0 "after a day of silence" topology --timeout 4s -o "$file"
like "it is left out" "$(body)" "# tray3 is left out: it says nothing"
unlike "of its block, too" "$(body | grep -v '^#')" "tray3"
exits 0 "a tray whose clique was never known" topology --timeout 4s -o "$file"
unlike "is not guessed" "$(body | grep -v '^#')" "tray3"
in_rack "$rack" tray3 sh -c 'kill -CONT $(cat /run/tray/gpuagentd.main-pid)'
topology -o "$file"
is "it comes back when it speaks" "$(body | grep -c '^BlockName=.*tray3$')" 1
emulate tray3 settle 1 never
gpuagentctl -q -H tray3 reset --no-wait -i 1
eventually 20 "a GPU settles" eval '[ "$(gpuagentctl --json=short list tray3 | jq ".[1].clique")" = null ]'
topology -o "$file"
is "one GPU that tells no clique yet does not change that" "$(body | grep -c '^BlockName=.*tray3$')" 1
is "as long as the others say the same" "$(grep -c '# tray3: silent since' "$file")" 1
clique tray3 0,2,3 5
topology -o "$file" 2>/dev/null
like "if they do not, it is left out" "$(body)" "# tray3 is left out: it says nothing"

# Files of others.
echo 'BlockName=rack1 Nodes=tray[1-3]' >"$rack/other.conf"
exits 1 "a file of somebody else" topology -o "$rack/other.conf"
is "stays as it is" "$(cat "$rack/other.conf")" 'BlockName=rack1 Nodes=tray[1-3]'
sed -i 's/Nodes=.*/Nodes=tray[1-/' "$file"
exits 0 "one that was spoilt" topology -o "$file"
like "is told of" "$output" "was changed by hand"
ln -s topology.conf "$rack/link"
topology -q -o "$rack/link" 2>/dev/null
holds "a link stays one" test -L "$rack/link"
exits 1 "a folder that is not there" topology -o "$rack/none/topology.conf"
exits 2 "--reconfigure without a file" topology --reconfigure
true >"$rack/empty.conf"
exits 0 "an empty file" topology -o "$rack/empty.conf"
like "is nobody's" "$(head -n 1 "$rack/empty.conf")" "written by gpuagentctl topology"

printf 'client: {}\n' >"$rack/config.yaml"
exits 2 "without trays there is nothing to ask" topology
configure
exits 1 "all trays silent" topology -H dead,slow --timeout 1s
like "is not a topology" "$output" "no tray tells a clique"
exits 1 "one tray under two names" topology -H tray1,root@tray1
ln -s tray1 "$rack/trays/alias"
exits 2 "names that do not tell it" topology -H tray1,tray2,alias -o "$file"
like "are told by its GPUs" "$output" "gpuagentctl: alias and tray1 both say that they have GPU-.*: one tray by two names"
exits 0 "a list has it twice" gpuagentctl --config "$rack/config.yaml" -H tray1,alias list
like "and says so" "$output" "gpuagentctl: alias and tray1 both say"
exits 2 "no partition is changed" gpuagentctl --config "$rack/config.yaml" -H tray1,alias partition create twice tray1:0

# Writers.
full_disk() {
        unshare -m sh -c 'mount -t tmpfs -o size=4k full "$1" && cp "$2" "$1/topology.conf" || exit 9
                gpuagentctl --config "$3" topology -H tray1,tray2 -o "$1/topology.conf"
                r=$?
                cmp "$2" "$1/topology.conf" && [ "$(ls -A "$1")" = topology.conf ] || exit 8
                exit $r' sh "$rack/full" "$file" "$rack/config.yaml"
}
mkdir "$rack/full"
topology -q -o "$file" 2>/dev/null
exits 1 "on a full disk nothing is written, and the old file stays" full_disk
like "which is said" "$output" "gpuagentctl: cannot write .*/full/topology.conf: No space left on device"
before=$(inode)
flock "$rack" -c "touch '$rack/held'; until [ -e '$rack/let-go' ]; do sleep 0.1; done" &
eventually 5 "another run writes" test -e "$rack/held"
topology -q -H tray1,tray2 -o "$file" &
run=$!
eventually 5 "this one has begun" pgrep -f "topology -q -H tray1,tray2"
is "and writes nothing meanwhile" "$(inode)" "$before"
touch "$rack/let-go"
wait "$run"
is "until it has ended" "$?" 0
unlike "and then it does" "$(inode)" "^$before$"
finish
