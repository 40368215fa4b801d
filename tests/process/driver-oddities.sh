#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What a driver may do that is neither right nor quite wrong: let somebody in between two looks, change its answers while
# they are read, refuse one value of many, ask for what nobody knows yet.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 200ms}'
in_tray

action_is() { [ "$(gpu "$1" RecoveryAction)" = "$2" ]; }
counts() { echo "$(true_resets 0) $(true_resets 1)"; }
configure() { echo "$1" >/etc/gpuagent/gpuagentd.yaml.d/60-test.yaml && gpuagentctl reload; }

# --- a holder who comes after the agent has looked, and before nvidia-smi does; it refuses with 255, or with 1
cat >/run/tray/smi <<END
#!/bin/sh
if rm /run/tray/intrude 2>/dev/null; then
        sleep 1000 3<>$GPUAGENT_EMULATION_DEVICES/nvidia1 >/dev/null 2>&1 &
        echo \$! >/run/tray/intruder
        until [ -e /proc/\$!/fd/3 ]; do sleep 0.01; done
fi
exec $(command -v nvidia-smi) "\$@"
END
chmod +x /run/tray/smi
for dialect in nvidia ai-lab; do
        configure "driver: {smi: /run/tray/smi, reset-id: $([ $dialect = nvidia ] && echo bus-id || echo index)}"
        echo "dialect: $dialect" >>/etc/gpuagent/emulation.yaml
        gpuagent-emulate boot
        exits 0 "a tray that speaks $dialect is reset" gpuagentctl reset
        touch /run/tray/intrude
        exits 1 "but not when somebody has come in between" gpuagentctl reset -i 0,1
        like "who is named" "$output" "GPU 1 is held by sleep"
        is "the other GPU is clean, this one is not" "$(states)/$(counts)" "clean in-use clean clean/2 1"
        kill "$(cat /run/tray/intruder)"
        exits 0 "it is reset when they have left" gpuagentctl reset -i 1
        sed -i /^dialect/d /etc/gpuagent/emulation.yaml
done
configure '{}'
gpuagent-emulate boot
gpuagentctl --quiet reset

gpuagent-emulate fail-reset 2 --count 1
exits 1 "one reset of four fails" gpuagentctl reset
is "and is named, with nvidia-smi's words and what to do, in one sentence" "$output" "gpuagentctl: GPU 2 could not be \
reset: GPU 00000000:3A:00.0 did not complete reset successfully, and may be in an unstable state. Please reboot your \
system; reset it again, and reboot the tray if that fails, too"$'\n'"GPUs 0,1,3 reset"
unlike "alone" "$output" 'GPU [013] '
is "the others are clean" "$(states)" "clean clean quarantined clean"
exits 0 "as that one is after the next reset" gpuagentctl reset -i 2

# --- a clique that changes without a reset
gpuagent-emulate clique 0 5
eventually 3 "a clique that has changed by itself shows" eval '[ "$(gpuagentctl list --json=short | jq -c ".[0].clique")" = 5 ]'
exits 1 "and is not where the GPU belongs" gpuagentctl verify -i 0
exits 0 "until a reset" gpuagentctl reset -i 0

# --- a GPU off the bus
gpuagent-emulate lost 1
lost="gpuagentctl: GPU 1 is lost: the driver cannot reach it any more; reboot the tray"
exits 1 "a lost GPU is not reset" gpuagentctl reset -i 1
is "the refusal says what to do" "$output" "$lost"
exits 1 "nor booked, as long as it is lost" gpuagentctl acquire --tenant x/1 -i 1
is "which is said alike" "$output" "$lost"
exits 1 "nor clean" gpuagentctl verify -i 1
like "what it is said once" "$output" "gpuagentctl: GPU 1 is lost: the driver cannot reach it any more; gpuagentctl status"
gpuagent-emulate heal 1
gpuagentctl --quiet reset -i 1

# --- what asks for a reboot
gpuagent-emulate recovery 1 node-reboot
exits 1 "what asks for a reboot is not clean" gpuagentctl verify -i 1
is "and its cause brings what to do" "$output" "gpuagentctl: GPU 1 is quarantined: needs the recovery action \
node-reboot, which a GPU reset cannot replace; reboot the tray"
gpuagent-emulate heal 1
gpuagentctl --quiet reset -i 1

# --- actions beyond the first few
for action in 4:drain-and-reset 5:recover-imex-domain 9:9; do
        gpuagent-emulate recovery 3 "${action%:*}"
        eventually 3 "the action ${action#*:} is told" action_is 3 "${action#*:}"
        exits 1 "and such a GPU is not clean" gpuagentctl verify -i 3
done
for action in 6:bus-reset 7:system-reboot; do
        gpuagent-emulate recovery 3 "${action%:*}"
        eventually 3 "the action ${action#*:} is told" action_is 3 "${action#*:}"
        exits 1 "and no reset is taken for it" gpuagentctl reset -i 3
        is "the GPU is quarantined" "$(gpu 3 State)" quarantined
done
gpuagent-emulate heal 3
exits 0 "once the driver is content it is reset" gpuagentctl reset -i 3
gpuagent-emulate remap 0
eventually 3 "a row that waits for its remapping asks for a reset" action_is 0 drain-and-reset
exits 0 "which is as good as any" gpuagentctl reset -i 0
is "and then nothing is asked for" "$(gpu 0 RecoveryAction)" none

# --- one value of many cannot be read
gpuagent-emulate field-error 1 230 3
eventually 3 "a driver without recovery actions is told" action_is 1 unknown
exits 0 "its GPUs are reset all the same" gpuagentctl reset -i 1
gpuagent-emulate field-error 1 230 999
exits 1 "one that fails to say the action is not believed" gpuagentctl reset -i 1
is "the GPU is not clean" "$(gpu 1 State)" quarantined
gpuagent-emulate field-error 1 230 off
exits 0 "once it says it, the GPU is reset" gpuagentctl reset -i 1

# --- a list of processes that grows while it is read
gpuagent-emulate phantoms 2 3
hold 2
like "a list that grows has its holder" "$(gpuagentctl ps)" "2 +$holder +root +holder +- +20 MiB"
exits 1 "who is in the way" gpuagentctl reset -i 2
release
exits 0 "until the end" gpuagentctl reset -i 2

# --- MIG mode, and a driver that is loaded late
gpuagent-emulate mig 1 on
exits 1 "a GPU in MIG mode is not reset" gpuagentctl reset -i 1
like "and that is said" "$output" "MIG mode"
gpuagent-emulate mig 1 off
gpuagent-emulate init-error 9
eventually 3 "a driver that is not loaded is missing" driver_is missing
gpuagent-emulate init-error off
eventually 3 "until it is" driver_is ok
exits 0 "and the tray is reset" gpuagentctl reset
finish
