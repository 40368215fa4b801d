#!/bin/bash
# SPDX-License-Identifier: MIT
# Both trays by one command from the login node, over the hosts' sshd: joe may look, an operator may act, and a tray
# without an agent is named.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"
begin

both='-H sched-worker1,sched-worker2'
as_operator='-H ops@sched-worker1,ops@sched-worker2'

# ends CODE COMMAND: as joe. What it says is in the file `said`.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
ends() {
        local code=0

        joe "$2" >"$said" 2>&1 || code=$?
        [[ $code == "$1" ]]
}
denied_twice() { ends 1 "$1" && [[ $(grep -c '^gpuagentctl: sched-worker[12]: .*' "$said") == 2 ]]; }

# An operator as a site has one: on the trays, with joe's key, in the group that may act.
for tray in "${trays[@]}"; do
        on "$tray" "id ops >/dev/null 2>&1 || useradd --home-dir /var/ops --create-home --shell /bin/bash --groups gpuagent-admin ops
                install -d -o ops -m 700 /var/ops/.ssh
                install -o ops -m 600 ~joe/.ssh/authorized_keys /var/ops/.ssh/"
done

is 'joe sees both trays' "$(joe 'gpuagentctl list sched-worker1 sched-worker2' | awk '{ print $1 }' | uniq -c | xargs)" \
        '1 TRAY 4 sched-worker1 4 sched-worker2'
is 'and gets one array' "$(joe "gpuagentctl $both --json=short list | jq -c '[.[] | .state] | unique'")" '["clean"]'
is 'and gets to know what is clean' "$(joe "gpuagentctl $both verify | sort | xargs")" \
        'sched-worker1: all GPUs are clean sched-worker2: all GPUs are clean'
succeeds 'joe may not reset' denied_twice "gpuagentctl $both reset"
succeeds 'with the code for it where it is one tray' ends 4 'gpuagentctl -H sched-worker1 reset'
succeeds 'nor see who holds the GPUs' denied_twice "gpuagentctl $both ps"
is 'and nothing was reset' "$(column sched-worker1 STATE), $(column sched-worker2 STATE)" \
        'clean clean clean clean, clean clean clean clean'

before=$(reset_counts sched-worker1 | cut -d ' ' -f 1) other=$(reset_counts sched-worker2 | cut -d ' ' -f 1)
is 'an operator resets a GPU of each' "$(joe "gpuagentctl $as_operator reset -i 0 | sort | xargs")" \
        'sched-worker1: GPUs 0 reset sched-worker2: GPUs 0 reset'
is 'and it is done, here' "$(reset_counts sched-worker1 | cut -d ' ' -f 1)" $((before + 1))
is 'and there' "$(reset_counts sched-worker2 | cut -d ' ' -f 1)" $((other + 1))
hold sched-worker2 1
succeeds 'a reset that one tray refuses' ends 1 "gpuagentctl $as_operator reset -i 1"
like 'is done on the other' "$(cat "$said")" 'sched-worker1: GPUs 1 reset'
like 'and says why it was refused' "$(cat "$said")" 'gpuagentctl: sched-worker2: GPU 1 is held by python3 .*foreign.service'
like 'the operator sees who it is' "$(joe "gpuagentctl $as_operator ps")" 'sched-worker2 .*foreign.service'
let_go sched-worker2
joe "gpuagentctl -q -H ops@sched-worker2 reset -i 1"
is 'the root of another host is root on the tray' \
        "$(controller 'gpuagentctl -H sched-worker1 acquire --tenant test/1 -i 3 && gpuagentctl -H sched-worker1 release --tenant test/1')" \
        $'GPUs 3 booked for test/1\ntest/1 has no GPUs any more'
like 'metrics come from the trays' "$(joe "gpuagentctl $both metrics" | grep -c '^gpuagent_driver_up{.*} 1')" '^2$'

on sched-worker2 'systemctl stop gpuagentd'
succeeds 'a tray without an agent' ends 1 "gpuagentctl $both list"
like 'is named' "$(cat "$said")" 'gpuagentctl: sched-worker2: gpuagentd is not running'
like 'and the other is there' "$(cat "$said")" 'sched-worker1 +3 '
succeeds 'alone it is the code for no agent' ends 5 'gpuagentctl list sched-worker2'
on sched-worker2 'systemctl start gpuagentd'
succeeds 'so is a host that is not there' ends 5 'gpuagentctl list sched-worker9'
succeeds 'so is one that lets nobody in' ends 5 'gpuagentctl list nobody@sched-worker1'
like 'which is told in the words of ssh' "$(cat "$said")" '^gpuagentctl: sched-worker1: .*Permission denied'
succeeds 'and one without gpuagent' ends 5 'gpuagentctl -H sched-control list'
is 'a tray needs no ssh to itself' "$(on sched-worker1 'PATH=/nowhere /usr/bin/gpuagentctl list sched-worker1 | tail -n +2 | wc -l')" 4

is 'gres.conf of the lab is what the trays say' "$(controller 'gpuagentctl gres | sort')" \
        "$(controller 'grep ^NodeName /etc/slurm/gres.conf | sed "s/sched-worker1,sched-worker2/sched-worker[1-2]/" | sort')"
on sched-worker1 'mkdir -p /run/gres && cp /etc/slurm/*.conf /run/gres/ && gpuagentctl gres >/run/gres/gres.conf'
is 'and slurmd takes it' "$(on sched-worker1 'slurmd -G -f /run/gres/slurm.conf 2>&1 | grep -c "Gres Name=gpu Type=gb200 .*Links="')" 4
on sched-worker1 'rm -r /run/gres'

for tray in "${trays[@]}"; do
        on "$tray" 'userdel --remove ops' 2>/dev/null
done
finish
