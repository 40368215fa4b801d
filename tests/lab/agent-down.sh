#!/bin/bash
# SPDX-License-Identifier: MIT
# An epilog whose agent is stopped, dies under it, or was told not to reset: never a false "clean".
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# epilog_by_hand: as slurmd runs it. Prints exit code and whole milliseconds.
epilog_by_hand() {
        # shellcheck disable=SC2016 # expanded on the tray
        on "$tray" 'start=$(date +%s%N)
                env --ignore-environment SLURM_JOB_ID=4000000 SLURM_JOB_GPUS=0 SLURM_JOB_UID=1000 \
                        SLURM_JOB_RESTART_COUNT=0 SLURM_SCRIPT_CONTEXT=epilog_slurmd SLURMD_NODENAME=nobody \
                        /usr/lib/gpuagent/slurm/epilog >/dev/null 2>&1
                echo $? $((($(date +%s%N) - start) / 1000000))'
}

stopped_agent() {
        local rc milliseconds job

        on "$tray" 'systemctl stop gpuagentd'
        read -r rc milliseconds < <(epilog_by_hand)
        if ((rc != 0)); then
                pass "without the agent the epilog fails ($rc)"
        else
                fail "without the agent the epilog fails"
        fi
        if ((milliseconds < 2000)); then
                pass "within two seconds ($milliseconds ms)"
        else
                fail "within two seconds" "$milliseconds ms"
        fi
        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "a real job's epilog ends" job_is_over "$job"
        within 20 "and drains the node" node_is "$tray" drained
        like "with our reason" "$(node_reason "$tray")" '^gpuagent: '
        is "the agent is still stopped" "$(on "$tray" 'systemctl is-active gpuagentd')" inactive
        on "$tray" 'systemctl start gpuagentd && gpuagentctl reset' >/dev/null 2>&1
        resume "$tray"
        within 60 "it recovers by start, reset and resume" tray_is_ready "$tray"
}

# Slurm was told the truth: idle means that the GPU is clean and its reset on record; else the node is
# drained.
killed_agent() {
        local job state gpu line

        job=$(submit -w "$tray" --gpus=1 'true')
        within 60 "a job's GPU is being reset" is_resetting "$tray"
        on "$tray" 'systemctl kill --signal=KILL --kill-whom=main gpuagentd'
        within 30 "the killed agent comes back" on "$tray" 'gpuagentctl list'
        state=$(property "$tray" 0 State)
        within 120 "the job's epilog ends" job_is_over "$job"
        line=$(audit "$tray" "$job")
        poll 20 node_is_settled
        gpu=$(property "$tray" 0 State)
        case $(node_state "$tray") in
        idle)
                is "the node is idle: the GPU is clean and on record" \
                        "$gpu | $line" "clean | job $job: GPUs 0 reset"
                ;;
        drained)
                like "the node is drained, with a reason" \
                        "$(node_reason "$tray")" '^(gpuagent: |Epilog error)'
                if [[ $state != clean ]]; then
                        pass "the GPU is not clean after the kill ($state)"
                else
                        fail "the GPU is not clean after the kill"
                fi
                ;;
        *)
                fail "the node is idle or drained" "$(node_state "$tray")"
                ;;
        esac
        make_ready "$tray" >/dev/null 2>&1
        is "a reset and a resume cure it" \
                "$(column "$tray" STATE) $(node_state "$tray")" 'clean clean clean clean idle'
}

# An upgrade restarts the agent whenever it comes.
restarted_agent() {
        local job

        job=$(submit -w "$tray" --gpus=4 'true')
        within 60 "a job's GPUs are being reset" is_resetting "$tray"
        succeeds "the agent restarts meanwhile" on "$tray" 'systemctl restart gpuagentd'
        within 60 "the epilog ends" job_is_over "$job"
        is "the reset was carried out to its end" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        is "the GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 20 "the node is idle" node_is "$tray" idle
}

# restarted_services COMMAND: whatever is done to the two services, what a handover needs waits for its end.
restarted_services() {
        local job

        job=$(submit -w "$tray" --gpus=4 'true')
        within 60 "a job's GPUs are being reset" is_resetting "$tray"
        succeeds "meanwhile: $1" on "$tray" "$1"
        within 60 "the epilog ends" job_is_over "$job"
        is "the reset was carried out to its end" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
        succeeds "the services run" on "$tray" \
                'systemctl start gpuagentd && systemctl is-active gpuagentd gpuagent-driver.socket'
        is "the GPUs are clean" "$(column "$tray" STATE)" 'clean clean clean clean'
        within 20 "the node is idle" node_is "$tray" idle
}

# A reboot of the whole tray under an epilog: what slurmd is told, and what the GPUs are after it.
stopped_tray() {
        local job

        job=$(submit -w "$tray" --gpus=4 'true')
        within 60 "a job's GPUs are being reset" is_resetting "$tray"
        succeeds "the tray reboots meanwhile" "$lab" reboot "$tray"
        is "the reset was carried out to its end before" "$(on "$tray" "journalctl --quiet --boot=-1 \
                --identifier=slurm-epilog --output=cat _SYSTEMD_UNIT=gpuagentd.service | grep '^job $job:'")" \
                "job $job: GPUs 0,1,2,3 reset"
        within 120 "the job is over" job_is_over "$job"
        make_ready "$tray" >/dev/null 2>&1
        within 60 "and the tray is ready" tray_is_ready "$tray"
}

node_is_settled() {
        node_is "$tray" idle || node_is "$tray" drained
}

handover_is_off() {
        local job counts

        on "$tray" 'mkdir -p /etc/gpuagent/gpuagentd.yaml.d &&
                printf "handover: {reset: false}\n" >/etc/gpuagent/gpuagentd.yaml.d/off.yaml'
        succeeds "the agent takes the setting by a reload" on "$tray" 'systemctl reload gpuagentd'
        counts=$(reset_counts "$tray")
        job=$(submit -w "$tray" --gpus=2 'true')
        within 60 "a job ends" job_is_over "$job"
        is "nothing was reset" "$(reset_counts "$tray")" "$counts"
        within 20 "the node is idle" node_is "$tray" idle
        is "what the job had is not clean" "$(column "$tray" STATE | tr ' ' '\n' | grep -c dirty)" 2
        like "one line says why" "$(audit "$tray" "$job")" "^job $job: .*handover\.reset"
        on "$tray" 'rm /etc/gpuagent/gpuagentd.yaml.d/off.yaml && systemctl reload gpuagentd'
        job=$(submit -w "$tray" --gpus=4 'true')
        within 60 "with the setting gone a job ends" job_is_over "$job"
        is "and its GPUs are reset again" "$(audit "$tray" "$job")" "job $job: GPUs 0,1,2,3 reset"
}

begin
stopped_agent
killed_agent
restarted_agent
# The fabric is looked at after the reset, when one that stops at once would be gone.
on "$tray" 'gpuagent-emulate settle 0,1,2,3 3s'
restarted_services 'systemctl restart gpuagent-driver gpuagentd'
restarted_services 'systemctl restart gpuagentd gpuagent-driver'
restarted_services 'systemctl restart gpuagent-driver'
restarted_services 'systemctl stop gpuagent-driver gpuagentd'
restarted_services 'systemctl reload gpuagentd'
stopped_tray
handover_is_off
finish
