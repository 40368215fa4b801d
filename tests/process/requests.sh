#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Requests that name the wrong thing, and requests over GPUs that differ.
. "$(dirname "$0")/lib.sh"
in_tray

count() { gpu "$1" ResetCount; }
before="$(count 0) $(count 1)"

for id in 9 GPU-00000000-0000-0000-0000-000000000000 0000:ff:00.0; do
        exits 3 "no GPU $id" gpuagentctl reset -i "0,$id"
        like "is named" "$output" "$id"
done
for id in '' '0,' ',0' 'nvidia0' '-1'; do exits 2 "'$id' is wrong usage" gpuagentctl reset "--id=$id"; done
exits 2 "an unknown verb is wrong usage" gpuagentctl rest
exits 2 "an unknown option is wrong usage" gpuagentctl reset --force
is "and nothing was reset" "$(count 0) $(count 1)" "$before"

for id in 0 "$(gpu 0 UUID)" "$(gpu 0 PCIBusID)"; do exits 0 "a GPU is known as $id" gpuagentctl reset -i "$id"; done
is "each was one reset" "$(count 0)" $((${before% *} + 3))

# Overlapping requests queue; both are answered, and both GPUs are clean.
gpuagentctl --quiet reset -i 0,1,2 &
first=$!
gpuagentctl --quiet reset -i 1,2,3 &
second=$!
code=0
wait $first || code=$?
is "the first of two overlapping resets succeeds" "$code" 0
code=0
wait $second || code=$?
is "the second does, too" "$code" 0
is "all GPUs are clean" "$(states)" "clean clean clean clean"

# One GPU is held, one is lost, two are free.
hold 0
gpuagent-emulate lost 3
exits 1 "a reset of GPUs that differ fails" gpuagentctl reset
like "names the holder" "$output" "GPU 0 is held by holder \(pid $holder, user root"
like "and the lost GPU" "$output" "GPU 3"
is "the free ones are clean all the same" "$(states)" "in-use clean clean lost"
exits 1 "verify fails" gpuagentctl verify
like "for the held one" "$output" "GPU 0"
exits 0 "but not for the others" gpuagentctl verify -i 1,2
release
exits 0 "without the holder the reset goes through" gpuagentctl reset -i 0
is "and the GPU is clean" "$(gpu 0 State)" clean

# A visitor that leaves within the grace does no harm.
hold 1
(sleep 0.7 && kill "$holder") &
exits 0 "a holder that leaves in time is waited for" gpuagentctl reset -i 1
finish
