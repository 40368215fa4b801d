# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# Hosts from outside: starting, finding, asking, rebooting.

# The host's PID 1 as this machine numbers it: the one process of the group that is 1 in the namespace right
# below.
host_leader() {
        local path pids status

        path=$(cgroup_path "$1")
        [[ -d $path ]] || return 1
        mapfile -t pids < <(find "$path" -name cgroup.procs -exec cat {} + 2>/dev/null)
        ((${#pids[@]} > 0)) || return 1
        pids=("${pids[@]/#//proc/}")
        status=$(grep -lsE '^NSpid:\s+[0-9]+\s+1$' "${pids[@]/%//status}" || true)
        status=${status%%$'\n'*}
        [[ -n $status ]] || return 1
        printf '%s\n' "${status//[!0-9]/}"
}

# host_exec HOST COMMAND…: as root in the host's namespaces, without a session; for the lab's own use.
host_exec() {
        local host=$1 leader path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin

        shift
        leader=$(host_leader "$host") || return 1
        (cgroup_run "$host" env --ignore-environment PATH="$path" LANG=C.UTF-8 \
                nsenter --all --target "$leader" -- "$@")
}

host_system_state() {
        host_exec "$1" systemctl is-system-running 2>/dev/null
}

host_failed_units() {
        host_exec "$1" systemctl list-units --failed --plain --no-legend | awk '{ print $1 }' | paste -sd ' '
}

# Up is the end of the boot; what failed in it is for the caller to say.
host_is_booted() {
        case $(host_system_state "$1") in
        running | degraded)
                ;;
        *)
                return 1
                ;;
        esac
}

host_is_booted_or_dead() {
        cgroup_is_empty "$1" || host_is_booted "$1"
}

# A host whose making was interrupted is made anew; its supervisor may still be at it, with files that change
# now.
host_discard_unready() {
        local dir=$lab_state/hosts/$1

        [[ ! -e $dir/ready ]] || return 0
        cgroup_remove "$1"
        rm -rf --one-file-system "$dir"
}

host_start() {
        local host=$1 dir=$lab_state/hosts/$1

        if cgroup_is_populated "$host"; then
                say "$host: is up already"
                return
        fi
        cgroup_remove "$host"
        mkdir -p "$dir"
        say "$host: boots"
        (cgroup_run "$host" setsid unshare --mount --net --propagation private \
                "$lab_dir/lib/run-host" "$host" "$(image_path)") 9>&- </dev/null >>"$dir/console.log" 2>&1 &
        poll 5 cgroup_is_populated "$host" || true
}

host_wait() {
        local host=$1

        if ! poll 120 host_is_booted_or_dead "$host" || ! host_is_booted "$host"; then
                host_complain "$host"
                die "$host did not boot"
        fi
        if [[ $(host_system_state "$host") == degraded ]]; then
                say "$host: failed units: $(host_failed_units "$host")"
        fi
}

# What helps to see why a host is not as it should be.
host_complain() {
        local host=$1

        {
                printf -- '--- %s: console\n' "$host"
                tail -n 15 "$lab_state/hosts/$host/console.log"
                printf -- '--- %s: failed units and warnings\n' "$host"
                host_exec "$host" systemctl --no-pager --plain --failed
                host_exec "$host" journalctl --no-pager --boot --priority=warning --lines=15
                host_exec "$host" sh -c 'tail -n 15 /var/log/slurm/*.log'
        } >&2 2>&1
}

# host_update HOST: the product's packages of now, unless the host has them.
host_update() {
        local host=$1 fingerprint known=$lab_state/hosts/$1/product

        fingerprint=$(product_fingerprint "$host")
        [[ $fingerprint != "$(cat "$known" 2>/dev/null)" ]] || return 0
        say "$host: gets the new gpuagent"
        product_send "$host" | host_exec "$host" bash -c "$(<"$lab_dir/lib/install-product")" \
                >"$lab_state/hosts/$host/install.log" 2>&1 ||
                die "$host: cannot install gpuagent; see $lab_state/hosts/$host/install.log"
        printf '%s\n' "$fingerprint" >"$known"
}

host_has_rebooted() {
        local leader

        leader=$(host_leader "$1") && [[ $leader != "$2" ]] && host_is_booted "$1"
}

host_reboot() {
        local host=$1 leader

        leader=$(host_leader "$host") || die "$host is not up"
        say "$host: reboots"
        # Not by way of logind, whose answer may not come before the bus is stopped.
        host_exec "$host" systemctl --no-block --job-mode=replace-irreversibly start reboot.target ||
                die "$host: does not take the order to reboot"
        if ! poll 180 host_has_rebooted "$host" "$leader"; then
                host_complain "$host"
                die "$host did not come back"
        fi
}
