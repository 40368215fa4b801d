#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What gpuagent-driver does to processes that hold a GPU whose tenant has ended: it ends those that are proven to be the
# tenant's, and nobody else's. And how it tells which tenants are alive.
. "$(dirname "$0")/lib.sh"
config='handover: {kill-grace: 1s}'
tray_options=(--bare)
in_tray

socket=/run/gpuagent-driver.socket
ask() { "$GPUAGENT_BUILD/tests/process/driver-client" $socket "$@"; }

nobody=$(id -u nobody)
# hold USER WORD...: a process that holds GPU 0, with these words of env; its pid is in $held.
hold() {
        local user=$1

        shift
        setpriv --reuid "$user" --regid "$user" --clear-groups env "$@" sleep 1000 <"$GPUAGENT_EMULATION_DEVICES/nvidia0" &
        held=$!
        eventually 2 "it holds the GPU" pgrep -x sleep
}
lives() { [ -d "/proc/$1" ] && [ "$(cut -d' ' -f3 "/proc/$1/stat")" != Z ]; }
end() {
        kill -KILL "$held"
        wait "$held" 2>/dev/null
}

chmod 666 "$GPUAGENT_EMULATION_DEVICES"/nvidia*
start_driver
uuid=$(ask probe 5 | sed -n 's/^0 \(GPU-[^ ]*\).*/\1/p')
leftovers() { ask leftovers 10 "$uuid=${1-slurm/27.0}"; }

like "a list without tenants is no list of leftovers" "$(ask leftovers 5)" '^InvalidArgs: '
like "nor is one with a tenant that is none" "$(ask leftovers 5 "$uuid=; reboot")" '^InvalidArgs: '
is "nobody is left where nobody is" "$(leftovers)" ""

hold "$nobody" SLURM_JOB_ID=27 "SLURM_JOB_UID=$nobody"
is "what the job left is gone" "$(leftovers)" ""
wait "$held"
is "by SIGTERM" $? 143
like "which the journal says" "$(cat /run/tray/gpuagent-driver.log)" \
        "1 left behind ended: sleep \\(pid $held, user nobody, job 27\\) of slurm/27\\.0"

# $1: the claim; then as hold. None of these may be touched.
spared() {
        local claim=$1

        shift
        hold "$@"
        like "$claim is named" "$(leftovers)" "sleep \\(pid $held,"
        holds "and left alone" lives "$held"
        end
}
spared "a process of another job" "$nobody" SLURM_JOB_ID=28 "SLURM_JOB_UID=$nobody"
spared "a process that says nothing" "$nobody" A=b
spared "one whose job is another user's" "$nobody" SLURM_JOB_ID=27 SLURM_JOB_UID=1
spared "root's, whatever it says" 0 SLURM_JOB_ID=27 SLURM_JOB_UID=0
spared "one of a later run of the job" "$nobody" SLURM_JOB_ID=27 "SLURM_JOB_UID=$nobody" SLURM_RESTART_COUNT=1

hold "$nobody" SLURM_JOB_ID=27 "SLURM_JOB_UID=$nobody"
like "a GPU that had no tenant has no leftovers" "$(leftovers "")" "sleep \\(pid $held,"
like "nor has one of a tenant of an unknown kind" "$(leftovers vm/27.0)" "sleep \\(pid $held,"
other=$(ask probe 5 | sed -n 's/^1 \(GPU-[^ ]*\).*/\1/p')
is "a leftover on a GPU that was not asked about is none" "$(ask leftovers 5 "$other=slurm/27.0")" ""
holds "and all of them are left alone" lives "$held"
kill -STOP "$held"
is "one that was stopped ends all the same" "$(leftovers)" ""

setpriv --reuid "$nobody" --regid "$nobody" --clear-groups env SLURM_JOB_ID=27 "SLURM_JOB_UID=$nobody" \
        sh -c 'trap "" TERM; while :; do sleep 1000; done' <"$GPUAGENT_EMULATION_DEVICES/nvidia0" &
eventually 2 "a process that does not care for SIGTERM holds the GPU" pgrep -x sleep
within 4 "it has its grace" leftovers
is "and is killed then, with its child" "$output" ""
like "which the journal says, too" "$(tail -n 1 /run/tray/gpuagent-driver.log)" " left behind had to be killed: "

echo 'handover: {leftovers: refuse}' >/etc/gpuagent/gpuagentd.yaml.d/60-refuse.yaml
hold "$nobody" SLURM_JOB_ID=27 "SLURM_JOB_UID=$nobody"
like "a site that refuses leftovers is told of them" "$(leftovers)" "sleep \\(pid $held, user nobody, job 27\\)"
holds "and they are left alone" lives "$held"
end

