#!/bin/bash
# SPDX-License-Identifier: MIT
# The audit in the journal: fields that cannot be forged, and an explanation in the catalog.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

tray=sched-worker1

# field JOB NAME: of the job's audit line; a repeated one on several lines.
field() {
        on "$tray" "journalctl --quiet --boot --identifier=slurm-epilog --output=export MESSAGE='$1'" |
                sed -n "s/^$2=//p"
}

begin
job=$(submit -w "$tray" --gpus=4 'true')
within 60 "a job ends" job_is_over "$job"
message="job $job: GPUs 0,1,2,3 reset"
is "the audit line is there" "$(audit "$tray" "$job")" "$message"
is "it is the agent's" "$(field "$message" _SYSTEMD_UNIT)" gpuagentd.service
is "it names the tenant" "$(field "$message" GPUAGENT_TENANT)" "slurm/$job.0"
is "one field a GPU" "$(field "$message" GPUAGENT_GPU | grep -c .)" 4
like "it has the duration" "$(field "$message" GPUAGENT_DURATION_USEC)" '^[0-9]+$'
like "it has a message id" "$(field "$message" MESSAGE_ID)" '^[0-9a-f]{32}$'
id=$(field "$message" MESSAGE_ID)
is "by which all handovers are found" "$(on "$tray" "journalctl --quiet --boot --output=cat MESSAGE_ID=$id" | tail -n 1)" \
        "$message"
explained=$(on "$tray" "journalctl --quiet --boot --catalog --identifier=slurm-epilog MESSAGE='$message'")
like "the catalog explains it" "$explained" "Subject: GPUs were handed over"

is "the log level can be asked for" "$(on "$tray" 'systemctl service-log-level gpuagentd')" info
succeeds "and set" on "$tray" 'systemctl service-log-level gpuagentd debug'
is "which is in force then" "$(on "$tray" 'systemctl service-log-level gpuagentd')" debug
on "$tray" 'systemctl service-log-level gpuagentd info'
finish
