# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the tests of the real programs on an emulated tray: TAP, bounded polls, and words for what is often asked. A test
# sets `config`, `emulation` and `gpus` where it wants other ones, calls in_tray, checks, and ends with `finish`.

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
config='' emulation='' gpus=4 tray_options=()
n_checks=0 n_failures=0

# Runs the test itself again, inside a tray.
in_tray() {
        local folder code=0

        [ -z "${IN_TRAY-}" ] || return 0
        folder=$(mktemp -d)
        printf '%s\n' "$config" >"$folder/config.yaml"
        printf '%s\n' "$emulation" >"$folder/emulation.yaml"
        IN_TRAY=yes "$here/../tray" --gpus "$gpus" --config "$folder/config.yaml" --emulation "$folder/emulation.yaml" \
                "${tray_options[@]}" -- "$(realpath "$0")" || code=$?
        rm -rf "$folder"
        exit $code
}

# Runs the test itself again, with a loopback of its own: tests run at the same time, and would take each other's ports.
in_own_network() {
        [ -z "${IN_OWN_NETWORK-}" ] || return 0
        # shellcheck disable=SC2016 # the inner shell's
        IN_OWN_NETWORK=yes exec unshare --net sh -c 'ip link set lo up && exec "$0"' "$(realpath "$0")"
}

# --- TAP

pass() {
        n_checks=$((n_checks + 1))
        echo "ok $n_checks - $1"
}

# $1: the claim; $2: what was seen.
fail() {
        n_checks=$((n_checks + 1)) n_failures=$((n_failures + 1))
        echo "not ok $n_checks - $1"
        [ -z "${2-}" ] || echo "# ${2//$'\n'/$'\n# '}"
}

skip() {
        n_checks=$((n_checks + 1))
        echo "ok $n_checks - $1 # SKIP $2"
}

# What sanitizers found in the daemons, if they were built with some.
sanitizer_reports() {
        grep -hE 'ERROR: [A-Za-z]*Sanitizer|runtime error:' /run/tray/*.log 2>/dev/null
}

finish() {
        local reports

        reports=$(sanitizer_reports) && fail "no sanitizer finds anything in the daemons" "$reports"
        if [ $n_failures -gt 0 ] && [ -d /run/tray ]; then
                echo "# gpuagentd said:" && tail -n 20 /run/tray/gpuagentd.log | sed 's/^/#   /'
                echo "# gpuagent-driver said:" && tail -n 20 /run/tray/gpuagent-driver.log | sed 's/^/#   /'
        fi
        echo "1..$n_checks"
        exit $((n_failures > 0))
}

# is CLAIM SEEN EXPECTED
is() {
        if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "seen: $2"$'\n'"expected: $3"; fi
}

# like CLAIM SEEN REGEX
like() {
        if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "seen: $2"$'\n'"expected: $3"; fi
}

unlike() {
        if [[ $2 =~ $3 ]]; then fail "$1" "seen: $2"$'\n'"not expected: $3"; else pass "$1"; fi
}

# exits CODE CLAIM COMMAND...; what it says on both streams is in $output afterwards.
exits() {
        local expected=$1 claim=$2 code=0

        shift 2
        output=$("$@" 2>&1) || code=$?
        if [ $code = "$expected" ]; then pass "$claim"; else fail "$claim" "$* exited with $code instead of $expected: $output"; fi
}

# holds CLAIM COMMAND...: the command succeeds.
holds() {
        local claim=$1

        shift
        if output=$("$@" 2>&1); then pass "$claim"; else fail "$claim" "not so: $* ($output)"; fi
}

# eventually SECONDS CLAIM COMMAND...: the command succeeds at some time within that.
eventually() {
        local end=$((${EPOCHREALTIME/./} + $1 * 1000000)) claim=$2

        shift 2
        until "$@" >/dev/null 2>&1; do
                [ "${EPOCHREALTIME/./}" -lt $end ] || { fail "$claim" "not so in time: $*" && return 0; }
                sleep 0.05
        done
        pass "$claim"
}

# within SECONDS CLAIM COMMAND...: the command ends in that time, however.
within() {
        local start=${EPOCHREALTIME/./} limit=$1 claim=$2

        shift 2
        output=$("$@" 2>&1)
        if [ $((${EPOCHREALTIME/./} - start)) -le $((limit * 1000000)) ]; then
                pass "$claim"
        else
                fail "$claim" "$* took $(((${EPOCHREALTIME/./} - start) / 1000)) ms: $output"
        fi
}

# --- the tray

# The object of a GPU (an index).
object() {
        busctl --json=short call org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager GetGPU s "$1" | jq -r '.data[0]'
}

# gpu INDEX PROPERTY
gpu() {
        busctl --json=short get-property org.gpuagent1 "$(object "$1")" org.gpuagent1.GPU "$2" | jq -rc .data
}

# manager PROPERTY
manager() {
        busctl --json=short get-property org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager "$1" | jq -rc .data
}

refresh() { busctl call org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager Refresh 'a{sv}' 0 >/dev/null; }

# The states of all GPUs, in a line.
states() {
        gpuagentctl list --json=short | jq -r '[.[].state] | join(" ")'
}

states_are() { [ "$(states 2>/dev/null)" = "$*" ]; }
state_is() { [ "$(gpu "$1" State)" = "$2" ]; }
driver_is() { [ "$(manager DriverState)" = "$1" ]; }
answers() { busctl --timeout=1 get-property org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager Version >/dev/null 2>&1; }

# Has a process hold GPU $1 until `kill $holder`. $2: what it calls itself.
hold() {
        cp "$(command -v sleep)" "/run/tray/${2:-holder}"
        "/run/tray/${2:-holder}" 1000 3<>"$GPUAGENT_EMULATION_DEVICES/nvidia$1" &
        holder=$!
        until [ -e "/proc/$holder/fd/3" ] && [[ $(readlink "/proc/$holder/exe") == /run/tray/* ]]; do sleep 0.01; done
}

release() {
        kill "$holder" 2>/dev/null
        wait "$holder" 2>/dev/null
        return 0
}

# How many resets the emulated driver has carried out on GPU $1, by its own count.
true_resets() { gpuagent-emulate status | sed -n "s/^ *$1  .* resets \([0-9]*\)$/\1/p"; }

main_pid() { cat "/run/tray/$1.main-pid"; }

# Ends a service as systemctl stop would, and starts it again with the options that tests/tray gives it.
stop_service() {
        local supervisor

        supervisor=$(cat "/run/tray/$1.pid")
        kill "$supervisor"
        while [ -e "/proc/$supervisor" ]; do sleep 0.01; done
}

start_driver() {
        "$GPUAGENT_BUILD/tests/process/supervise" --name gpuagent-driver --listen /run/gpuagent-driver.socket --owner gpuagent -- \
                "$(command -v gpuagent-driver)"
}

# With other options than those of tests/tray, if any.
start_agent() {
        "$GPUAGENT_BUILD/tests/process/supervise" --name gpuagentd --user gpuagent --notify "$@" -- "$(command -v gpuagentd)"
}

# A worker of the driver service does something just now.
worker_runs() { pgrep -P "$(main_pid gpuagent-driver)" >/dev/null; }
