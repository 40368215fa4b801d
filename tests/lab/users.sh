#!/bin/bash
# SPDX-License-Identifier: MIT
# What the users of the cluster see, with our prolog and epilog in place: the views of its state, jobs and the GPUs that
# they get, accounting, maintenance, quotas, and why a job waits.
# shellcheck disable=SC2016,SC2317 # expanded in the jobs; functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

# The lines of a command of joe's, without the spaces that only line it up; and without the sockets of GPUs, which Slurm
# 26.05 keeps once slurmd has found the GPUs by itself.
lines() {
        joe "$1" 2>&1 | sed -E 's/[[:space:]]+/ /g; s/^ //; s/ $//; s/\(S:[0-9,-]+\)//'
}

# wait_reason JOB: why it waits.
wait_reason() {
        joe "squeue --noheader --jobs=$1 --format='%t %r'"
}

# %r may be more than one word, so the regex is quoted.
waits_for() {
        [[ $(wait_reason "$1") =~ ^PD\ $2$ ]]
}

views() {
        is "sinfo shows one partition with both trays" "$(lines sinfo | tail -n 1)" 'gpu* up infinite 2 idle sched-worker[1-2]'
        is "and each of them with its GPUs" "$(lines 'sinfo -N -o "%N %G %c %m %d %T"')" \
                $'NODELIST GRES CPUS MEMORY TMP_DISK STATE\nsched-worker1 gpu:gb200:4 4 7500 51200 idle\nsched-worker2 gpu:gb200:4 4 7500 51200 idle'
        is "scontrol shows what a tray has" \
                "$(lines 'scontrol show node sched-worker1' | grep -oE '(Gres|CfgTRES|AllocTRES)=.*|State=[A-Z]*' | xargs)" \
                'Gres=gpu:gb200:4 State=IDLE CfgTRES=cpu=4,mem=7500M,billing=4,gres/gpu=4 AllocTRES='
        is "joe has his association" "$(lines 'sacctmgr -n show assoc user=joe format=cluster,account,user,qos')" 'nvl8 lab joe normal'
        is "both trays are one block" "$(lines 'scontrol show topology' | grep -o '^BlockName=block001 BlockIndex=0 Nodes=[^ ]*')" \
                'BlockName=block001 BlockIndex=0 Nodes=sched-worker[1-2]'
        is "GPUs are accounted for" "$(lines 'scontrol show config' | grep -E '^(SelectType|GresTypes|TopologyPlugin|AccountingStorageEnforce|Epilog\[0\]|Prolog\[0\]) ' | LC_ALL=C sort)" \
                $'AccountingStorageEnforce = associations,limits,qos\nEpilog[0] = /usr/lib/gpuagent/slurm/epilog\nGresTypes = gpu\nProlog[0] = /usr/lib/gpuagent/slurm/prolog\nSelectType = select/cons_tres\nTopologyPlugin = topology/block'
}

# Every pair of GPUs has as many links for slurmd as the driver says.
links() {
        local driver slurm

        driver=$(on sched-worker1 'nvidia-smi topo -m' | sed -nE 's/^GPU[0-3]\t//p' | cut -f 1-4 | sed -E 's/ +X +/-1/; s/NV//g; s/\t/,/g')
        slurm=$(on sched-worker1 'slurmd -G 2>&1' | sed -nE 's/.* Links=([^ ]*) .*/\1/p')
        is "gres.conf has the links that nvidia-smi topo shows" "$slurm" "$driver"
        is "18 between any two GPUs" "$slurm" $'-1,18,18,18\n18,-1,18,18\n18,18,-1,18\n18,18,18,-1'
}

binding() {
        is "each of eight tasks gets a GPU of its own" \
                "$(joe "srun -N2 --ntasks-per-node=4 --gpus-per-task=1 bash -c 'echo \$(hostname) \$CUDA_VISIBLE_DEVICES' | sort")" \
                "$(printf 'sched-worker1 %s\n' 0 1 2 3; printf 'sched-worker2 %s\n' 0 1 2 3)"
        is "a job for two GPUs gets two" "$(joe "srun -N1 -w sched-worker1 --gpus-per-node=2 bash -c 'echo CVD=\$CUDA_VISIBLE_DEVICES'")" CVD=0,1
        is "nvidia-smi lists the tray's four all the same" \
                "$(joe "srun -N1 -w sched-worker1 --gpus-per-node=2 nvidia-smi -L | grep -c '^GPU [0-3]: NVIDIA GB200 (UUID: GPU-'")" 4
        is "a job for more GPUs than a tray has is refused at once" "$(lines 'sbatch --gpus-per-node=5 --wrap true')" \
                'sbatch: error: Batch job submission failed: Requested node configuration is not available'
}

hello='#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST: $SLURM_NTASKS tasks"
srun --label bash -c '\''gpu=$(nvidia-smi -i "$CUDA_VISIBLE_DEVICES" --query-gpu=name,uuid,fabric.cliqueId --format=csv,noheader)
echo "rank $SLURM_PROCID on $(hostname) CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES: $gpu"'\'' | sort -n'

