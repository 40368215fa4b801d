# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # from and for the other parts
# What all parts of the lab share: names, folders, messages, and the control group that holds every process
# of it.

lab_hosts=(sched-control login sched-worker1 sched-worker2)
lab_network=10.107.111
declare -A lab_address=(
        [sched-control]=$lab_network.11
        [login]=$lab_network.12
        [sched-worker1]=$lab_network.13
        [sched-worker2]=$lab_network.14
)

lab_repo=$(cd "$lab_dir/../.." && pwd)
# A second lab beside the first is one with another name; they share the cache.
lab_name=${LAB_NAME:-gpuagent-lab}
lab_cache=/var/cache/gpuagent-lab
lab_state=/var/lib/$lab_name

say() {
        printf '%s\n' "$*"
}

die() {
        printf 'lab: %s\n' "$*" >&2
        exit 1
}

need_root() {
        ((EUID == 0)) || die "this needs root"
}

need_tools() {
        local tool

        for tool in "$@"; do
                command -v "$tool" >/dev/null || die "$tool is missing on this machine"
        done
}

# One lab command that changes something at a time. The hosts' supervisors must not inherit the lock (9>&-).
take_lock() {
        mkdir -p "$lab_cache"
        exec 9<"$lab_cache"
        flock --nonblock 9 || {
                say "Waiting for another lab command to end"
                flock 9
        }
}

is_host() {
        local host

        for host in "${lab_hosts[@]}"; do
                [[ $host != "$1" ]] || return 0
        done
        return 1
}

need_host() {
        is_host "$1" || die "no host $1: there are ${lab_hosts[*]}"
}

is_worker() {
        [[ $1 == sched-worker* ]]
}

# sched-worker1 and 2 are two of a kind.
host_role() {
        printf '%s\n' "${1%[0-9]}"
}

# poll SECONDS COMMAND…: until the command succeeds; 1 when it did not in time.
poll() {
        local end=$((SECONDS + $1))

        shift
        until "$@"; do
                ((SECONDS < end)) || return 1
                sleep 0.2
        done
}

# The folder of the lab, or of one of its members, in the cgroup2 tree wherever this machine has it.
cgroup_path() {
        local root

        root=$(findmnt --first-only --noheadings --output TARGET --types cgroup2) ||
                die "no cgroup2 mount on this machine"
        printf '%s\n' "$root/$lab_name${1:+/$1}"
}

cgroup_is_populated() {
        grep -qsx "populated 1" "$(cgroup_path "${1-}")/cgroup.events"
}

cgroup_is_empty() {
        ! cgroup_is_populated "${1-}"
}

# cgroup_run NAME COMMAND…: replaces the calling (sub)shell by the command in that group.
cgroup_run() {
        local path

        path=$(cgroup_path "$1")
        shift
        mkdir -p "$path"
        echo "$BASHPID" >"$path/cgroup.procs"
        exec "$@"
}

cgroup_rmdir() {
        [[ ! -d $1 ]] || find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
}

# On a hybrid machine nspawn mirrors its groups into systemd's own hierarchy.
cgroup_rmdir_everywhere() {
        local mount

        while IFS= read -r mount; do
                cgroup_rmdir "$mount/$lab_name${1:+/$1}" || return 1
        done < <(findmnt --noheadings --list --output TARGET --types cgroup,cgroup2)
}

# cgroup_remove [NAME]: kills what is left in there and removes it.
cgroup_remove() {
        local path

        path=$(cgroup_path "${1-}")
        [[ -d $path ]] || return 0
        echo 1 >"$path/cgroup.kill"
        poll 20 cgroup_is_empty "${1-}" || die "processes in $path do not die"
        poll 5 cgroup_rmdir_everywhere "${1-}" || die "cannot remove $path"
}
