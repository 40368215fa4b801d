# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the long tests: what a GPU that is called clean must stand up to, and what a daemon must not gather. A test is
# NAME [SIZE [SEED]], prints both, and takes the same ways again with the same seed.

# shellcheck source=tests/process/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../process/lib.sh"
# shellcheck disable=SC2034 # for the tests
memory=/run/gpuagent-emulation/memory

# soak_begin DEFAULT-SIZE WHAT "$@": reads the command line into $size and $seed, and goes into the tray.
soak_begin() {
        if [ "${3-}" = --help ]; then
                echo "Usage: tests/soak/$(basename "$0") [$2 [SEED]] (default: $1, and a seed of chance)"
                exit 0
        fi
        export SOAK_SIZE=${SOAK_SIZE:-${3:-$1}} SOAK_SEED=${SOAK_SEED:-${4:-$RANDOM}}
        size=$SOAK_SIZE seed=$SOAK_SEED
        in_tray
        RANDOM=$seed
        mkdir -p /run/tray/uses
        echo "# | $(basename "$0"): $size $2, seed $seed"
}

# One of the words, by chance. Into $chosen: a subshell would not move RANDOM on.
choose() {
        local n=$((RANDOM % $# + 1))

        # shellcheck disable=SC2034 # for the caller
        chosen=${!n}
}

# The emulated driver's own counts of resets, GPU by GPU.
all_true_resets() { gpuagent-emulate status | sed -n 's/.* resets \([0-9]*\)$/\1/p' | paste -sd ' '; }

# A GPU has been used until now: it is clean only after one more true reset.
used() { true_resets "$1" >"/run/tray/uses/$1"; }

# Notes each GPU that is called clean and has not been reset since its last use. Only while nobody uses one.
false_clean() {
        local first second seen i use found=0

        read -ra first < <(all_true_resets)
        read -ra seen < <(states 2>/dev/null)
        read -ra second < <(all_true_resets)
        for i in "${!seen[@]}"; do
                use=$(cat "/run/tray/uses/$i" 2>/dev/null || echo -1)
                # A reset that ended between the two looks leaves open which came first.
                if [ "${seen[i]}" != clean ] || [ "${first[i]}" -gt "$use" ]; then continue; fi
                if [ "${second[i]}" -le "$use" ] || [ "${first[i]}" = "${second[i]}" ]; then
                        echo "GPU $i is called clean after ${second[i]} resets, and was used after $use" |
                                tee -a /run/tray/false-clean
                        found=1
                fi
        done
        [ $found = 1 ]
}

# kill_daemon NAME, if it runs just now.
kill_daemon() {
        local pid

        pid=$(cat "/run/tray/$1.main-pid" 2>/dev/null)
        if [[ $(readlink "/proc/$pid/exe") == */"$1" ]]; then kill -KILL "$pid"; fi
}

# --- what a daemon has

open_files() { find "/proc/$(main_pid "$1")/fd" -mindepth 1 2>/dev/null | wc -l; }
has_open_files() { [ "$(open_files "$1")" -le "$2" ]; }
anonymous_kib() { awk '$1 == "RssAnon:" { print $2 }' "/proc/$(main_pid "$1")/status"; }
sanitized() { grep -q libasan "/proc/$(main_pid gpuagentd)/maps"; }
# Children of either daemon that nobody has fetched.
zombies() { ps -eo state=,ppid= | awk -v a="$(main_pid gpuagentd)" -v b="$(main_pid gpuagent-driver)" \
        '$1 == "Z" && ($2 == a || $2 == b)' | wc -l; }
has_no_zombie() { [ "$(zombies)" = 0 ]; }
