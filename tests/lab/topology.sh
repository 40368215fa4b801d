#!/bin/bash
# SPDX-License-Identifier: MIT
# Slurm's topology follows the cliques: gpuagent-topology.timer on the controller, from one block to two after a change
# of the partition, and back.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"
begin

file=/etc/slurm/topology.conf

blocks() { controller 'scontrol show topology' | sed 's/ BlockSize=.*//'; }
# blocks_are LINES: as Slurm has them.
blocks_are() { [[ $(blocks | grep -o 'BlockName.*') == "$1" ]]; }
service() { controller "systemctl start gpuagent-topology.service; systemctl show --property=Result --value gpuagent-topology.service"; }
reconfigured() { controller "grep -c 'read_slurm_conf\|reconfigure_slurm' /var/log/slurm/slurmctld.log"; }
one=$'BlockName=block001 BlockIndex=0 Nodes=sched-worker[1-2]'
two=$'BlockName=block001 BlockIndex=0 Nodes=sched-worker1\nBlockName=block002 BlockIndex=1 Nodes=sched-worker2'

is 'it is off until somebody enables it' "$(controller 'systemctl is-enabled gpuagent-topology.timer')" disabled
before=$(controller "cat $file")
is 'a file of somebody else' "$(service)" exit-code
is 'is left alone' "$(controller "cat $file")" "$before"
controller "cp $file /run/topology.before && rm $file"
controller 'systemd-run --quiet --unit=topograph sleep infinity'
service >/dev/null
like 'it steps aside for topograph' "$(controller 'journalctl --quiet --unit=gpuagent-topology.service --output=cat | tail -n 3')" \
        exec-condition
is 'and writes nothing' "$(controller "ls $file" 2>&1 | grep -c 'No such file')" 1
controller 'systemctl stop topograph; systemctl reset-failed gpuagent-topology.service'

controller 'systemctl enable --quiet --now gpuagent-topology.timer; systemctl start gpuagent-topology.service'
is 'one domain is one block' "$(controller "cat $file" | sed 1d)" '# block001=7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91.1
BlockName=block001 Nodes=sched-worker[1-2]
BlockSizes=2'
within 60 'which Slurm has read' blocks_are "$one"

assign sched-worker2 7 tenant-a
within 60 'the agent sees the new partition' column_is sched-worker2 RESET 'pending pending pending pending'
is 'before the reset nothing has changed' "$(service; blocks | grep -o 'BlockName.*')" $'success\n'"$one"
on sched-worker2 'gpuagentctl -q reset'
within 60 'within a minute after it there are two blocks' blocks_are "$two"
like 'the file has both cliques' "$(controller "cat $file")" '# block001=7f3c2a10-[0-9a-f-]+\.1.*# block002=7f3c2a10-[0-9a-f-]+\.7'
changed=$(controller "stat -c %i $file")
is 'and is not written again' "$(service; controller "stat -c %i $file")" "success
$changed"
job=$(submit --nodes=1 --gpus-per-node=4 true)
within 60 'jobs run in a block' job_is_over "$job"
is 'to their end' "$(job_state "$job")" COMPLETED

# A tray that reboots keeps its block.
on sched-worker2 'systemctl stop gpuagentd'
is 'a tray that says nothing' "$(service)" success
like 'is noted' "$(controller "cat $file")" '# sched-worker2: silent since '
succeeds 'and keeps its block' blocks_are "$two"
on sched-worker2 'systemctl start gpuagentd'
poll 30 on sched-worker2 'gpuagentctl list'
within 60 'until it speaks' eval '! controller "grep silent $file" >/dev/null'

# A file that slurmctld would not start with is not written.
controller "printf 'client: {topology: {block-sizes: [2]}}\n' >/etc/gpuagent/gpuagentctl.yaml.d/90-test.yaml"
is 'blocks below the base size' "$(service)" exit-code
like 'are refused' "$(controller 'journalctl --quiet --unit=gpuagent-topology.service --output=cat | tail -n 20')" \
        'with which slurmctld would not start'
succeeds 'and Slurm keeps what it has' blocks_are "$two"

# The same as features, which every version has.
controller "printf 'client: {topology: {format: features}}\n' >/etc/gpuagent/gpuagentctl.yaml.d/90-test.yaml
        scontrol update nodename=sched-worker1 AvailableFeatures=rack7 ActiveFeatures=rack7
        gpuagentctl topology -o /run/features.conf --reconfigure"
features() { controller "sinfo --noheader --Node --format='%N %f %b' | xargs"; }
is 'blocks are features besides others' "$(features)" \
        'sched-worker1 rack7,block001 rack7,block001 sched-worker2 block002 block002'
controller "rm /etc/gpuagent/gpuagentctl.yaml.d/90-test.yaml /run/features.conf
        for node in sched-worker1 sched-worker2; do
                scontrol update nodename=\$node AvailableFeatures= ActiveFeatures=
        done"

assign sched-worker2 32766 default
on sched-worker2 'gpuagentctl -q reset'
service >/dev/null
within 60 'and back there is one block' blocks_are "$one"

controller "systemctl disable --quiet --now gpuagent-topology.timer
        systemctl reset-failed gpuagent-topology.service
        mv /run/topology.before $file && scontrol reconfigure"
finish
