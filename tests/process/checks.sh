#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The site's own checks after a reset: what they say counts, and nothing of them is left.
. "$(dirname "$0")/lib.sh"
config='{handover: {busy-grace: 300ms, check-timeout: 1s}, driver: {poll-interval: 500ms}}'
in_tray

folder=/etc/gpuagent/checks.d
mkdir -p $folder
# check NAME: the script is on stdin.
check() { cat >"$folder/$1" && chmod 755 "$folder/$1"; }

check 10-note <<'EOF'
#!/bin/sh
env | sort | grep ^GPUAGENT_ >/run/tray/noted
EOF
refresh
exits 0 "a check that passes" gpuagentctl reset -i 1 --tenant slurm/70.0
like "knows its GPU" "$(tr '\n' ' ' </run/tray/noted)" "GPUAGENT_GPU_INDEX=1 .*GPUAGENT_GPU_UUID=$(gpu 1 UUID).*GPUAGENT_TENANT=slurm/70.0"

check 20-fail <<'EOF'
#!/bin/sh
echo "some words" >&2
[ "$GPUAGENT_GPU_INDEX" != 2 ] || { echo "bandwidth is 3 GB/s" >&2 && exit 1; }
EOF
exits 1 "one that fails, fails the handover" gpuagentctl reset -i 1,2
like "of its GPU, with its last words" "$output" "GPU 2 .*20-fail: bandwidth is 3 GB/s"
unlike "and not of the other one" "$output" "GPU 1"
is "which is quarantined" "$(gpu 1 State) $(gpu 2 State)" "clean quarantined"
exits 1 "and is not given to anybody" gpuagentctl acquire --tenant slurm/71.0 -i 2
exits 0 "verify alone runs no checks" gpuagentctl verify -i 0
mv $folder/20-fail $folder/20-fail.warn
exits 0 "one that only warns" gpuagentctl reset -i 2
is "lets the GPU pass" "$(gpu 2 State)" clean
like "and is logged" "$(cat /run/tray/gpuagent-driver.log)" "bandwidth is 3 GB/s"
rm $folder/20-fail.warn

check 30-late <<'EOF'
#!/bin/sh
exec sleep 100
EOF
exits 1 "verify --checks runs them" gpuagentctl verify --checks -i 0
like "and names what is late" "$output" "30-late: it did not end within"
holds "it is gone" bash -c '! pgrep -f "^sleep 100$"'
rm $folder/30-late

check 40-litter <<EOF
#!/bin/bash
exec 3<>$GPUAGENT_EMULATION_DEVICES/nvidia0
setsid sleep 200 >/dev/null 2>&1 &
EOF
exits 0 "what a check leaves behind is no obstacle" gpuagentctl reset -i 0
holds "it is ended" bash -c '! pgrep -f "^sleep 200$"'
rm $folder/40-litter

check 50-open <<'EOF'
#!/bin/sh
exit 0
EOF
chmod 777 $folder/50-open
exits 1 "a check that others may write is refused" gpuagentctl reset -i 0
like "with the reason" "$output" "50-open: others than root may change it"
rm $folder/50-open
exits 0 "without it the GPU is clean" gpuagentctl reset -i 0
finish
