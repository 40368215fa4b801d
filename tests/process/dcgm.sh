#!/bin/bash
# SPDX-License-Identifier: MIT
#
# DCGM's host engine holds the GPUs, and is told to let go of them for a reset instead of being stopped. Engine and dcgmi
# are scripts that do what DCGM 4.6.0 does at "dcgmi set": idempotent, silent when all is well, failures on stdout and an
# exit code that is a negative number cut to a byte.
. "$(dirname "$0")/lib.sh"
program=$(realpath "$here/../../hooks/quiesce/dcgm")
config="{handover: {busy-grace: 300ms}, driver: {poll-interval: 500ms}, quiesce: {command: $program}}"
emulation='reset-time: 1s'
in_tray

# /usr/local is the machine's, but for us.
mount -t tmpfs -o mode=755 tmpfs /usr/local
mkdir /usr/local/bin
cat >/usr/local/bin/dcgmi <<'END'
#!/bin/bash
[ "$1" = set ] || exit 254
shift
if [ "$1" = --host ]; then echo "$2" >/run/tray/asked && shift 2; fi
case $1 in
--detach-driver | --attach-driver) ;;
*) echo "PARSE ERROR: Argument: $1" >&2 && exit 254 ;;
esac
[ ! -e /run/tray/fails ] || exit 253
pid=$(pgrep -x nv-hostengine) || {
        echo "Error: unable to establish a connection to the specified host: localhost"
        echo "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."
        exit 235
}
rm -f /run/tray/done
echo "${1%-driver}" >>/run/tray/told
kill -"$([ "$1" = --detach-driver ] && echo USR1 || echo USR2)" "$pid"
until [ -e /run/tray/done ]; do sleep 0.02; done
END
chmod 755 /usr/local/bin/dcgmi
cp "$(command -v bash)" /usr/local/bin/nv-hostengine
cat >/run/tray/engine <<'END'
attach() { exec 3<>"$GPUAGENT_EMULATION_DEVICES/nvidia0" 4<>"$GPUAGENT_EMULATION_DEVICES/nvidia1" && : >/run/tray/done; }
trap 'exec 3>&- 4>&-; : >/run/tray/done' USR1
trap attach USR2
attach
exec 5<>/run/tray/nothing
while :; do read -rt 1 -u 5; done # no other process: it would hold the GPUs, too
END
mkfifo /run/tray/nothing
start_engine() {
        rm -f /run/tray/done
        nv-hostengine /run/tray/engine &
        engine=$!
        until [ -e /run/tray/done ]; do sleep 0.02; done
}
holds_gpus() { [ "$(gpuagentctl ps --json=short | jq -c "[.[] | select(.pid == $engine) | .gpu]")" = '[0,1]' ]; }
told() { tr '\n' ' ' </run/tray/told; }

start_engine
holds "the host engine holds two GPUs" holds_gpus
before=$(true_resets 0)
exits 0 "which are reset all the same" gpuagentctl reset
is "all of them" "$(states)/$(true_resets 0)" "clean clean clean clean/$((before + 1))"
is "as it was told to let go, and to hold on" "$(told)" "--detach --attach "
eventually 10 "the same engine holds them again" holds_gpus
exits 0 "another reset does not find it in the way either" gpuagentctl reset -i 0

gpuagent-emulate fail-reset 0 --count 1
exits 1 "after a reset that fails" gpuagentctl reset -i 0
eventually 10 "it holds them, too" holds_gpus

gpuagentctl reset -i 0 >/dev/null 2>&1 &
caller=$!
let_go() { ! pgrep -x nv-hostengine >/dev/null || [ ! -e "/proc/$engine/fd/3" ]; }
eventually 20 "it lets go" let_go
kill -KILL "$(main_pid gpuagent-driver)"
wait $caller
eventually 20 "and after a death in between, too" holds_gpus
eventually 20 "a reset makes the GPU clean" gpuagentctl --quiet reset -i 0
eventually 20 "and leaves it with the engine" holds_gpus

touch /run/tray/fails
exits 1 "an engine that does not let go" gpuagentctl reset -i 0
like "is named, though dcgmi says nothing" "$output" 'dcgmi set --detach-driver: it ended with code 253'
rm /run/tray/fails
eventually 20 "and holds them" holds_gpus

sed -i 's/--detach-driver | --attach-driver)/none)/' /usr/local/bin/dcgmi
exits 1 "a DCGM that cannot do so" gpuagentctl reset -i 0
like "says so itself" "$output" 'PARSE ERROR: Argument: --detach-driver'
sed -i 's/^none)/--detach-driver | --attach-driver)/' /usr/local/bin/dcgmi
eventually 20 "what can is asked to hold on" eval '[[ $(told) == *"--attach " ]] && holds_gpus'

# --- without an engine

kill $engine
wait $engine 2>/dev/null
hold 0
exits 1 "where no engine runs, another holder is named" gpuagentctl reset -i 0
like "and not dcgmi" "$output" "GPU 0 is held by holder \(pid $holder"
release
exits 0 "without one the GPU is reset" gpuagentctl reset -i 0
exits 1 "one that is said to be elsewhere is asked there" "$program" unix:///run/tray/socket stop
is "by its address" "$(</run/tray/asked)" unix:///run/tray/socket
like "and missed" "$output" 'dcgmi set --detach-driver: Error: Unable to connect to host engine'
for arguments in '' halt 'a b stop'; do
        # shellcheck disable=SC2086 # several
        exits 2 "\"$arguments\" is wrong usage" "$program" $arguments
done
finish
