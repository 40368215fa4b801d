#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What an ended job leaves on its GPUs is ended, if it is proven to be the job's; nobody else's process ever is.
. "$(dirname "$0")/lib.sh"
config='{slurm: {drain: false}, handover: {busy-grace: 300ms, kill-grace: 500ms}, driver: {poll-interval: 500ms}}'
in_tray

uid=$(id -u operator)
hook() {
        env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SLURM_JOB_ID="$2" SLURMD_NODENAME=tray SLURM_JOB_RESTART_COUNT=0 \
                SLURM_JOB_GPUS="$3" "$(command -v gpuagentctl)" "slurm-$1"
}

# occupy UID NAME=VALUE...: a process of this user with this environment holds GPU 0; its pid is in $holder.
occupy() {
        local user=$1

        shift
        cp "$(command -v sleep)" /run/tray/python
        env -i "$@" setpriv --reuid "$user" --clear-groups /run/tray/python 1000 3<>"$GPUAGENT_EMULATION_DEVICES/nvidia0" &
        holder=$!
        until [[ $(readlink "/proc/$holder/exe") == /run/tray/* ]]; do sleep 0.01; done
}
lives() { [ -e "/proc/$1/exe" ] && readlink "/proc/$1/exe" >/dev/null; }
ended() { ! lives "$1"; }

exits 0 "a job" hook prolog 60 0
occupy "$uid" SLURM_JOB_ID=60 SLURM_JOB_UID="$uid"
exits 0 "that leaves a process has its handover all the same" hook epilog 60 0
holds "without the process" ended "$holder"
is "the GPU is clean" "$(gpu 0 State)" clean
like "the log names it" "$(cat /run/tray/gpuagent-driver.log)" "python \(pid $holder, user operator, job 60\) of slurm/60.0"

is "in an entry of its own" "$(awk -v RS= '/left behind ended/' /run/tray/journal |
        sed -n 's/^\(GPUAGENT_TENANT\|GPUAGENT_RESULT\|SYSLOG_IDENTIFIER\)=//p' | paste -sd ' ')" \
        "gpuagent-driver slurm/60.0 ended"
exits 0 "a job" hook prolog 61 0
cat >/run/tray/stubborn <<EOF
#!/bin/bash
trap '' TERM
while :; do read -rt 1 <> <(:); done
EOF
chmod +x /run/tray/stubborn
env -i SLURM_JOB_ID=61 SLURM_JOB_UID="$uid" setpriv --reuid "$uid" --clear-groups /run/tray/stubborn \
        3<>"$GPUAGENT_EMULATION_DEVICES/nvidia0" &
holder=$!
sleep 0.3
exits 0 "whose process ignores SIGTERM has its handover, too" hook epilog 61 0
holds "it was killed" ended "$holder"

# spared CLAIM UID NAME=VALUE...
spared() {
        local claim=$1

        shift
        hook prolog 62 0 >/dev/null || fail "the job gets its GPU ($claim)"
        occupy "$@"
        exits 1 "$claim makes the GPU busy" hook epilog 62 0
        like "is named" "$output" "GPU 0 is held by python \(pid $holder"
        holds "and lives" lives "$holder"
        release
        exits 0 "without it the GPU is clean again" hook epilog 62 0
}
spared "a process of another job" "$uid" SLURM_JOB_ID=63 SLURM_JOB_UID="$uid"
spared "one that only has the user" "$uid" HOME=/
spared "another user's with the job's environment" 65534 SLURM_JOB_ID=62 SLURM_JOB_UID="$uid"
spared "one of root that claims to be the job's" 0 SLURM_JOB_ID=62 SLURM_JOB_UID=0

echo 'handover: {leftovers: refuse}' >/etc/gpuagent/gpuagentd.yaml.d/60-more.yaml
gpuagentctl reload
spared "even the job's own, where the site wants it to be seen" "$uid" SLURM_JOB_ID=62 SLURM_JOB_UID="$uid"
rm /etc/gpuagent/gpuagentd.yaml.d/60-more.yaml
gpuagentctl reload

# Nobody has ended: a reset by hand ends nothing.
occupy "$uid" SLURM_JOB_ID=64 SLURM_JOB_UID="$uid"
exits 1 "a reset by hand is refused" gpuagentctl reset -i 0
holds "and the process lives" lives "$holder"
release
finish
