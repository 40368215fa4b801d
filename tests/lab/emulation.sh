#!/bin/bash
# SPDX-License-Identifier: MIT
# The emulated driver under what others wrote for the real one: a shell script as epilog, Slurm's own discovery
# of GPUs, the kernel's word in the journal, and what a tenant finds of the last one's.
# shellcheck disable=SC2317 # functions are called through the checks
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# change FILE COMMAND: with the command, in /etc/slurm of all hosts, until `restore FILE`.
change() {
        local host

        for host in sched-control "${trays[@]}"; do
                on "$host" "cd /etc/slurm && cp -np $1 $1.saved && $2"
        done
        restart_slurm 30
}

restore() {
        local host

        for host in sched-control "${trays[@]}"; do
                on "$host" "[ ! -e /etc/slurm/$1.saved ] || mv /etc/slurm/$1.saved /etc/slurm/$1"
        done
        restart_slurm 30
}

# A shell script around nvidia-smi, as sites have it; PLAIN_EPILOG=FILE tries another one.
write_epilog() {
        local host script=${PLAIN_EPILOG:-$(dirname "$0")/../bench/plain-epilog}

        for host in "${trays[@]}"; do
                "$lab" ssh "$host" 'cat >/etc/slurm/epilog.sh && chmod +x /etc/slurm/epilog.sh' <"$script"
        done
}

last_epilog() {
        on "$tray" 'journalctl --sync; journalctl -t slurm-epilog -o cat -n 1'
}

shell_script_is_an_epilog() {
        local before job

        write_epilog
        succeeds "a shell script becomes the epilog" change slurm.conf \
                "sed -i 's|^Epilog=.*|Epilog=/etc/slurm/epilog.sh|' slurm.conf"
        assign "$tray" 7 tray1 >/dev/null
        within 30 "a partition change waits" column_is "$tray" RESET 'pending pending pending pending'
        before=$(reset_counts "$tray")
        # shellcheck disable=SC2016 # expanded in the job
        job=$(joe "srun --immediate=60 -w $tray --gpus=4 bash -c 'echo \$SLURM_JOB_ID'")
        within 60 "its epilog ends" job_is_over "$job"
        is "it says that the GPUs were reset" "$(last_epilog)" "job $job: GPUs 0,1,2,3 reset"
        is "so they were" "$(reset_counts "$tray")" \
                "$(awk '{ for (i = 1; i <= NF; i++) $i++; print }' <<<"$before")"
        within 20 "and the new clique is in effect" column_is "$tray" CLIQUE '7 7 7 7'
        within 20 "the node is idle" node_is "$tray" idle
}

shell_script_is_refused() {
        local job

        hold "$tray" 0
        like "nvidia-smi lists the holder" \
                "$(on "$tray" 'nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv')" \
                $'^pid, process_name, used_memory \[MiB\]\n[0-9]+, /usr/bin/python3[.0-9]*, 20 MiB$'
        # shellcheck disable=SC2016 # expanded in the job
        job=$(joe "srun --immediate=60 -w $tray --gpus=1 bash -c 'echo \$SLURM_JOB_ID'")
        within 60 "the epilog of a job on a held GPU ends" job_is_over "$job"
        is "with nvidia-smi's words" "$(last_epilog)" "job $job: GPU reset of 0 failed: Unable to reset GPU \
00000000:18:00.0 because it's being used by some other process (e.g. CUDA application). Please first kill all processes \
using this GPU."$'\nSome GPUs could not be reset.'
        within 20 "the node is drained" node_is "$tray" drained
        is "by Slurm itself" "$(node_reason "$tray")" "Epilog error"
        let_go "$tray"
        is "by hand the reset goes through" "$(on "$tray" 'nvidia-smi --gpu-reset -i 0')" \
                $'GPU 00000000:18:00.0 was successfully reset.\nAll done.'
        succeeds "the usual epilog is back" eval 'resume "$tray"; restore slurm.conf'
        on "$tray" 'gpuagent-emulate partition assign 32766 default 0,1,2,3' >/dev/null
        succeeds "and the usual partition" on "$tray" 'gpuagentctl reset'
}

# Before 25.11 slurmd keeps NVML open then as long as it runs, and so do the real ones.
slurm_discovers_the_gpus() {
        local job version list='s/.*Gres Name=gpu \(Type=[^ ]*\) .* \(File=[^ ]*\).* \(Links=[^ ]*\).*/\1 \2 \3/p'

        succeeds "Slurm discovers GPUs by NVML" change gres.conf \
                "echo 'NodeName=sched-worker[1-2] AutoDetect=nvml' >gres.conf"
        # Their links go to switches, and Slurm counts only those from GPU to GPU.
        is "slurmd sees four of the right type, each with its node" \
                "$(on "$tray" 'slurmd -G 2>&1' | sed -n "$list")" \
                "Type=gb200 File=/dev/nvidia0 Links=-1,0,0,0
Type=gb200 File=/dev/nvidia1 Links=0,-1,0,0
Type=gb200 File=/dev/nvidia2 Links=0,0,-1,0
Type=gb200 File=/dev/nvidia3 Links=0,0,0,-1"
        like "and registers them" "$(controller "scontrol show node $tray")" 'Gres=gpu:gb200:4'
        job=$(submit -w "$tray" --gpus=3 true)
        within 90 "a job with three of them ends" job_is_over "$job"
        is "it has completed" "$(job_state "$job")" COMPLETED
        version=$(on "$tray" 'slurmd -V' | grep -oE '[0-9]+\.[0-9]+' | head -n 1)
        if ((${version/./} < 2511)); then
                like "slurmd itself is in the way of their reset" "$(audit "$tray" "$job")" \
                        "^job $job: GPU reset of .* failed: GPU . is held by slurmd \(pid [0-9]+, user root, unit slurmd.service\)"
        else
                like "and they are reset" "$(audit "$tray" "$job")" "^job $job: GPUs .* reset$"
        fi
        succeeds "the usual gres.conf is back" eval 'resume "$tray"; restore gres.conf'
        succeeds "and slurmd lets go" on "$tray" 'gpuagentctl reset'
        within 20 "the GPUs are clean" column_is "$tray" STATE 'clean clean clean clean'
}

