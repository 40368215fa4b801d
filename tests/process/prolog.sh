#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Slurm's prolog and epilog in pairs, alone, twice, and for jobs that never ran.
. "$(dirname "$0")/lib.sh"
config='{slurm: {drain: false}, handover: {busy-grace: 500ms}, driver: {poll-interval: 500ms, probe-timeout: 4s}}'
in_tray

# hook SCRIPT JOB GPUS [NAME=VALUE...], in the environment that slurmd gives its scripts: SIGPIPE is blocked, no PATH.
hook() {
        local script=$1 job=$2 gpus=$3

        shift 3
        env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SLURM_JOB_ID="$job" SLURM_JOB_UID=1000 SLURMD_NODENAME=tray \
                SLURM_SCRIPT_CONTEXT="${script}_slurmd" SLURM_JOB_RESTART_COUNT=0 SLURM_JOB_GPUS="$gpus" "$@" \
                "$(command -v env)" --block-signal=PIPE "$(command -v gpuagentctl)" "slurm-$script"
}
prolog() { hook prolog "$@"; }
epilog() { hook epilog "$@"; }
counts() { echo "$(true_resets 0) $(true_resets 1) $(true_resets 2) $(true_resets 3)"; }
tenants() { gpuagentctl list --json=short | jq -r '[.[] | .tenant // "-"] | join(" ")'; }
# All that was sent to the journal so far is in the file.
journal_is_written() {
        local mark="mark $EPOCHREALTIME"

        printf 'MESSAGE=%s\n' "$mark" | logger --journald
        for _ in {1..100}; do
                ! grep -qF "$mark" /run/tray/journal || return 0
                sleep 0.05
        done
}
# The message of the last entry under an identifier.
audit() { journal_is_written && tac /run/tray/journal | awk -v RS= -v id="SYSLOG_IDENTIFIER=$1" 'index($0, id) { print; exit }' | sed -n 's/^MESSAGE=//p'; }
configure() { echo "$1" >/etc/gpuagent/gpuagentd.yaml.d/60-more.yaml && gpuagentctl reload; }

read -r a b c d <<<"$(counts)"
exits 0 "a job without GPUs is done at once" prolog 20 ''
exits 0 "also one that does not say" env -u SLURM_JOB_GPUS "$(command -v gpuagentctl)" slurm-prolog

# A pair.
exits 0 "a job's clean GPUs are booked" prolog 26 0,1
is "for the job" "$(tenants)" "slurm/26.0 slurm/26.0 - -"
is "the GPUs are in use" "$(states)" "in-use in-use clean clean"
is "without a reset" "$(counts)" "$a $b $c $d"
like "the journal says so" "$(audit gpuagentd)" "^job 26: GPUs 0,1 booked$"
exits 0 "the epilog takes them back" epilog 26 0,1
is "they are nobody's" "$(tenants)" "- - - -"
is "and reset" "$(counts)" "$((a + 1)) $((b + 1)) $c $d"
is "which is the audit's line" "$(audit slurm-epilog)" "job 26: GPUs 0,1 reset"
exits 0 "an epilog that comes twice succeeds" epilog 26 0,1
is "and resets nothing again" "$(counts)" "$((a + 1)) $((b + 1)) $c $d"

# Twice, and by others.
exits 0 "a prolog" prolog 30 0
exits 0 "that comes twice is the same booking" prolog 30 0
exits 1 "another job is refused" prolog 31 0,2
like "with who has it" "$output" "GPU 0 is leased to slurm/30.0"
is "in one line" "$(wc -l <<<"$output")" 1
like "also in the audit" "$(audit slurm-prolog)" "^job 31: GPUs 0 refused: .*slurm/30.0"
is "nothing is booked for it" "$(tenants)" "slurm/30.0 - - -"
exits 0 "its epilog succeeds" epilog 31 0,2
is "and says so under its name" "$(audit slurm-epilog)" \
        "job 31: nothing released: GPU 0 is leased to slurm/30.0, not to slurm/31.0"
