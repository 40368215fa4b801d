#!/bin/bash
# SPDX-License-Identifier: MIT
#
# gpuagent-driver alone, asked by its own protocol: what becomes of its workers when it is stopped, dies, or gets stuck.
. "$(dirname "$0")/lib.sh"
config='driver: {smi: /run/tray/smi}'
tray_options=(--bare)
in_tray

socket=/run/gpuagent-driver.socket
ask() { "$GPUAGENT_BUILD/tests/process/driver-client" $socket "$@"; }

# smi COMMANDS: what nvidia-smi does from now on.
smi() {
        printf '#!/bin/sh\necho "$@" >/run/tray/smi-arguments\nenv >/run/tray/smi-environment\n%s\n' "$1" >/run/tray/smi.new
        chmod 755 /run/tray/smi.new
        mv /run/tray/smi.new /run/tray/smi
}
reset_words='echo "GPU 00000000:18:00.0 was successfully reset."'
worker_runs() { pgrep -x "gpuagent-$1"; }

exits 2 "an unknown option is wrong usage" gpuagent-driver --restart
smi "$reset_words"
start_driver
mapfile -t uuids < <(ask probe 5 | sed -n 's/^[0-9]* \(GPU-[^ ]*\).*/\1/p')
is "a probe finds the GPUs" "${#uuids[@]}" 4
is "a probe of one is of one" "$(ask probe 5 "${uuids[2]}" | grep -c GPU-)" 1
like "an unknown GPU is said to be none" "$(ask probe 5 GPU-00000000-0000-0000-0000-000000000000)" '^NoSuchGPU: '
like "a UUID must be one" "$(ask probe 5 "; reboot")" '^InvalidArgs: '
like "a reset needs to be told what" "$(ask reset 5)" '^InvalidArgs: '

like "a reset is done when nvidia-smi did it" "$(ask reset 5 "${uuids[0]}")" " done GPU 00000000:18:00.0 was successfully"
like "and says how the GPU looks after it" "$(ask reset 5 "${uuids[0]}")" "0 ${uuids[0]} .* action=none processes=0 "
is "it was told the GPU by its bus id" "$(cat /run/tray/smi-arguments)" "--gpu-reset -i 00000000:18:00.0"
is "in a clean environment" "$(grep -cvE '^(PATH=/usr/local/sbin:|LC_ALL=C$|PWD=)' /run/tray/smi-environment)" 0

gpuagent-emulate recovery 0 gpu-reset
like "a reset that leaves a recovery action behind says so" "$(ask reset 5 "${uuids[0]}")" " action=gpu-reset "
gpuagent-emulate recovery 0 bus-reset
like "one that leaves a graver one has failed" "$(ask reset 5 "${uuids[0]}")" " failed recovery action bus-reset"
is "and brings no look" "$(ask reset 5 "${uuids[0]}" | grep -c 'processes=')" 0
gpuagent-emulate heal

smi 'trap "" TERM; sleep 1000 & sleep 1000'
within 2 "a reset that takes too long is given up in time" ask reset 1 "${uuids[0]}"
like "and said to be unresponsive" "$output" '^Unresponsive: .*reset'
eventually 1 "with all that it ran" test ! -e /run/gpuagent-driver/worker

smi "sleep 1; $reset_words"
ask reset 10 "${uuids[0]}" >/run/tray/answer &
caller=$!
eventually 2 "a reset runs" worker_runs reset
like "what waits behind it has its own deadline" "$(ask probe 0.2)" '^Unresponsive: the GPU driver is still busy with a reset'
stop_service gpuagent-driver
wait $caller
like "a service that is stopped lets a reset end" "$(cat /run/tray/answer)" ' done '

start_driver
smi "sleep 1; echo ended >/run/tray/ended"
ask reset 10 "${uuids[0]}" >/dev/null &
eventually 2 "another reset runs" worker_runs reset
kill -KILL "$(main_pid gpuagent-driver)"
eventually 2 "the service is started again" ask probe 5
is "and began nothing before the reset of the one that died had ended" "$(cat /run/tray/ended)" ended

if [ ! -c /dev/fuse ] || [ "$(id -u)" != 0 ]; then
        skip "nvidia-smi gets stuck" "no /dev/fuse"
        finish
fi
mkdir /run/tray/stuck
coproc hang_fs { exec "$GPUAGENT_BUILD/tests/process/hang-fs" /run/tray/stuck 4096; }
read -r -t 5 _ <&"${hang_fs[0]}"
cp /etc/gpuagent/gpuagentd.yaml.d/50-test.yaml /run/tray/config
sed -i 's,/run/tray/smi,/run/tray/stuck/hang,' /etc/gpuagent/gpuagentd.yaml.d/50-test.yaml

program() { pgrep -x gpuagent-reset | tail -n 1; }
within 2 "a stuck program is given up in time" ask reset 1 "${uuids[0]}"
pid=$(program)
holds "it outlives its worker" [ "$(cut -d' ' -f3 "/proc/$pid/stat")" = D ]
sleep 2.2
for verb in probe holders; do
        within 1 "a $verb is refused at once" ask $verb 5
        like "naming the culprit" "$output" "^Unresponsive: .* reset \\(pid $pid\\) cannot be killed"
done
kill -KILL "$(main_pid gpuagent-driver)"
sleep 2.5
like "a service that was started again knows it" "$(ask probe 5)" "^Unresponsive: .* reset \\(pid $pid\\) cannot be killed"

cp /run/tray/config /etc/gpuagent/gpuagentd.yaml.d/50-test.yaml
# shellcheck disable=SC2154 # coproc sets it
kill "$hang_fs_PID"
eventually 3 "it heals by itself" ask probe 5
within 2 "SIGTERM ends the idle service" stop_service gpuagent-driver
finish
