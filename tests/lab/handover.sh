#!/bin/bash
# SPDX-License-Identifier: MIT
# The handover from end to end: a partition change that waits for a reset, the reset by hand, by the epilog,
# and its failure with the way out of it.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray1=sched-worker1
tray2=sched-worker2
all_pending='pending pending pending pending'
query_cliques='nvidia-smi --query-gpu=index,fabric.cliqueId --format=csv,noheader'

nvidia_smi_cliques() {
        on "$1" "$query_cliques"
}

recovery_actions() {
        on "$1" 'nvidia-smi -q' | sed -n 's/.*GPU Recovery Action *: //p' | sort -u
}

partition_change_waits_for_a_reset() {
        assign "$tray2" 7 tray2 >/dev/null
        within 30 "the new partition is seen" column_is "$tray2" PARTITION '7 7 7 7'
        is "the old clique is still in effect" "$(column "$tray2" CLIQUE)" '1 1 1 1'
        is "the list says that resets are pending" "$(column "$tray2" RESET)" "$all_pending"
        is "the driver has the old clique, too" "$(nvidia_smi_cliques "$tray2")" $'0, 1\n1, 1\n2, 1\n3, 1'
        is "the driver asks for a reset" "$(recovery_actions "$tray2")" GPU_RESET
        is "the bus says so" \
                "$(property "$tray2" 0 ResetPending) $(property "$tray2" 0 RecoveryAction)" 'true gpu-reset'
        is "the other tray is not concerned" "$(column "$tray1" RESET)" '- - - -'
}

reset_is_refused_while_a_process_holds_the_gpu() {
        local output rc=0 pid

        hold "$tray2" 0
        pid=$(on "$tray2" 'systemctl show --property=MainPID --value foreign')
        output=$(on "$tray2" 'gpuagentctl reset -i 0' 2>&1) || rc=$?
        is "the reset of a held GPU fails" "$rc" 1
        like "and names the holder" \
                "$output" "GPU 0 is held by python3[^ ]* \(pid $pid, user root, unit foreign\.service\)"
        is "the held GPU is as it was" \
                "$(column "$tray2" CLIQUE) $(property "$tray2" 0 ResetPending)" '1 1 1 1 true'
        let_go "$tray2"
}

reset_takes_the_new_clique() {
        succeeds "without the holder the tray is reset" on "$tray2" 'gpuagentctl reset'
        is "the new clique is in effect" "$(column "$tray2" CLIQUE)" '7 7 7 7'
        is "nothing is pending" "$(column "$tray2" RESET)" '- - - -'
        is "the GPUs are clean" "$(column "$tray2" STATE)" 'clean clean clean clean'
        is "the driver has the new clique" "$(nvidia_smi_cliques "$tray2")" $'0, 7\n1, 7\n2, 7\n3, 7'
        is "and asks for nothing" "$(recovery_actions "$tray2")" None
}

epilog_completes_a_partition_change() {
        local output job

        assign "$tray2" 32766 default >/dev/null
        within 30 "the change back is pending" column_is "$tray2" RESET "$all_pending"
        # shellcheck disable=SC2016 # expanded in the job
        output=$(joe "srun -w $tray2 --gpus=4 bash -c 'echo \$SLURM_JOB_ID; $query_cliques'")
        job=${output%%$'\n'*}
        is "joe's job sees the old clique" "${output#*$'\n'}" $'0, 7\n1, 7\n2, 7\n3, 7'
        within 60 "the epilog ends" job_is_over "$job"
        is "the journal has the audit line" "$(audit "$tray2" "$job")" "job $job: GPUs 0,1,2,3 reset"
        is "it is the last one under slurm-epilog" \
                "$(on "$tray2" 'journalctl -t slurm-epilog -o cat -n 1')" "job $job: GPUs 0,1,2,3 reset"
        is "the clique is the new one" "$(column "$tray2" CLIQUE)" '1 1 1 1'
        is "nothing is pending after the job" "$(column "$tray2" RESET)" '- - - -'
        within 20 "the node is idle again" node_is "$tray2" idle
}

failed_handover_drains_the_node() {
        local output job pid

        hold "$tray1" 0
        pid=$(on "$tray1" 'systemctl show --property=MainPID --value foreign')
        output=$(joe "srun -w $tray1 --gpus=1 bash -c 'echo \$SLURM_JOB_ID \$CUDA_VISIBLE_DEVICES'")
        like "the job itself works, on GPU 0" "$output" '^[0-9]+ 0$'
        job=${output%% *}
        within 90 "its epilog ends" job_is_over "$job"
        like "the journal names the process" "$(audit "$tray1" "$job")" \
                "^job $job: GPU reset of 0 failed: GPU 0 is held by python3[^ ]* \(pid $pid, user root, "
        within 20 "the node is drained" node_is "$tray1" drained
        like "with our reason" \
                "$(node_reason "$tray1")" "^gpuagent: GPU 0 held by python3[^ ]* \(pid $pid.*\), job $job$"
        is "the other tray goes on" "$(node_state "$tray2")" idle
        if [[ $(column "$tray1" STATE) != clean* ]]; then
                pass "the GPU is not clean"
        else
                fail "the GPU is not clean"
        fi
}

recovery_is_stop_reset_resume() {
        let_go "$tray1"
        succeeds "the GPU is reset once the process is gone" on "$tray1" 'gpuagentctl reset -i 0'
        succeeds "the node is resumed" controller "scontrol update nodename=$tray1 state=resume"
        is "the next job runs" "$(joe "srun -w $tray1 --gpus=1 hostname")" "$tray1"
        within 60 "the node is idle after it" node_is "$tray1" idle
}

begin
partition_change_waits_for_a_reset
reset_is_refused_while_a_process_holds_the_gpu
reset_takes_the_new_clique
epilog_completes_a_partition_change
failed_handover_drains_the_node
recovery_is_stop_reset_resume
finish