across_the_domain() {
        local job output

        output=$(joe "printf '%s\n' $(printf %q "$hello") >hello.sbatch && sbatch --wait --output=hello.out hello.sbatch")
        like "a batch job over both trays is submitted" "$output" '^Submitted batch job [0-9]+$'
        job=${output##* }
        output=$(joe 'cat hello.out; rm -f hello.out hello.sbatch')
        is "it knows where it is" "$(head -n 1 <<<"$output")" "job $job on sched-worker[1-2]: 8 tasks"
        is "each rank tells its GPU and clique" \
                "$(grep -cE '^[0-7]: rank [0-7] on sched-worker[12] CUDA_VISIBLE_DEVICES=[0-3]: NVIDIA GB200, GPU-[0-9a-f-]{36}, 1$' <<<"$output")" 8
        is "no two have the same GPU" "$(grep -oE 'GPU-[0-9a-f-]{36}' <<<"$output" | sort -u | wc -l)" 8
        within 120 "it is over" job_is_over "$job"
        is "it is in the accounts with its GPUs" "$(joe "sacct -X -n -P -j $job -o JobName,User,Account,AllocTRES,State")" \
                'hello|joe|lab|billing=8,cpu=8,gres/gpu=8,mem=15000M,node=2|COMPLETED'
        is "each tray has handed its GPUs over" "$(for tray in "${trays[@]}"; do audit "$tray" "$job"; done)" \
                "$(printf "job $job: GPUs 0,1,2,3 reset\n%.0s" 1 2)"
}

maintenance() {
        local job

        controller 'scontrol update nodename=sched-worker2 state=drain reason="maintenance: BMC firmware"'
        like "sinfo -R has the reason, and who gave it" "$(lines 'sinfo -R' | tail -n 1)" '^maintenance: BMC fir root [0-9T:-]+ sched-worker2$'
        within 60 "the tray is drained" node_is sched-worker2 drained
        job=$(submit -J two-trays -N2 --gpus-per-node=4 'nvidia-smi -L')
        within 60 "a job for both trays waits" waits_for "$job" '.*(DOWN, DRAINED or reserved|ReqNodeNotAvail|Resources).*'
        is "the other tray works on" "$(joe 'srun --gpus=1 hostname')" sched-worker1
        is "the reason is still the administrator's" "$(node_reason sched-worker2)" 'maintenance: BMC firmware'
        controller 'scontrol update nodename=sched-worker2 state=resume'
        within 180 "resumed, the job runs and ends" job_is_over "$job"
        is "it has completed" "$(job_state "$job")" COMPLETED
}

quota() {
        local big small

        controller 'sacctmgr -i modify user joe set GrpTRES=gres/gpu=4' >/dev/null
        big=$(submit -J big -N2 --gpus-per-node=4 'sleep 5')
        small=$(submit -J small -N1 --gpus-per-node=4 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 60 "a job within the quota runs" job_is_running "$small"
        within 60 "one beyond it waits for that" waits_for "$big" AssocGrpGRES
        on sched-worker1 'touch /shared/go'
        within 120 "the first one ends" job_is_over "$small"
        is "the other still waits" "$(wait_reason "$big")" 'PD AssocGrpGRES'
        no_quota
        within 180 "without the quota it runs, too" job_is_over "$big"
        is "both have completed" "$(job_state "$big,$small" | sort -u)" COMPLETED
        on sched-worker1 'rm -f /shared/go'
}

reasons() {
        local first second third held

        first=$(submit -N2 --gpus-per-node=4 'while [ ! -e /shared/go ]; do sleep 0.05; done')
        within 60 "a job has all GPUs" job_is_running "$first"
        like "scontrol shows them as allocated" "$(lines 'scontrol show node sched-worker2')" 'AllocTRES=[^ ]*gres/gpu=4'
        is "squeue shows where" "$(lines 'squeue --me --noheader --format="%t %D %R"')" 'R 2 sched-worker[1-2]'
        second=$(submit --gpus=1 true)
        within 60 "one more waits for resources" waits_for "$second" '(Resources|Priority)'
        third=$(submit --gpus=1 "--dependency=afterok:$second" true)
        within 60 "one that depends on it, for that" waits_for "$third" Dependency
        held=$(submit --gpus=1 --hold true)
        within 60 "one that is held, for its release" waits_for "$held" JobHeldUser
        like "scontrol says so, too" "$(joe "scontrol show job $held")" 'JobState=PENDING Reason=JobHeldUser'
        joe "scontrol release $held"
        on sched-worker1 'touch /shared/go'
        for job in "$first" "$second" "$third" "$held"; do
                poll 180 job_is_over "$job"
        done
        is "all of them complete in the end" "$(job_state "$first,$second,$third,$held" | sort | uniq -c | xargs)" '4 COMPLETED'
        on sched-worker1 'rm -f /shared/go'
}

# The quota of a run that was cut short would be everybody's.
no_quota() {
        controller 'sacctmgr -i modify user joe set GrpTRES=gres/gpu=-1' >/dev/null
}

begin gate
no_quota
views
links
binding
across_the_domain
maintenance
quota
reasons
for tray in "${trays[@]}"; do
        within 180 "$tray is idle and clean" tray_is_ready "$tray"
done
cancel_all
finish
