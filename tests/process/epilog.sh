#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The Slurm epilog's verb, with the environment that slurmd gives it.
. "$(dirname "$0")/lib.sh"
config='{slurm: {drain: false}, handover: {busy-grace: 500ms}, driver: {poll-interval: 500ms}}'
in_tray

# epilog NAME=VALUE...
epilog() { env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SLURM_JOB_ID=26 SLURM_JOB_UID=1000 SLURMD_NODENAME=tray \
        SLURM_SCRIPT_CONTEXT=epilog_slurmd SLURM_JOB_RESTART_COUNT=0 "$@" "$(command -v gpuagentctl)" slurm-epilog; }
counts() { echo "$(true_resets 0) $(true_resets 1) $(true_resets 2) $(true_resets 3)"; }
# The last entry of the audit: its message and one of its fields.
audit() { tac /run/tray/journal | awk -v RS= '/SYSLOG_IDENTIFIER=slurm-epilog/ { print; exit }' | sed -n "s/^$1=//p"; }

before=$(counts)
exits 0 "a job without GPUs is done at once" epilog
exits 0 "also with an empty list" epilog SLURM_JOB_GPUS=
is "and nothing is reset" "$(counts)" "$before"

exits 0 "a job's GPUs are reset" epilog SLURM_JOB_GPUS=0,1,2,3
read -r a b c d <<<"$before"
is "each once" "$(counts)" "$((a + 1)) $((b + 1)) $((c + 1)) $((d + 1))"
is "the audit says so" "$(tac /run/tray/journal | sed -n 's/^MESSAGE=//p' | grep -m1 'job 26')" "job 26: GPUs 0,1,2,3 reset"
like "with fields" "$(grep '^GPUAGENT_TENANT=' /run/tray/journal | tail -n 1)" 'slurm/26.0'
is "under the epilog's name" "$(grep -c SYSLOG_IDENTIFIER=slurm-epilog /run/tray/journal)" 1
is "the tenant is remembered" "$(gpu 0 LastTenant)" slurm/26.0

exits 0 "UUIDs say more than positions" epilog SLURM_JOB_ID=28 SLURM_JOB_GPUS=0 CUDA_VISIBLE_DEVICES="$(gpu 2 UUID)"
is "the GPU that was meant is reset" "$(true_resets 2)" $((c + 2))

hold 0
exits 1 "a held GPU fails the epilog" epilog SLURM_JOB_ID=27 SLURM_JOB_GPUS=0
like "which names the holder" "$output" "GPU 0 is held by holder \(pid $holder"
like "in the audit, too" "$(tac /run/tray/journal | sed -n 's/^MESSAGE=//p' | grep -m1 'job 27')" \
        "^job 27: GPU reset of 0 failed: GPU 0 is held by holder \(pid $holder, user root"
is "in one line" "$(wc -l <<<"$output")" 1
release

deaf() { "$@" >&-; }
exits 0 "an epilog whose stdout is closed is done all the same" deaf epilog SLURM_JOB_GPUS=0
exits 0 "and so is a quiet reset" deaf gpuagentctl --quiet reset -i 0
exits 1 "a list that cannot be printed fails" deaf gpuagentctl list

exits 3 "a GPU that is not there fails" epilog SLURM_JOB_GPUS=9
exits 1 "what is no list fails" epilog SLURM_JOB_GPUS=0,x
exits 1 "a job without an id fails" env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SLURM_JOB_GPUS=0 \
        "$(command -v gpuagentctl)" slurm-epilog

# slurmd's own list decides what the numbers mean.
mkdir -p /etc/slurm
touch /etc/slurm/slurm.conf
mkdir -p /run/tray/slurm/upper /run/tray/slurm/work
mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/run/tray/slurm/upper,workdir=/run/tray/slurm/work /usr/sbin
cat >/usr/sbin/slurmd <<EOF
#!/bin/sh
for n in 3 1 0 2; do
        echo "slurmd: Gres Name=gpu Type=(null) Count=1 Index=\$n ID=7696487 File=$GPUAGENT_EMULATION_DEVICES/nvidia\$n (null)" >&2
done
EOF
chmod +x /usr/sbin/slurmd
before=$(true_resets 3)
exits 0 "with a list of slurmd's own" epilog SLURM_JOB_ID=29 SLURM_JOB_GPUS=0
is "the first is what stands first in it" "$(true_resets 3)" $((before + 1))
rm /etc/slurm/slurm.conf

echo 'handover: {reset: false}' >/etc/gpuagent/gpuagentd.yaml.d/60-off.yaml
gpuagentctl reload
before=$(counts)
exits 0 "with the handover switched off an epilog succeeds" epilog SLURM_JOB_GPUS=0
is "and resets nothing" "$(counts)" "$before"
rm /etc/gpuagent/gpuagentd.yaml.d/60-off.yaml
gpuagentctl reload

stop_service gpuagentd
exits 0 "without an agent a job without GPUs is done" epilog
within 2 "one with GPUs fails within two seconds" epilog SLURM_JOB_GPUS=0
exits 5 "and with a code" epilog SLURM_JOB_GPUS=0
finish
