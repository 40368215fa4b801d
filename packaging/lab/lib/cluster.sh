# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# Slurm as a whole: from the controller's point of view.

cluster_states() {
        host_exec sched-control sinfo --noheader --Node --format '%N %T' 2>/dev/null
}

cluster_is_idle() {
        [[ $(cluster_states | grep -c ' idle$') == 2 ]]
}

# A daemon that has given up will not come by waiting.
cluster_has_failed() {
        local host

        for host in "${lab_hosts[@]}"; do
                if host_exec "$host" systemctl --quiet is-failed slurmctld slurmdbd slurmd; then
                        return 0
                fi
        done
        return 1
}

cluster_is_idle_or_failed() {
        cluster_is_idle || cluster_has_failed
}

cluster_wait() {
        say "Slurm: waits for both trays to be idle"
        if ! poll 120 cluster_is_idle_or_failed || ! cluster_is_idle; then
                host_complain sched-control
                host_complain sched-worker1
                host_complain sched-worker2
                cluster_states >&2
                host_exec sched-control sinfo --list-reasons >&2
                die "not all trays are idle"
        fi
}

# When slurmd started, as the controller knows it.
cluster_slurmd_start() {
        host_exec sched-control scontrol --oneliner show node "$1" 2>/dev/null |
                grep -o 'SlurmdStartTime=[^ ]*'
}

# After its own start the controller learns of the trays one by one.
cluster_is_known() {
        local states

        states=$(cluster_states) && ! grep -q ' unknown' <<<"$states"
}

cluster_has_new_slurmd() {
        local start

        start=$(cluster_slurmd_start "$1") && [[ $start != "$2" ]]
}
