#!/bin/bash
# SPDX-License-Identifier: MIT
# The commands of gpuagent-fabric(7), in its order, as an operator types them on the login node: a partition change that
# waits for a reset, by hand and by a job's epilog, and a handover that fails.
# shellcheck disable=SC2016,SC2317 # expanded elsewhere; functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

page=$(dirname "$0")/../../cli/gpuagent-fabric.7.scd
cluster=7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91
gpu=/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_0

ran=$(mktemp)
trap 'rm -f "$ran"' EXIT

commands() {
        sed -n 's/^here  //p' "$page" | LC_ALL=C sort -u
}

# here COMMAND: as the page has it; by joe where it is for users. What it says on both streams.
here() {
        local who=root@login

        commands | grep -qxF -- "$1" || echo "the page does not have this command"
        printf '%s\n' "$1" >>"$ran"
        [[ $1 != srun* && $1 != sinfo* ]] || who=login
        on "$who" "$1" 2>&1
}

# rows: PARTITION CLIQUE RESET NVLINKS HEALTH of tray 2's GPUs, each once.
rows() {
        here "gpuagentctl list sched-worker2" | awk 'NR > 1 { print $4, $5, $6, $7, $8 }' | sort -u
}

rows_are() {
        [[ $(rows) == "$1" ]]
}

bmc_clique() {
        here "gpuagentctl redfish sched-worker2 $gpu | jq -c '.Oem.Nvidia.FabricClique'"
}

keep_old() {
        printf 'sched-worker2: GPUs 0,1,2,3 keep their old clique until reset: gpuagentctl -H sched-worker2 reset -i 0,1,2,3  %s' \
                "(GPUs must be idle; with Slurm the epilog resets a job's GPUs when it ends)"
}

change_waits() {
        is "tray 2 leaves the default partition" "$(here 'gpuagentctl partition remove default sched-worker2')" \
                "GPUs removed: 32766 default"$'\n'"$(keep_old)"
        is "and gets its own" "$(here 'gpuagentctl partition create tray2 --id 7 sched-worker2')" \
                "partition created: 7 tray2"$'\n'"$(keep_old)"
        within 30 "its GPUs are in it, and in their old clique" rows_are '7 1 pending 18 healthy'
        like "which is clique 1" "$(here 'gpuagentctl -H sched-worker2 clique')" "$cluster +1 +0,1,2,3\$"
        like "the driver wants a reset" "$(here 'gpuagentctl -H sched-worker2 status 0')" 'gpu-reset'
        is "the BMC has the old clique, too" "$(bmc_clique)" "{\"CliqueId\":1,\"ClusterUUID\":\"$cluster\"}"
        is "so has the driver's own program" "$(on root@login 'ssh sched-worker2 nvidia-smi --query-gpu=index,fabric.cliqueId --format=csv,noheader')" \
                $'0, 1\n1, 1\n2, 1\n3, 1'
}

reset_by_hand() {
        local output

        hold sched-worker2 0
        like "who holds a GPU is named" "$(here 'gpuagentctl -H sched-worker2 ps')" 'python3.*foreign\.service'
        output=$(here 'gpuagentctl -H sched-worker2 reset -i 0'; echo "exit code $?")
        like "it is not reset" "$output" 'GPU 0 is held by python3.*unit foreign\.service'
        like "and the command has failed" "$output" 'exit code 1$'
        let_go sched-worker2
        is "then all are" "$(here 'gpuagentctl -H sched-worker2 reset')" 'GPUs 0,1,2,3 reset'
        is "and in their new clique" "$(rows)" '7 7 - 18 healthy'
        is "as the BMC says" "$(bmc_clique)" "{\"CliqueId\":7,\"ClusterUUID\":\"$cluster\"}"
        like "the scheduler gets two blocks" "$(here 'gpuagentctl topology')" \
                "# block001=$cluster.1"$'\n'"BlockName=block001 Nodes=sched-worker1"$'\n'"# block002=$cluster.7"$'\n'"BlockName=block002 Nodes=sched-worker2"
}

reset_by_slurm() {
        local job

        like "the epilog is the agent's" "$(here 'ssh sched-worker1 cat /usr/lib/gpuagent/slurm/epilog')" 'gpuagentctl.* slurm-epilog'
        is "the partition goes" "$(here 'gpuagentctl partition delete tray2')" \
                "partition deleted; its GPUs are in no partition"$'\n'"$(keep_old)"
        is "its GPUs are in the default one again" "$(here 'gpuagentctl partition add default sched-worker2')" \
                "GPUs added: 32766 default"$'\n'"$(keep_old)"
        within 30 "but for their clique" rows_are '32766 7 pending 18 healthy'
        is "which a job still has" \
                "$(here 'srun -w sched-worker2 --gpus=4 nvidia-smi --query-gpu=index,fabric.cliqueId --format=csv,noheader')" \
                $'0, 7\n1, 7\n2, 7\n3, 7'
        job=$(joe 'sacct -n -X -o JobID | tail -n 1 | tr -d " "')
        within 90 "its epilog resets" job_is_over "$job"
        is "and says so" "$(here 'ssh sched-worker2 journalctl -t slurm-epilog -o cat -n 1')" "job $job: GPUs 0,1,2,3 reset"
        within 30 "the GPUs are in clique 1" rows_are '32766 1 - 18 healthy'
}