# import_xid GPU XID [SECONDS]: by a clock that is off by so much. Only root can put a file there, and what is in it is as
# good as the journal's own.
import_xid() {
        on "$tray" "gpuagent-emulate xid $1 $2 --export |
                sed s/^__REALTIME_TIMESTAMP=.*/__REALTIME_TIMESTAMP=\$((\$(date +%s) + ${3-0}))000000/ |
                /usr/lib/systemd/systemd-journal-remote \
                        --output=/var/log/journal/\$(cat /etc/machine-id)/kernel-\$(date +%s%N).journal -"
}

kernel_tells_of_an_xid() {
        local xid=31 before

        before=$(property "$tray" 0 LastXid)
        ! property_is "$tray" 1 LastXid 31 || xid=43
        joe "srun --immediate=60 -w $tray logger -t kernel 'NVRM: Xid (PCI:0000:18:00): 94, pid=1, name=x'"
        on "$tray" "logger -t kernel -p kern.err 'NVRM: Xid (PCI:0000:18:00): 94, pid=1, name=x'"
        import_xid 1 $xid >/dev/null 2>&1
        within 20 "an Xid that the kernel has told reaches the agent" property_is "$tray" 1 LastXid $xid
        is "one that a user has logged does not" "$(property "$tray" 0 LastXid)" "$before"
}

# As the journal does when the clock was set: a new file, with times before or after all that it had.
xids_come_by_any_clock() {
        local day=86400 years=$((10 * 365 * 86400)) xid=100 offset

        for offset in $day 0 $years -$years 0; do
                xid=$((xid + 1))
                import_xid 2 $xid "$offset" >/dev/null 2>&1
                within 20 "an Xid of a clock that is $offset s off is heard, after those before" property_is "$tray" 2 LastXid $xid
        done
}

# as_job COMMAND: joe's, on GPU 0; its output, when the epilog has ended.
as_job() {
        local output

        output=$(joe "srun --immediate=60 -w $tray --gpus=1 bash -c 'echo \$SLURM_JOB_ID; $1'")
        poll 60 job_is_over "${output%%$'\n'*}"
        [[ $output != *$'\n'* ]] || printf '%s\n' "${output#*$'\n'}"
}

tenants_find_what_was_left() {
        local handover=/etc/gpuagent/gpuagentd.yaml.d/20-handover.yaml

        on "$tray" "echo 'handover: {reset: false}' >$handover && systemctl reload gpuagentd"
        as_job 'gpuagent-emulate tenant write 0 "the weights"'
        is "without a handover the next tenant reads what the last one left" \
                "$(as_job 'gpuagent-emulate tenant read 0')" "the weights"
        on "$tray" "rm $handover && systemctl reload gpuagentd"
        as_job 'gpuagent-emulate tenant write 0 "the gradients"'
        is "with it there is nothing" "$(as_job 'gpuagent-emulate tenant read 0')" ''
        within 20 "the GPUs are clean" column_is "$tray" STATE 'clean clean clean clean'
}

load_shows() {
        local csv='--format=csv,noheader,nounits'

        on "$tray" 'systemd-run --quiet --collect --unit=foreign \
                gpuagent-emulate tenant load 0 --load 80 --memory 7850'
        poll 20 on "$tray" "[ \$(nvidia-smi -i 0 --query-gpu=power.draw $csv | cut -d. -f1) -ge 800 ]"
        like "a tray at work is as in the reference" "$(on "$tray" 'nvidia-smi -i 0,1 \
                --query-gpu=index,utilization.gpu,memory.used,power.draw,temperature.gpu --format=csv')" \
                $'^index, utilization.gpu \[%\], memory.used \[MiB\], power.draw \[W\], temperature.gpu\n'\
$'0, 80 %, 7850 MiB, 8[0-9][0-9]\.[0-9]+ W, [3-6][0-9]\n1, 0 %, 0 MiB, 1[0-9][0-9].[0-9]+ W, 3[0-9]$'
        let_go "$tray"
        like "a job's line, too" "$(as_job "nvidia-smi -i 0 --query-gpu=name,uuid,fabric.cliqueId --format=csv,noheader")" \
                '^NVIDIA GB200, GPU-[0-9a-f-]{36}, 1$'
        is "every pair is connected by 18 links" "$(on "$tray" 'nvidia-smi topo -m' | grep -o 'NV18' | wc -l)" 12
}

clean_up() {
        for file in slurm.conf gres.conf; do
                on sched-control "[ ! -e /etc/slurm/$file.saved ]" || restore "$file"
        done
        on "$tray" 'rm -f /etc/gpuagent/gpuagentd.yaml.d/20-handover.yaml; systemctl reload gpuagentd'
}

begin
trap clean_up EXIT
shell_script_is_an_epilog
shell_script_is_refused
slurm_discovers_the_gpus
kernel_tells_of_an_xid
xids_come_by_any_clock
tenants_find_what_was_left
load_shows
finish
