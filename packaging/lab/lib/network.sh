# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# The lab's network: a bridge in a namespace of its own (the switch), to which the hosts' namespaces are
# connected. The machine's own network is not touched; the namespaces live as long as the processes in them.

# The switch's only process: the pid by which its namespace is entered.
network_pid() {
        head -n 1 "$(cgroup_path switch)/cgroup.procs" 2>/dev/null
}

network_has_address() {
        local pid

        pid=$(network_pid)
        [[ -n $pid ]] && nsenter --net="/proc/$pid/ns/net" ip -brief address show dev lab0 2>/dev/null |
                grep -qF "$lab_network.1/"
}

network_up() {
        network_has_address && return
        cgroup_remove switch
        (cgroup_run switch setsid unshare --net "$lab_dir/lib/run-switch" "$lab_network.1/24") \
                9>&- </dev/null >"$lab_state/switch.log" 2>&1 &
        poll 10 network_has_address || die "no network: $(tail -n 3 "$lab_state/switch.log")"
}

# network_exec COMMAND…: from the switch's place in the network.
network_exec() {
        local pid

        pid=$(network_pid)
        [[ -n $pid ]] || die "the lab is not up"
        exec nsenter --net="/proc/$pid/ns/net" "$@"
}
