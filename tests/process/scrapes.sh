#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Handovers while somebody asks the driver all the time, as an exporter or a user's loop does.
. "$(dirname "$0")/lib.sh"
config='{slurm: {drain: false}, handover: {busy-grace: 10s}, driver: {poll-interval: 500ms}}'
emulation='reset-time: 20ms
settle-time: 10ms'
in_tray

hook() {
        env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SLURM_JOB_ID="$2" SLURMD_NODENAME=tray SLURM_JOB_RESTART_COUNT=0 \
                SLURM_JOB_GPUS="$3" "$(command -v gpuagentctl)" "slurm-$1"
}

touch /run/tray/scraping
while [ -e /run/tray/scraping ]; do nvidia-smi -q >/dev/null 2>&1; done &
scraper=$!
failures='' before=$(true_resets 0)
for job in {1..50}; do
        output=$(hook prolog "$job" $((job % 4)) 2>&1) || failures+="$output"$'\n'
        output=$(hook epilog "$job" $((job % 4)) 2>&1) || failures+="$output"$'\n'
done
rm /run/tray/scraping
wait $scraper
is "fifty jobs under a loop of nvidia-smi -q have no failure" "$failures" ''
holds "and true resets" [ "$(true_resets 0)" -ge $((before + 12)) ]
is "all GPUs are clean" "$(states)" "clean clean clean clean"
finish
