#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The site's checks, as gpuagent-driver runs them: what they are told, what their end means, that a late one is killed with
# all that it started, and whose files are not executed.
. "$(dirname "$0")/lib.sh"
config='handover: {checks-directory: /run/tray/checks.d, check-timeout: 1s}'
tray_options=(--bare)
in_tray

socket=/run/gpuagent-driver.socket
ask() { "$GPUAGENT_BUILD/tests/process/driver-client" $socket "$@"; }
# check NAME COMMANDS
check() {
        printf '#!/bin/sh\n%s\n' "$2" >"/run/tray/checks.d/$1.new"
        chmod 755 "/run/tray/checks.d/$1.new"
        mv "/run/tray/checks.d/$1.new" "/run/tray/checks.d/$1"
}
log_has() { grep -qE "$1" /run/tray/gpuagent-driver.log; }

start_driver
mapfile -t uuids < <(ask probe 5 | sed -n 's/^[0-9]* \(GPU-[^ ]*\).*/\1/p')
run_checks() { ask checks 20 "${uuids[0]}=slurm/27.0" "${uuids[1]}="; }

settled() { ask probe 5 "${uuids[0]}" | grep -q fabric=completed; }
eventually 5 "the fabric settles" settled
like "a list is needed" "$(ask checks 5)" '^InvalidArgs: '
like "an unknown GPU is said to be none" "$(ask checks 5 GPU-00000000-0000-0000-0000-000000000000=)" '^NoSuchGPU: '
is "without the folder everything passes" "$(run_checks)" "${uuids[0]} done "$'\n'"${uuids[1]} done "

mkdir /run/tray/checks.d
# shellcheck disable=SC2016 # for the check
check 10-tell 'env | sort >/run/tray/environment-$GPUAGENT_GPU_INDEX; pwd >/run/tray/folder; cat >/run/tray/input
        echo "$#" >/run/tray/arguments; ls /proc/self/fd | wc -l >/run/tray/descriptors; echo noise; exit 0'
is "a check that ends well passes" "$(run_checks)" "${uuids[0]} done "$'\n'"${uuids[1]} done "
is "it is told all about its GPU" "$(grep -v '^PWD=' /run/tray/environment-0)" "GPUAGENT_GPU_CLIQUE_ID=$(ask probe 5 "${uuids[0]}" | sed -n 's/.* clique=\([0-9]*\).*/\1/p')
GPUAGENT_GPU_CLUSTER_UUID=$(ask probe 5 "${uuids[0]}" | sed -n 's/.* cluster=\([^ ]*\).*/\1/p')
GPUAGENT_GPU_INDEX=0
GPUAGENT_GPU_PCI_BUS_ID=$(ask probe 5 "${uuids[0]}" | sed -n 's/^0 [^ ]* \([^ ]*\).*/\1/p')
GPUAGENT_GPU_UUID=${uuids[0]}
GPUAGENT_GPU_UUIDS=${uuids[0]},${uuids[1]}
GPUAGENT_TENANT=slurm/27.0
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
is "of the other, too" "$(grep -E '^GPUAGENT_(GPU_INDEX|TENANT)=' /run/tray/environment-1)" "GPUAGENT_GPU_INDEX=1
GPUAGENT_TENANT="
is "it runs in the root folder" "$(cat /run/tray/folder)" /
is "without arguments or input" "$(cat /run/tray/arguments /run/tray/input)" 0
is "or any descriptor of the service's" "$(cat /run/tray/descriptors)" 4

# shellcheck disable=SC2016 # for the check
check 20-fail 'echo first >&2; printf "links \033[31mdown\n\n" >&2; echo last on stdout; exit $((3 * (1 - GPUAGENT_GPU_INDEX)))'
check 30-after 'echo ran >>/run/tray/after; exit 1'
run_checks >/run/tray/results
like "a check that fails gives its last line as the reason" "$(sed -n 1p /run/tray/results)" \
        "^${uuids[0]} failed check 20-fail: links \\\\x1b\\[31mdown$"
like "the other GPU goes on, up to its own" "$(sed -n 2p /run/tray/results)" \
        "^${uuids[1]} failed check 30-after: it failed with exit code 1$"
is "and only that" "$(cat /run/tray/after)" ran