is "and changes nothing" "$(tenants) $(true_resets 0)" "slurm/30.0 - - - $((a + 1))"
exits 1 "the job that was queued again is another tenant" prolog 30 0 SLURM_JOB_RESTART_COUNT=1
exits 0 "the job ends" epilog 30 0
exits 0 "and runs again" prolog 30 0 SLURM_JOB_RESTART_COUNT=1
is "with its count" "$(gpu 0 Tenant)" slurm/30.1
exits 0 "gpuagentctl finds it by the job alone" gpuagentctl release --job 30
is "and has ended its lease" "$(tenants)" "- - - -"

# The lease counts, and not what is said of the job afterwards.
exits 0 "a job of two GPUs" prolog 32 2,3
read -r a b c d <<<"$(counts)"
exits 0 "whose epilog says something else" epilog 32 0
is "gives back what it had" "$(tenants) $(counts)" "- - - - $a $b $((c + 1)) $((d + 1))"
exits 0 "a job" prolog 33 2
exits 0 "whose epilog says nothing that can be read" epilog 33 0,x
is "gives it back, too" "$(tenants)" "- - - -"
exits 1 "without a lease that is a failure" epilog 34 0,x
exits 0 "an epilog without a prolog resets, as without leases" epilog 35 1
is "its GPU" "$(true_resets 1)" $((b + 1))

# What is not clean.
hold 0
exits 1 "a foreign process is found before the job" prolog 36 0,1
like "with its name" "$output" "^job 36: GPUs 0,1 refused: GPU 0 is held by holder \(pid $holder, user root"
like "under the prolog's name" "$(audit slurm-prolog)" "^job 36: GPUs 0 refused: GPU 0 is held by holder"
is "nothing is booked" "$(tenants)" "- - - -"
exits 1 "its epilog fails as well" epilog 36 0,1
configure 'mode: observe'
exits 0 "a site that only observes refuses nothing" prolog 37 0
like "but says what it would" "$(audit slurm-prolog)" "GPU 0 is held by holder .*observe"
exits 0 "nor does its epilog" epilog 37 0
configure '{}'
release
exits 0 "once it is gone a prolog cleans the GPU" prolog 38 0
is "and books it" "$(gpu 0 Tenant)" slurm/38.0
# entries ID: the messages of all entries with the id of that name.
entries() {
        local id

        id=$(sed -nE "s/.*MESSAGE_ID_$1 \"([0-9a-f]+)\".*/\1/p" "$here/../../agent/log/message-ids.h")
        awk -v RS= -v id="MESSAGE_ID=$id" 'index($0, id)' /run/tray/journal | sed -n 's/^MESSAGE=//p'
}
is "the handovers have this one, too" "$(entries HANDOVER_DONE | tail -n 1)" "GPUs 0 reset before a booking"

# kill -9 of the agent.
kill -KILL "$(main_pid gpuagentd)"
eventually 5 "the agent comes back" answers
is "with its leases" "$(tenants)" "slurm/38.0 - - -"
exits 1 "another job is still refused" prolog 39 0
exits 0 "and the epilog ends the lease" epilog 38 0
is "with a clean GPU" "$(gpu 0 State) $(gpu 0 Tenant)" "clean "

# Maintenance.
gpuagentctl maintenance on new driver 580.95 >/dev/null
exits 1 "maintenance refuses" prolog 40 0
like "with its reason" "$output" "new driver 580.95"
is "status tells" "$(gpuagentctl status | grep -c 'new driver 580.95')" 1
exits 0 "off again" gpuagentctl maintenance off
exits 0 "jobs start" prolog 40 0
exits 0 "and end" epilog 40 0

