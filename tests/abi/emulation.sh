#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the emulated driver models, seen from outside: resets and who blocks them, memory that outlives a tenant, load, the
# fabric, faults, and that nothing is torn when clients die.
. "$(dirname "$0")/../process/lib.sh"
tray_options=(--bare)
emulation='settle-time: 300ms'
in_tray

query() { nvidia-smi -i "$1" --query-gpu="$2" --format=csv,noheader,nounits; }
query_is() { [ "$(query "$1" "$2")" = "$3" ]; }
at_least() { [ "$(query "$1" "$2" | cut -d. -f1)" -ge "$3" ]; }
at_most() { [ "$(query "$1" "$2" | cut -d. -f1)" -le "$3" ]; }
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

# --- who blocks a reset
hold 0
exits 255 "a GPU whose node is open is not reset" nvidia-smi --gpu-reset -i 0,1
like "the refusal names it" "$output" "00000000:18:00.0: In use by another client"
like "the other one is reset" "$output" "GPU 00000000:2A:00.0 was successfully reset."
is "and only that one" "$(true_resets 0)/$(true_resets 1)" "0/1"
like "the holder is listed" "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" "^$holder$"
release
exits 0 "it is reset when nobody has it" nvidia-smi -r -i 0

"$GPUAGENT_BUILD/tests/abi/nvml-client" stay >/run/tray/client &
client=$!
until [ -s /run/tray/client ]; do sleep 0.01; done
exits 255 "a client of NVML blocks a reset, too" nvidia-smi --gpu-reset -i 2
is "but is no compute process" "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" ""
kill $client
wait $client 2>/dev/null

exits 4 "somebody who is not root resets nothing" nobody "$(command -v nvidia-smi)" --gpu-reset -i 2
like "for want of permission" "$output" "Insufficient Permissions"
is "and nothing was reset" "$(true_resets 2)" 0

# --- a reset ends without the one who asked for it
sed -i 's/^reset-time:.*/reset-time: 500ms/' /etc/gpuagent/emulation.yaml
gpuagent-emulate boot
nvidia-smi --gpu-reset -i 3 >/dev/null &
smi=$!
eventually 2 "while it is being reset the GPU does not answer" query_is 3 memory.total "[GPU requires reset]"
kill -KILL $smi
wait $smi 2>/dev/null
eventually 2 "the reset ends by itself" query_is 3 memory.total 189471
is "and counts" "$(true_resets 3)" 1
start=${EPOCHREALTIME/./}
nvidia-smi --gpu-reset >/dev/null
took=$((${EPOCHREALTIME/./} - start))
holds "four GPUs take the time of one" [ $took -lt 900000 ]

# --- the tenant's memory
nobody "$(command -v gpuagent-emulate)" tenant write 0 "the weights"
is "the next tenant reads what the last one wrote" "$(nobody "$(command -v gpuagent-emulate)" tenant read 0)" "the weights"
is "on that GPU alone" "$(gpuagent-emulate tenant read 1)" ""
nvidia-smi --gpu-reset -i 0 >/dev/null
is "a reset clears it" "$(gpuagent-emulate tenant read 0)" ""

gpuagent-emulate tenant write 3 mapped
python3 -c '
import mmap, os, time
memory = os.open("/run/gpuagent-emulation/memory/3", os.O_RDONLY)
mapping = mmap.mmap(memory, 6, prot=mmap.PROT_READ)
os.close(memory)
os.closerange(3, 20)
print(flush=True)
time.sleep(1000)' >/run/tray/mapping &
client=$!
until [ -s /run/tray/mapping ]; do sleep 0.01; done
exits 255 "who has a GPU's memory mapped holds it" nvidia-smi -r -i 3
kill $client
wait $client 2>/dev/null
exits 0 "until the end" nvidia-smi -r -i 3