rm /run/tray/checks.d/*
check 40-warn.warn 'echo it is warm >&2; exit 1'
like "one that only warns changes nothing" "$(run_checks)" "^${uuids[0]} done "
eventually 1 "but the log has it" log_has "${uuids[0]}: check 40-warn.warn: it is warm; ${uuids[1]}: check 40-warn.warn: it is warm"

rm /run/tray/checks.d/*
check 50-late 'trap "" TERM; setsid sleep 1001 & sleep 1002 & sleep 1003'
within 4 "one that is late is given up in time" run_checks
like "and has failed" "$output" "^${uuids[0]} failed check 50-late: it did not end within 1\\.0 s"
is "with all that it started" "$(pgrep -x sleep)" ""

check 50-late 'setsid sleep 1001 & sleep 1002 & exit 0'
within 2 "one that leaves processes behind ends when it ends" run_checks
like "and passes" "$output" "^${uuids[0]} done "
is "but they are gone" "$(pgrep -x sleep)" ""

check 50-late 'kill -SEGV $$'
like "one that dies has failed" "$(run_checks)" "check 50-late: it died by signal 11"
echo '#!/nonexistent' >/run/tray/checks.d/50-late
like "as one that is no program" "$(run_checks)" "check 50-late: cannot execute it: No such file"
like "where there is no time, it is said" "$(ask checks 1 "${uuids[0]}=")" "check 50-late: there was no time left for it"

check 50-late 'exit 0'
# $1: what is wrong; the rest makes it so.
distrusted() {
        local claim=$1

        shift
        "$@"
        like "$claim is not executed" "$(run_checks)" \
                "^${uuids[0]} failed check 50-late: others than root may change it, or a folder on the way to it"
}
chown nobody /run/tray/checks.d/50-late
distrusted "a file of somebody else's" true
chown root /run/tray/checks.d/50-late
distrusted "a file that others may write" chmod 775 /run/tray/checks.d/50-late
chmod 755 /run/tray/checks.d/50-late
distrusted "a file in a folder that others may write" chmod 757 /run/tray/checks.d
chmod 755 /run/tray/checks.d
mkdir -m 777 /run/tray/open
mv /run/tray/checks.d/50-late /run/tray/open/
distrusted "a link to such a folder" ln -s /run/tray/open/50-late /run/tray/checks.d/50-late
mv /run/tray/open/50-late /run/tray/elsewhere
ln -sf /run/tray/elsewhere /run/tray/checks.d/50-late
like "a link to a file of root's is" "$(run_checks)" "^${uuids[0]} done "
rm /run/tray/elsewhere
like "one that leads nowhere fails" "$(run_checks)" "check 50-late: cannot execute it: No such file"
rm /run/tray/checks.d/50-late
touch /run/tray/checks.d/README
is "what is not executable is no check" "$(run_checks)" "${uuids[0]} done "$'\n'"${uuids[1]} done "

# shellcheck disable=SC2016 # for the check
check 60-client 'nvidia-smi -L >/dev/null || exit 1; exit 0'
sed -i "s,^#!/bin/sh,&\nPATH=$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH\nexport PATH LD_LIBRARY_PATH," /run/tray/checks.d/60-client
like "a check may use the GPU" "$(run_checks)" "^${uuids[0]} done "
is "and holds nothing afterwards" "$(ask holders 5)" ""

# example NAME SED...: that example, with the programs of this tray.
example() {
        local name=$1

        shift
        rm -f /run/tray/checks.d/*
        sed "$@" -e "s,^PATH=.*,," -e "s,^set -eu,&\nPATH=/run/tray/nccl:$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH\nexport PATH LD_LIBRARY_PATH," \
                "$here/../../hooks/checks.d/$name" >"/run/tray/checks.d/$name"
        chmod 755 "/run/tray/checks.d/$name"
}
links=$(ask probe 5 "${uuids[0]}" | sed -n 's/.* links=\([0-9]*\).*/\1/p')
clique=$(ask probe 5 "${uuids[0]}" | sed -n 's/.* clique=\([0-9]*\).*/\1/p')
example 10-nvlink -e "s/^expected_links=.*/expected_links=$links/" -e "s/^expected_clique=.*/expected_clique=$clique/"
like "the example about NVLinks passes" "$(run_checks)" "^${uuids[0]} done "
example 10-nvlink -e "s/^expected_links=.*/expected_links=$((links + 1))/"
like "and names how many are missing" "$(run_checks)" "failed check 10-nvlink: $links of $((links + 1)) NVLinks are active"
example 10-nvlink -e "s/^expected_links=.*/expected_links=$links/" -e "s/^expected_clique=.*/expected_clique=77/"
like "and the clique" "$(run_checks)" "failed check 10-nvlink: the GPU is in clique $clique instead of 77"
example 50-nccl-bandwidth
like "the example about bandwidth fails without its program" "$(run_checks)" "check 50-nccl-bandwidth: all_reduce_perf of nccl"
mkdir /run/tray/nccl
# shellcheck disable=SC2016 # for the program
printf '#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $*" >>/run/tray/nccl/told\necho "# Avg bus bandwidth    : 412.5"\n' >/run/tray/nccl/all_reduce_perf
chmod 755 /run/tray/nccl/all_reduce_perf
is "with enough of it, it passes" "$(run_checks)" "${uuids[0]} done "$'\n'"${uuids[1]} done "
is "after one run over all GPUs" "$(cat /run/tray/nccl/told)" "${uuids[0]},${uuids[1]} -b 1G -e 1G -g 2 -w 5 -n 20"
example 50-nccl-bandwidth -e 's/^floor=[0-9]*/floor=413/'
like "with less it fails, at the first GPU" "$(run_checks)" \
        "^${uuids[0]} failed check 50-nccl-bandwidth: all-reduce over 2 GPUs has 412\\.5 GB/s, less than 413"$'\n'"${uuids[1]} done "
rm -f /run/tray/checks.d/*

check 60-client 'sleep 1000'
ask checks 20 "${uuids[0]}=" >/dev/null &
eventually 2 "a check runs" pgrep -x sleep
within 2 "SIGTERM ends the service all the same" stop_service gpuagent-driver
none_sleeps() { ! pgrep -x sleep; }
eventually 2 "and the check" none_sleeps
finish