# MIG, sharing, the handover switched off.
exits 1 "MIG devices are refused" prolog 41 0 CUDA_VISIBLE_DEVICES=MIG-5f2b1a2e-0000-5000-8000-000000000000
like "and the reason is given" "$output" MIG
is "also in the journal, though the agent was never asked" "$(audit slurm-prolog)" "$output"
exits 1 "and so is what is no list of GPUs" prolog 41 0,0
is "in good words" "$output" "job 41: GPUs refused: SLURM_JOB_GPUS is '0,0', which is no list of GPUs"
configure 'handover: {mig: skip, shared: count}'
exits 0 "unless they are to be left alone" prolog 41 0 CUDA_VISIBLE_DEVICES=MIG-5f2b1a2e-0000-5000-8000-000000000000
exits 0 "their epilog is content, too" epilog 41 0 CUDA_VISIBLE_DEVICES=MIG-5f2b1a2e-0000-5000-8000-000000000000
gpuagent-emulate mig 1 on && refresh
exits 0 "so is a whole GPU in MIG mode" prolog 41 1,2
exits 0 "and its end" epilog 41 1,2
is "of which the journal tells what was reset" "$(audit slurm-epilog)" "job 41: GPUs 2 reset"
exits 0 "a reset leaves it alone" gpuagentctl reset -i 1
is "and says so" "$output $(gpu 1 LastResetResult)" "no GPU was reset: MIG mode is on skipped"
is "as the journal does" "$(audit gpuagentd)" "GPUs 1 not reset: MIG mode is on"
like "status knows what to do" "$(gpuagentctl status 1)" "to do: *nvidia-smi -i 1 -mig 0"
gpuagent-emulate mig 1 off && refresh
before=$(true_resets 0)
exits 0 "a GPU is shared" prolog 42 0
exits 0 "by two jobs" prolog 43 0
exits 0 "one of them ends" epilog 42 0
is "which is no reset" "$(true_resets 0) $(gpu 0 Tenant)" "$before slurm/43.0"
exits 0 "the other one ends" epilog 43 0
is "which is one" "$(true_resets 0) $(gpu 0 Tenant)" "$((before + 1)) "
configure 'handover: {reset: false}'
# A file that was changed and not reloaded is not in force.
echo 'mode: enforce' >/etc/gpuagent/gpuagentd.yaml.d/60-more.yaml
hold 0
exits 0 "with the handover off a prolog succeeds" prolog 44 0
is "and books" "$(gpu 0 Tenant)" slurm/44.0
release
exits 0 "and so does the epilog" epilog 44 0
is "which says what it did" "$output" "job 44: GPUs 0 released and not reset: handover.reset is off"
exits 0 "one that fails says so" epilog 44 0,x
like "and is let pass" "$output" "^job 44: GPU reset of its GPUs failed: .*handover.reset is off: nothing follows"
is "without a reset" "$(true_resets 0)" $((before + 1))
configure '{}'

# A driver that hangs: the prolog has a deadline of its own, below Slurm's, and says why.
echo "PrologTimeout=6" >/run/tray/slurm.conf
gpuagent-emulate hang on
within 5 "a driver that hangs is not waited for" prolog 48 0 SLURM_CONF=/run/tray/slurm.conf CUDA_VISIBLE_DEVICES="$(gpu 0 UUID)"
like "longer than Slurm would" "$output" "^job 48: GPUs 0 refused: .*the driver is busy with a probe for .*gpuagentctl status"
is "nothing is booked" "$(tenants)" "- - - -"
gpuagent-emulate hang off
eventually 10 "it comes back" gpuagentctl --quiet --timeout 2 reset -i 0

# Nobody reads the line.
prolog 45 1 | true
is "a reader that is gone does no harm" "${PIPESTATUS[0]}" 0
epilog 45 1 >/dev/null

stop_service gpuagentd
exits 0 "without an agent a job without GPUs is done" prolog 46 ''
within 2 "one with GPUs fails within two seconds" prolog 46 0
exits 5 "and with a code" prolog 46 0
is "and a line in the journal" "$(audit slurm-prolog)" "$output"
finish
