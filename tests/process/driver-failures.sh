#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A driver that is not there, does not fit, comes late, numbers its GPUs anew, or cannot let go of their memory.
. "$(dirname "$0")/lib.sh"
config='{driver: {poll-interval: 200ms, reset-timeout: 1s}, handover: {busy-grace: 300ms}}'
in_tray

configure() { echo "$1" >/etc/gpuagent/gpuagentd.yaml.d/60-test.yaml && gpuagentctl reload; }
error_has() { [[ $(manager DriverError) == *"$1"* ]]; }
uuids() { gpuagentctl list --json=short 2>/dev/null | jq -r '[.[].uuid] | join(" ")'; }
all=$(uuids)

# --- no library
configure 'driver: {library: /run/tray/no-such-library.so}'
refresh 2>/dev/null
eventually 3 "a driver without a library is missing" driver_is missing
holds "and the library is named" error_has /run/tray/no-such-library.so
exits 1 "a reset fails" gpuagentctl reset -i 0
like "and names it, too" "$output" "no-such-library.so"
configure '{}'
eventually 3 "once it is there, all is well" driver_is ok
exits 0 "and a reset works" gpuagentctl reset

# --- library and module of two versions
gpuagent-emulate init-error 18
refresh 2>/dev/null
eventually 3 "a library that does not fit its module is a failure" driver_is failed
holds "and what to do is said" error_has "load the module anew or reboot"
exits 1 "a reset fails" gpuagentctl reset -i 0 --job 1
like "and says it, too" "$output" "load the module anew or reboot"
unlike "the GPU is not called clean" "$(gpu 0 State)" clean
is "the GPUs are known still" "$(uuids)" "$all"
gpuagent-emulate init-error off
eventually 3 "with the right module the driver is back" driver_is ok
exits 0 "and a reset works" gpuagentctl reset

# --- one that comes up at the third try
gpuagent-emulate init-error 999 --count 3
refresh 2>/dev/null
eventually 5 "a driver that fails at first and then works is taken up again" driver_is ok
exits 0 "and a reset works" gpuagentctl reset
is "all are clean" "$(states)" "clean clean clean clean"

# --- nvidia-smi that ignores SIGTERM
cat >/run/tray/smi <<'END'
#!/bin/bash
trap '' TERM HUP INT
while :; do read -rt 1 <> <(:); done
END
chmod +x /run/tray/smi
configure 'driver: {smi: /run/tray/smi}'
before=$(true_resets 1)
within 5 "an nvidia-smi that never ends and ignores SIGTERM has its deadline" gpuagentctl reset -i 1
like "which is said" "$output" "GPU 1 .*(time|answer)"
unlike "the GPU is not called clean" "$(gpu 1 State)" clean
is "it was not reset" "$(true_resets 1)" "$before"
no_smi() { ! pgrep -f ^/run/tray/smi && ! pgrep -f '/bin/bash /run/tray/smi'; }
eventually 3 "nothing of it is left" no_smi
configure '{}'
eventually 5 "with another one the GPU is reset" gpuagentctl --quiet reset -i 1
is "and clean" "$(gpu 1 State)" clean

# --- memory that could not be taken offline
status=/proc/driver/nvidia/gpus/0000:2a:00.0/numa_status
if mount -t tmpfs tmpfs /proc/driver 2>/dev/null && mkdir -p "${status%/*}"; then
        echo "Node:		2
Status:		online" >$status
        exits 0 "a GPU whose memory is a node of the system is reset" gpuagentctl reset -i 1
        sed -i s/online/offline_failed/ $status
        exits 1 "not so if that could not be taken offline" gpuagentctl reset
        like "which is said of this GPU" "$output" "^gpuagentctl: GPU 1 .*offline_failed.*reboot the tray"
        is "and it alone is not clean" "$(states)" "clean quarantined clean clean"
        exits 1 "nobody gets it" gpuagentctl acquire --tenant pod/x -i 1
        sed -i s/offline_failed/online/ $status
        exits 0 "after the cure it is reset" gpuagentctl reset -i 1
        umount /proc/driver
else
        skip "memory that could not be taken offline" "no folder can be put in the place of /proc/driver"
fi

# --- other numbers for the same GPUs, as after a module was loaded anew
exits 0 "a tenant has GPU 0" gpuagentctl acquire --tenant pod/x -i 0
read -ra old <<<"$all"
gpuagent-emulate status | sed -n 's/^ *[0-9]  GPU-[^ ]*  \([^ ]*\) .*/\1/p' | tac | paste -sd , | sed 's/.*/bus-ids: [&]/' \
        >/run/tray/renumbered
tr ' ' '\n' <<<"$all" | tac | paste -sd , | sed 's/.*/uuids: [&]/' >>/run/tray/renumbered
cat /run/tray/renumbered >>/etc/gpuagent/emulation.yaml
gpuagent-emulate boot
index_is() { [ "$(gpu "$1" Index)" = "$2" ]; }
eventually 3 "a GPU that has another number shows it" index_is "${old[0]}" 3
eventually 3 "as do the others" index_is "${old[3]}" 0
is "the tenant has the GPU that it had" "$(gpu "${old[0]}" Tenant)/$(gpu "${old[3]}" Tenant)" "pod/x/"
exits 1 "which is not reset under its new number either" gpuagentctl reset -i 3
like "but refused" "$output" "leased to pod/x"
before=$(true_resets 0)
exits 0 "the GPU that has its old number now is reset" gpuagentctl reset -i 0
is "and no other" "$(true_resets 0)" $((before + 1))
exits 0 "the tenant gives back what it had" gpuagentctl release --tenant pod/x
is "which is reset" "$(true_resets 3)" 1
is "and clean" "$(gpu "${old[0]}" State)" clean
finish
