# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# Slurm as a whole: from the controller's point of view.

cluster_states() {
        host_exec sched-control sinfo --noheader --Node --format '%N %T' 2>/dev/null
}

# Both trays answer; one that somebody has drained, or that works, is no fault of the lab's.
cluster_is_up() {
        [[ $(cluster_states | grep -cvE ' (unknown|down|inval|future)|\*$') == 2 ]]
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

cluster_is_up_or_failed() {
        cluster_is_up || cluster_has_failed
}

cluster_wait() {
        say "Slurm: waits for both trays"
        if ! poll 120 cluster_is_up_or_failed || ! cluster_is_up; then
                host_complain sched-control
                host_complain sched-worker1
                host_complain sched-worker2
                cluster_states >&2
                host_exec sched-control sinfo --list-reasons >&2
                die "not all trays are up in Slurm"
        fi
        cluster_states | sed 's/^\([^ ]*\) /\1: is /'
        host_exec sched-control sinfo --noheader --list-reasons --format='%n: %E'
}

# When slurmd started, as the controller knows it.
cluster_slurmd_start() {
        host_exec sched-control scontrol --oneliner show node "$1" 2>/dev/null |
                grep -o 'SlurmdStartTime=[^ ]*'
}

cluster_has_new_slurmd() {
        local start

        start=$(cluster_slurmd_start "$1") && [[ $start != "$2" ]]
}