# --- the same as a CUDA program sees it
cuda=$GPUAGENT_BUILD/tests/abi/cuda-client
exits 0 "no call of CUDA succeeds with nothing for arguments" "$cuda" wrong
is "a program sees all GPUs" "$("$cuda" count)" 4
is "or those that it may" "$(CUDA_VISIBLE_DEVICES="3,$(query 1 uuid)" "$cuda" count)" 2
is "up to the first that is none" "$(CUDA_VISIBLE_DEVICES=0,9,1 "$cuda" count)" 1
is "or none" "$(CUDA_VISIBLE_DEVICES='' "$cuda" count)" -100
CUDA_VISIBLE_DEVICES=2 nobody "$cuda" write "the gradients"
is "fresh memory has what the last tenant left" "$(CUDA_VISIBLE_DEVICES=2 nobody "$cuda" read)" "the gradients"
CUDA_VISIBLE_DEVICES=2 "$cuda" hold >/run/tray/cuda &
client=$!
until [ -s /run/tray/cuda ]; do sleep 0.01; done
like "a program has its memory" "$(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader)" "^$client, 20 MiB$"
is "two at once have memory of their own" "$(CUDA_VISIBLE_DEVICES=2 "$cuda" read)" ""
exits 255 "and stand in the way of a reset" nvidia-smi -r -i 2
kill -KILL $client
wait $client 2>/dev/null
exits 0 "until they end" nvidia-smi -r -i 2
is "the reset clears it" "$(CUDA_VISIBLE_DEVICES=2 "$cuda" read)" ""

# --- load
is "an idle GPU" "$(query 1 utilization.gpu,power.draw,temperature.gpu)" "0, 140.00, 32"
gpuagent-emulate tenant load 1 --load 80 --memory 7850 &
tenant=$!
eventually 2 "load shows" query_is 1 utilization.gpu 80
is "and memory" "$(query 1 memory.used)" 7850
like "and the process with its memory" "$(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader)" \
        "^$tenant, 7850 MiB$"
like "for everybody" "$(nobody "$(command -v nvidia-smi)" --query-compute-apps=pid --format=csv,noheader)" "^$tenant$"
eventually 6 "power follows" at_least 1 power.draw 600
nvml=$GPUAGENT_BUILD/tests/abi/nvml-client
link_kib() { "$nvml" field "$1" 138 "${2:-4294967295}" | cut -d' ' -f3; }
links_move() { [ "$(link_kib 1)" -gt "$sum" ] && [ "$(link_kib 1 17)" -gt "$one" ]; }
sum=$(link_kib 1) one=$(link_kib 1 17)
eventually 2 "bytes go over its NVLinks" links_move
is "and over nobody else's" "$(link_kib 2)" 0
eventually 10 "temperature with a lag" at_least 1 temperature.gpu 36
kill $tenant
wait $tenant 2>/dev/null
is "load ends at once" "$(query 1 utilization.gpu,memory.used)" "0, 0"
holds "the GPU is still warm" at_least 1 temperature.gpu 34
eventually 6 "power falls" at_most 1 power.draw 200

# What a tenant may write is believed as far as the kernel confirms it.
nobody bash -c 'cd /run/gpuagent-emulation/clients && head -c 300 /dev/urandom >junk && ln -s /etc/shadow link &&
        mkfifo pipe && printf gpuaclnt >short'
exits 0 "litter among the registrations does no harm" nvidia-smi
is "nor counts" "$(query 0 memory.used)" 0

