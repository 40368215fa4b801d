#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The packages on other hosts than the lab's: Debian 12 with its systemd 252 and Slurm 22.05, one that is an unprivileged
# container, and one with a root file system that starts empty.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/helper.sh"

# install_packages FOLDER ROOT
install_packages() {
        cp "$1"/*.deb "$2/tmp/"
        chroot "$2" sh -c 'dpkg --install /tmp/*.deb && rm /tmp/*.deb'
}

# slurm_host FOLDER ROOT: one that is Slurm's controller and its only node.
slurm_host() {
        install_packages "$1" "$2"
        echo '10.107.112.2 tray' >"$2/etc/hosts"
        printf 'Name=gpu File=/dev/nvidia[0-3]\n' >"$2/etc/slurm/gres.conf"
        echo 'CgroupPlugin=cgroup/v1' >"$2/etc/slurm/cgroup.conf" # it takes no machine with both; nothing uses it here
        cat >"$2/etc/slurm/slurm.conf" <<-CONF
		ClusterName=one
		SlurmctldHost=tray
		SlurmUser=slurm
		AuthType=auth/munge
		StateSaveLocation=/var/lib/slurm/slurmctld
		SlurmdSpoolDir=/var/lib/slurm/slurmd
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		GresTypes=gpu
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		Prolog=/usr/lib/gpuagent/slurm/prolog
		Epilog=/usr/lib/gpuagent/slurm/epilog
		PrologFlags=Alloc,Contain
		SlurmdParameters=config_overrides
		NodeName=tray CPUs=4 RealMemory=1000 Gres=gpu:4
		PartitionName=gpu Nodes=tray Default=YES State=UP
	CONF
        chroot "$2" systemctl --quiet enable munge slurmctld slurmd
}

states() {
        in_host 'gpuagentctl --no-legend' | awk '{ print $9 }' | paste -sd ' '
}

# check_tray NAME: all that matters works.
check_tray() {
        local unit

        in_host_is "$1: the units run" \
                'systemctl is-active gpuagent-emulation gpuagent-driver.socket gpuagentd gpuagent-boot-reset' \
                $'active\nactive\nactive\nactive'
        in_host_is "$1: none of them has failed" 'systemctl list-units --failed --no-legend "gpuagent*"' ''
        is "$1: the boot has made the GPUs clean" "$(states)" 'clean clean clean clean'
        succeeds "$1: a reset works" in_host 'gpuagentctl reset'
        in_host 'systemd-run --quiet --unit=job sh -c "exec sleep infinity </dev/nvidia2"'
        like "$1: who holds a GPU is found" "$(in_host 'gpuagentctl reset -i 2 2>&1')" 'held by sleep .*job.service'
        in_host 'systemctl stop job'
        succeeds "$1: and when he is gone it is reset" in_host 'gpuagentctl reset -i 2'
        in_host_is "$1: users may look" 'setpriv --reuid nobody --clear-groups gpuagentctl --no-legend | wc -l' 4
        for unit in gpuagentd gpuagent-driver; do
                in_host "systemd-analyze security --no-pager $unit.service" | sed -n "s/.*exposure level/# | $1:/p"
        done
}

job_is_over() {
        in_host '! squeue --noheader | grep -q .'
}

node_is_idle() {
        [[ $(in_host 'sinfo --noheader --format %T') == idle ]]
}

begin_packages
packages=$lab_state/packages
mkdir "$packages"
host_packages sched-worker1 | xargs cp --target-directory="$packages"

host_new "$(bookworm_image)" slurm_host "$packages"
host_up
like "Debian 12: its systemd" "$(in_host 'systemctl --version')" '^systemd 252 '
check_tray "Debian 12"
within 60 "Debian 12: Slurm has a node" node_is_idle
like "Debian 12: its Slurm" "$(in_host 'sinfo --version')" '22\.05'
is "Debian 12: a job gets its GPUs" "$(in_host 'cd /tmp && srun --gpus=2 printenv CUDA_VISIBLE_DEVICES')" '0,1'
within 60 "Debian 12: and ends" job_is_over
like "Debian 12: with a reset" "$(in_host 'journalctl --sync; journalctl -o cat -u gpuagentd -t slurm-epilog')" \
        '^job [0-9]+: GPUs 0,1 reset$'
within 60 "Debian 12: the node takes work again" node_is_idle
in_host 'systemd-run --quiet --unit=stranger sh -c "exec sleep infinity </dev/nvidia0"'
in_host 'cd /tmp && srun --gpus=4 true' >/dev/null 2>&1 &
job=$!
within 90 "Debian 12: a GPU that a stranger holds drains it" in_host 'sinfo --noheader --format %T | grep -q drain'
like "Debian 12: with the reason" "$(in_host 'sinfo --noheader --list-reasons --format %E')" '^gpuagent: GPU 0 held by sleep'
in_host 'scancel --user=root'
wait "$job"

HOST_USERS=524288 host_new "$(image_path)" install_packages "$packages"
HOST_USERS=524288 host_up
like "unprivileged: root is somebody else" "$(in_host 'cat /proc/self/uid_map')" '^ +0 +524288 +65536$'
check_tray "unprivileged"

host_new "$(image_path)" install_packages "$packages"
host_up --volatile=yes
in_host_is "volatile: the root file system is in memory" 'findmnt --noheadings --output FSTYPE /' tmpfs
check_tray "volatile"
finish
