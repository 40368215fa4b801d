#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Bookings by hand, maintenance and forgotten GPUs, as a person does them.
. "$(dirname "$0")/lib.sh"
config='{handover: {busy-grace: 300ms}, driver: {poll-interval: 500ms}}'
in_tray

ctl() { setpriv --reuid "$1" --regid "$(id -g "$1")" --init-groups gpuagentctl "${@:2}"; }
said() { sed -n 's/^MESSAGE=//p' /run/tray/journal | tail -n 1; }
tenants() { gpuagentctl list --json=short | jq -r '[.[] | .tenant // "-"] | join(" ")'; }

exits 2 "a booking needs a tenant" gpuagentctl acquire -i 0
exits 2 "and GPUs" gpuagentctl acquire --tenant pod/x
exits 2 "a release needs a tenant" gpuagentctl release -i 0
exits 2 "maintenance is on or off" gpuagentctl maintenance perhaps
exits 2 "off has no reason" gpuagentctl maintenance off now
exits 2 "forget takes one GPU" gpuagentctl forget
exits 2 "acquire takes no --force" gpuagentctl acquire --tenant pod/x -i 0 --force
exits 2 "what is no tenant is wrong usage" gpuagentctl acquire --tenant x -i 0

exits 4 "nobody books" ctl nobody acquire --tenant pod/x -i 0
exits 4 "switches maintenance" ctl nobody maintenance on mine
exits 4 "or makes GPUs forgotten" ctl nobody forget 0
is "and nothing has happened" "$(tenants) $(manager Maintenance)" "- - - - false"

exits 0 "a member of the group books" ctl operator acquire --tenant pod/x -i 0,1
is "in one line" "$output" "GPUs 0,1 booked for pod/x"
exits 0 "again, by the beginning of a UUID" gpuagentctl acquire --tenant pod/x -i "$(gpu 0 UUID | cut -c1-12)"
exits 3 "a GPU that is not there is not booked" gpuagentctl acquire --tenant pod/x -i 0,9
like "which is in the log, too" "$(tail -n 1 /run/tray/gpuagentd.log)" "booking refused for pod/x: There is no GPU 9 on this tray"
exits 1 "a GPU that is had is refused" gpuagentctl acquire --job 80 -i 1,2
like "by name" "$output" "GPU 1 is leased to pod/x"
exits 1 "and not reset" gpuagentctl reset
like "by name, too" "$output" "GPU 0 is leased to pod/x"
is "the free ones were reset all the same" "$(states)" "in-use in-use clean clean"
exits 1 "sharing is off" gpuagentctl acquire --tenant pod/y -i 3 --shared
like "which is said" "$output" "handover.shared"
exits 1 "others cannot release it" gpuagentctl release --tenant pod/y -i 0
exits 4 "nor can the group by force" ctl operator release --tenant pod/y -i 0 --force
is "it is still had" "$(gpu 0 Tenant)" pod/x
exits 0 "root can" gpuagentctl release --tenant pod/y -i 0 --force
holds "a lease ended by force has an entry of its own" grep -q \
        '^MESSAGE=GPU 0 was leased to pod/x, which was ended by force' /run/tray/journal
is "and the journal tells whose lease it was" "$(said)" "GPUs 0 reset for pod/y (by force: GPU 0 was leased to pod/x)"
exits 0 "the tenant can, with all it has" gpuagentctl release --tenant pod/x
is "nobody has any" "$(tenants)" "- - - -"

# A container in a Slurm job: it has what its job has.
inside() { # CGROUP USER VERB…: as if the caller stood in that cgroup
        echo "0::$1" >/run/tray/cgroup
        unshare --mount bash -c 'mount --bind /run/tray/cgroup /proc/$$/cgroup && exec setpriv --reuid "$1" --regid "$(id -g "$1")" \
                --init-groups gpuagentctl "${@:2}"' bash "${@:2}"
}
job=/system.slice/slurmstepd.scope/job_26/step_0
exits 0 "a job books" gpuagentctl acquire --tenant slurm/26.1 -i 0,1
exits 0 "a container in it has its GPUs" inside $job root acquire --tenant pod/z -i 0,1
like "which is said" "$output" "by slurm/26.1"
exits 0 "also one that may book nothing" inside $job nobody acquire --tenant pod/z -i 1
exits 4 "but not more" inside $job nobody acquire --tenant pod/z -i 1,2
exits 1 "nor in another job" inside /system.slice/slurmstepd.scope/job_2/step_0 root acquire --tenant pod/z -i 0
exits 1 "nor in a cgroup that is only called so" inside "/user.slice$job" root acquire --tenant pod/z -i 0
is "and nothing was booked by that" "$(tenants)" "slurm/26.1 slurm/26.1 - -"
exits 0 "the job ends" gpuagentctl release --job 26

# Maintenance: nobody asks the driver, which may go and come meanwhile.
exits 0 "maintenance" gpuagentctl maintenance on driver 580.95
sleep 1
worker_runs_ever() { for _ in {1..30}; do worker_runs && return 0; sleep 0.05; done; return 1; }
holds "no worker runs in it" bash -c "! pgrep -P $(main_pid gpuagent-driver)"
exits 1 "a worker is not needed for the answer" gpuagentctl verify
like "which gives the reason" "$output" "driver 580.95"
holds "and none has run" eval '! worker_runs_ever'
exits 1 "the reset of a boot does not wait for its end" gpuagentctl boot-reset --timeout 20
like "and says why" "$output" "maintenance"
exits 0 "off" gpuagentctl maintenance off
eventually 5 "the driver is asked again" gpuagentctl verify

exits 1 "a GPU that is there is not forgotten" gpuagentctl forget 3
uuid=$(gpu 3 UUID)
exits 3 "nor one that never was" gpuagentctl forget GPU-00000000-0000-0000-0000-000000000000
is "they are all there" "$(gpuagentctl list --no-legend | grep -c "$uuid")" 1
finish