# --- the fabric
gpuagent-emulate partition remove default 2,3 >/dev/null
gpuagent-emulate partition create tray2 --id 7 2 >/dev/null
is "a partition change waits for a reset" "$(query 2 fabric.cliqueId,gpu_recovery_action)" "1, Reset"
exits 1 "a GPU is in one partition" gpuagent-emulate partition add tray2 0
exits 1 "an id is given once" gpuagent-emulate partition create other --id 7
nvidia-smi -r -i 2,3 >/dev/null
is "after the reset the fabric settles" "$(query 2 fabric.state,fabric.cliqueId)" "Not Started, N/A"
eventually 2 "then the clique is new" query_is 2 fabric.state,fabric.cliqueId,gpu_recovery_action "Completed, 7, None"
is "a GPU in no partition has none" "$(query 3 fabric.cliqueId)" 0
is "what a fabric controller would say" "$(gpuagent-emulate fabric-query | cut -d' ' -f2-)" \
        $'32766 default 1\n32766 default 1\n7 tray2 7\n0 - 0'
gpuagent-emulate partition remove default 0 >/dev/null
gpuagent-emulate boot
is "a boot takes partitions over, and what was pending" "$(gpuagent-emulate fabric-query | cut -d' ' -f2-)" \
        $'0 - 0\n32766 default 1\n7 tray2 7\n0 - 0'
eventually 2 "without a reset" query_is 0 fabric.state,fabric.cliqueId,gpu_recovery_action "Completed, 0, None"

# --- faults
gpuagent-emulate fail-reset 0 --count 1
exits 255 "a reset that fails" nvidia-smi -r -i 0
like "says so" "$output" "did not complete reset successfully"
is "and leaves the GPU in need of one" "$(query 0 gpu_recovery_action)" Reset
exits 0 "the next one works" nvidia-smi -r -i 0
gpuagent-emulate reset-lies 1 on
exits 0 "a reset that lies" nvidia-smi -r -i 1
is "leaves the GPU in need of one" "$(query 1 gpu_recovery_action)" Reset
gpuagent-emulate lost 2
is "a lost GPU has only its name" "$(query 2 index,memory.used)" "2, [GPU is lost]"
exits 15 "and no reset" nvidia-smi -r -i 2
gpuagent-emulate mig 3 on
exits 3 "a GPU in MIG mode is not reset" nvidia-smi -r -i 3
gpuagent-emulate heal
gpuagent-emulate link 0 3,4 down 2>/dev/null
gpuagent-emulate link 0 3 down
like "a link that is down shows" "$(nvidia-smi nvlink -s -i 0)" "Link 3: <inactive>"
like "in the topology" "$(nvidia-smi topo -m)" "NV17"
is "and in the health" "$(query 0 fabric.health.summary,fabric.health.bandwidth)" "Limited Capacity, Degraded"
gpuagent-emulate init-error 9 --count 1
exits 9 "a driver that is not loaded" nvidia-smi -L
like "says so" "$output" "couldn't communicate with the NVIDIA driver"
is "NVML as well, once" "$("$GPUAGENT_BUILD/tests/abi/nvml-client" init)" 9
exits 0 "and then it works" nvidia-smi -L
like "an Xid in the journal's export format" "$(gpuagent-emulate xid 0 79 --export)" \
        "_TRANSPORT=kernel.*NVRM: Xid \(PCI:0000:18:00\): 79,"
is "and the GPU is off the bus" "$(query 0 memory.used)" "[GPU is lost]"
gpuagent-emulate heal 0
gpuagent-emulate hang on
timeout 0.5 nvidia-smi -L &
hung=$!
sleep 0.7
holds "a hang stands SIGTERM" kill -0 $hung
gpuagent-emulate hang off
wait $hung 2>/dev/null
exits 0 "and ends" nvidia-smi -L