pod=pod/a1b2c3d4-0000-1111-2222-333344445555
tenants() { ask tenants 5 slurm/27.0 $pod vm/1; }
rm -rf /etc/slurm /etc/slurm-llnl
mkdir -p /etc/slurm
echo 'SlurmdSpoolDir=/run/tray/spool-%n' >/etc/slurm/slurm.conf
like "without slurmd's folder nothing is known about a job" "$(tenants)" 'slurm/27.0 unknown'
mkdir /run/tray/spool-n1
like "in an empty one there is no sign of it" "$(tenants)" 'slurm/27.0 no-sign'
like "a pod that has no cgroup gives no sign" "$(tenants)" "$pod no-sign"
like "another kind of tenant gives none that is known" "$(tenants)" 'vm/1 unknown'
touch /run/tray/spool-n1/n1_28.0
like "a step of another job is no sign of it" "$(tenants)" 'slurm/27.0 no-sign'
python3 -c 'import signal, socket
s = socket.socket(socket.AF_UNIX)
s.bind("/run/tray/spool-n1/n1_27.4294967291")
s.listen()
signal.pause()' &
step=$!
until [ -S /run/tray/spool-n1/n1_27.4294967291 ]; do sleep 0.01; done
like "a step is" "$(tenants)" 'slurm/27.0 alive'
kill -KILL $step && wait $step 2>/dev/null
like "the socket of one that was killed is not" "$(tenants)" 'slurm/27.0 no-sign'
rm /run/tray/spool-n1/n1_27.4294967291
touch /run/tray/spool-n1/n1_s0123456789abc.0
like "a step that is named by a SLUID may be anyone's" "$(tenants)" 'slurm/27.0 unknown'
like "tenants have to be some" "$(ask tenants 5 "; reboot")" '^InvalidArgs: '

# Slurm 26.05 names a job's folder in the cgroups by a SLUID, and each step of the job has a slurmstepd with a title.
rm /run/tray/spool-n1/*
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 none /sys/fs/cgroup
slice=/sys/fs/cgroup/gpuagent-$(readlink /proc/self/ns/pid | tr -dc 0-9).slice
job=$slice/n1_slurmstepd.scope/s39XM8NARV2100
remove_slice() { until find "$slice" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.05; done; }
trap 'kill -KILL $process $step 2>/dev/null; remove_slice' EXIT
# enter FOLDER: the last process, which then does what a process does.
enter() { echo $! >"$job/$1/cgroup.procs"; }
# stepd JOB
stepd() {
        bash -c "exec -a 'slurmstepd: [$1.extern]' sleep 1000" &
        step=$!
        mkdir -p "$job/step_extern/slurm" && enter step_extern/slurm
        until grep -q ^slurmstepd "/proc/$step/cmdline"; do sleep 0.01; done
}
end_stepd() { kill -KILL $step && wait $step 2>/dev/null; }
mkdir -p "$job/step_0/user"
sleep 1000 &
process=$!
enter step_0/user
like "a process of a job that no step tells may be anyone's" "$(tenants)" 'slurm/27.0 unknown'
stepd 28
like "another job's is no sign of this one" "$(tenants)" 'slurm/27.0 no-sign'
end_stepd
stepd 27
like "its own is" "$(tenants)" 'slurm/27.0 alive'
kill -KILL $process && wait $process 2>/dev/null
rm /etc/gpuagent/gpuagentd.yaml.d/60-refuse.yaml
hold "$nobody" SLURM_JOB_ID=28 "SLURM_JOB_UID=$nobody"
enter step_0/user
is "and what the job left on a GPU is known by it" "$(leftovers)" ""
wait "$held" 2>/dev/null
like "by the number that people know" "$(tail -n 1 /run/tray/gpuagent-driver.log)" "sleep \\(pid $held, user nobody, job 27\\)"
end_stepd

# A hierarchy of our own, with more folders than are looked at: what others make hides no pod and no other container.
id=$(printf '%064d' 1)
container() { ask tenants 20 container/"$id" $pod; }
mount -t tmpfs none /sys/fs/cgroup
flood() { # FOLDER N
        mkdir -p "$1" && (cd "$1" && seq "$2" | xargs mkdir)
}
flood "/sys/fs/cgroup/machine.slice/libpod-$id.scope" 110000
like "a container is there, whatever it makes in its own folder" "$(container)" "container/$id alive"
like "which hides no end of a pod" "$(container)" "$pod no-sign"
rm -rf "/sys/fs/cgroup/machine.slice/libpod-$id.scope"
like "its end shows" "$(container)" "container/$id no-sign"
flood /sys/fs/cgroup/system.slice/theirs.service 11000
chown "$nobody" /sys/fs/cgroup/system.slice/theirs.service
like "what a user makes hides no end of a pod" "$(container)" "$pod no-sign"
like "a container could be in it" "$(container)" "container/$id unknown"
mkdir -p "/sys/fs/cgroup/kubepods.slice/kubepods-pod${pod#pod/}.slice"
like "and no pod" "$(container)" "$pod alive"
umount /sys/fs/cgroup

stop_service gpuagent-driver
finish