handover_fails() {
        hold sched-worker1 0
        is "a job gets a GPU that somebody holds" "$(here "srun -w sched-worker1 --gpus=1 bash -c 'echo \$CUDA_VISIBLE_DEVICES'")" 0
        within 120 "its epilog fails, and the node is drained" node_is sched-worker1 drained
        like "the journal says why" "$(here 'ssh sched-worker1 journalctl -t slurm-epilog -o cat -n 1')" \
                '^job [0-9]+: GPU reset of 0 failed: GPU 0 is held by python3 .*unit foreign\.service'
        like "so does Slurm" "$(here 'sinfo -R')" 'gpuagent: GPU 0 held.* sched-worker1'
        is "which has the other tray" "$(here 'sinfo -N -o "%N %T"' | xargs)" 'NODELIST STATE sched-worker1 drained sched-worker2 idle'
        let_go sched-worker1
        is "the GPU is reset" "$(here 'gpuagentctl -H sched-worker1 reset -i 0')" 'GPUs 0 reset'
        is "and the node resumed" "$(here 'scontrol update nodename=sched-worker1 state=resume')" ''
        within 60 "it takes work" node_is sched-worker1 idle
}

no_resets() {
        local tray job

        for tray in "${trays[@]}"; do
                on "$tray" "mkdir -p /etc/gpuagent/gpuagentd.yaml.d &&
                        echo 'handover: {reset: false}' >/etc/gpuagent/gpuagentd.yaml.d/90-test.yaml"
        done
        is "trays can do without resets" "$(here 'gpuagentctl -H sched-worker1,sched-worker2 reload')" ''
        job=$(submit -w sched-worker2 --gpus=1 true)
        within 60 "a job ends" job_is_over "$job"
        like "without one" "$(audit sched-worker2 "$job")" 'handover\.reset'
        for tray in "${trays[@]}"; do unconfigure "$tray"; done
        on root@login 'gpuagentctl -H sched-worker2 reset' >/dev/null
}

workflow() {
        here 'gpuagentctl partition remove default sched-worker2' >/dev/null
        like "a change can be waited for" "$(here 'gpuagentctl partition create tray2 --id 7 --wait sched-worker2')" \
                'sched-worker2: GPUs 0,1,2,3 reset, in clique 7'
        is "it is there then" "$(rows)" '7 7 - 18 healthy'
        here 'gpuagentctl partition delete tray2' >/dev/null
        here 'gpuagentctl partition add default sched-worker2' >/dev/null
        within 30 "what waits is in the metrics" pending_in_metrics
        on root@login 'gpuagentctl -H sched-worker2 reset' >/dev/null
        is "all is as it was" "$(rows)" '32766 1 - 18 healthy'
}

pending_in_metrics() {
        [[ $(here 'gpuagentctl -H sched-worker1,sched-worker2 metrics' | grep -c '^nvlink_gpu_reset_pending{.*} 1$') == 4 ]]
}

fabric() {
        is "all GPUs are in one partition" "$(here 'gpuagentctl partition' | tail -n +2 | tr -s ' ')" \
                $'32766 default sched-worker1 0,1,2,3\n32766 default sched-worker2 0,1,2,3'
        is "the domain is one" "$(here 'gpuagentctl fabric domain' | tail -n +2 | xargs)" "$cluster 2 8 32766 1 0 144 0 healthy"
        is "its trays are in their slots" "$(here 'gpuagentctl fabric trays' | tail -n +2 | awk '{ print $1, $2 }' | xargs)" \
                '1 sched-worker1 2 sched-worker2'
        on sched-worker2 'gpuagent-emulate link 3 17 down'
        within 30 "a link that is down is named" link_is_down
        on sched-worker2 'gpuagent-emulate link 3 17 up'
}

link_is_down() {
        [[ $(here 'gpuagentctl fabric links' | grep -w down | xargs) == 'sched-worker2 3 17 down -' ]]
}

begin
change_waits
reset_by_hand
reset_by_slurm
handover_fails
no_resets
workflow
fabric
is "every command of the page has been run" "$(LC_ALL=C sort -u "$ran")" "$(commands)"
for tray in "${trays[@]}"; do
        within 120 "$tray is idle and clean" tray_is_ready "$tray"
done
finish