# --- the same and more as NVML has it
gpuagent-emulate heal
is "the recovery action is none" "$("$nvml" field 1 230)" "0 0 0"
gpuagent-emulate recovery 1 9
is "or a number that nobody knows yet" "$("$nvml" field 1 230)" "0 0 9"
gpuagent-emulate field-error 1 230 3
is "a field may fail alone" "$("$nvml" field 1 230)/$("$nvml" field 1 91)" "0 3 424242/0 0 18"
gpuagent-emulate blank on
is "a success may say nothing" "$("$nvml" power 1)" "0 424242"
gpuagent-emulate blank off
is "or the truth" "$("$nvml" power 0)" "0 140000"
hold 2
is "a process list" "$("$nvml" processes 2 0)" "7 1 0 1"
gpuagent-emulate phantoms 2 3
is "grows while it is read" "$("$nvml" processes 2 0)" "7 1 7 4"
is "which some room helps against" "$("$nvml" processes 2 3)" "7 1 0 1"
release
gpuagent-emulate lost 3
is "a lost GPU has no handle" "$("$nvml" handles)" "0 0 0 15"
gpuagent-emulate heal
gpuagent-emulate clique 0 5
is "a clique may change without a reset" "$(query 0 fabric.cliqueId)" 5
"$nvml" event 0 5000 >/run/tray/event &
client=$!
until [ -s /run/tray/event ]; do sleep 0.01; done
gpuagent-emulate xid 0 31
wait $client
is "an Xid is an event" "$(tail -n 1 /run/tray/event)" "0 8 31"
is "no event is a timeout" "$("$nvml" event 0 50 | tail -n 1)" "10 424242 0"

# --- nodes of the vendor's major, which nobody can open
rm -f "$GPUAGENT_EMULATION_DEVICES/nvidia1"
is "CUDA sees the GPUs that have a node" "$("$cuda" count)" 3
if mknod -m 666 "$GPUAGENT_EMULATION_DEVICES/nvidia1" c 195 1 2>/dev/null; then
        gpuagent-emulate boot
        is "boot leaves a node alone that is there" "$(stat -c %t "$GPUAGENT_EMULATION_DEVICES/nvidia1")" c3
        : >/run/tray/cuda
        CUDA_VISIBLE_DEVICES=1 "$cuda" hold >/run/tray/cuda &
        client=$!
        until [ -s /run/tray/cuda ]; do sleep 0.01; done
        is "CUDA works on it" "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" $client
        exits 255 "and is in the way of a reset by its registration" nvidia-smi -r -i 1
        kill -KILL $client
        wait $client 2>/dev/null
        exits 0 "until it ends" nvidia-smi -r -i 1
fi

# --- many at once, some of them dying
gpuagent-emulate heal
end=$((${EPOCHREALTIME/./} + ${STRESS_SECONDS:-3} * 1000000))
seed=${STRESS_SEED:-$RANDOM}
echo "# STRESS_SEED=$seed"
trouble() {
        RANDOM=$1
        while [ "${EPOCHREALTIME/./}" -lt $end ]; do
                case $((RANDOM % 8)) in
                0) timeout -s KILL 0.0$((RANDOM % 9 + 1)) nvidia-smi -r -i $((RANDOM % 4)) ;;
                1) timeout -s KILL 0.0$((RANDOM % 9 + 1)) gpuagent-emulate tenant load $((RANDOM % 4)) ;;
                2) timeout -s KILL 0.0$((RANDOM % 9 + 1)) gpuagent-emulate partition list ;;
                3) gpuagent-emulate xid $((RANDOM % 4)) 31 ;;
                4) nvidia-smi ;;
                5) timeout -s KILL 0.0$((RANDOM % 9 + 1)) gpuagent-emulate recovery $((RANDOM % 4)) none ;;
                6) CUDA_VISIBLE_DEVICES=$((RANDOM % 4)) timeout -s KILL 0.0$((RANDOM % 9 + 1)) "$cuda" hold ;;
                7) timeout -s KILL 0.0$((RANDOM % 9 + 1)) "$nvml" stay ;;
                esac >/dev/null 2>>/run/tray/trouble
        done
}
for worker in {1..16}; do trouble $((seed + worker)) & done
wait
exits 0 "the tray stands clients that die" nvidia-smi -q
unlike "and no sanitizer has complained" "$(cat /run/tray/trouble)" "Sanitizer|runtime error"
echo "1..$n_checks"
exit $((n_failures > 0))
