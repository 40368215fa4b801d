#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Monitoring that holds GPUs is stopped for a reset, and runs again afterwards, whatever has happened in between.
. "$(dirname "$0")/lib.sh"
emulation='reset-time: 1s'
config='{handover: {busy-grace: 300ms}, driver: {poll-interval: 500ms}, quiesce: {command: /run/tray/monitoring}}'
in_tray

# The site's command: the exporter below lets go of the GPUs while there is a file.
cat >/run/tray/monitoring <<'EOF'
#!/bin/sh
echo "$1" >>/run/tray/monitoring.log
case $1 in
stop)
        if [ -e /run/tray/stubborn ]; then echo "the exporter is stubborn" >&2 && exit 1; fi
        touch /run/tray/quiet
        while [ -e /run/tray/exporting ]; do sleep 0.05; done
        ;;
start) rm -f /run/tray/quiet ;;
esac
EOF
chmod 755 /run/tray/monitoring
cp "$(command -v sleep)" /run/tray/exporter
export_metrics() {
        local pid

        trap 'kill "$pid" 2>/dev/null; exit' TERM
        while :; do
                if [ ! -e /run/tray/quiet ]; then
                        touch /run/tray/exporting
                        /run/tray/exporter 1000 3<>"$GPUAGENT_EMULATION_DEVICES/nvidia0" 4<>"$GPUAGENT_EMULATION_DEVICES/nvidia1" &
                        pid=$!
                        while [ ! -e /run/tray/quiet ]; do sleep 0.05; done
                        kill $pid && wait $pid 2>/dev/null
                        rm /run/tray/exporting
                fi
                sleep 0.05
        done
}
export_metrics &
exporter=$!
exports() { [ -e /run/tray/exporting ] && pgrep -f ^/run/tray/exporter >/dev/null; }
resets() { state_is 0 resetting; }
eventually 5 "the exporter holds GPUs" exports

exits 0 "a reset is carried out all the same" gpuagentctl reset -i 0,1
eventually 5 "and the exporter runs again" exports
is "it was told once each" "$(tr '\n' ' ' </run/tray/monitoring.log)" "stop start "
is "and so was the journal" "$(sed -n 's/^MESSAGE=\(st[a-z]* .*reset\): .*/\1/p' /run/tray/journal | paste -sd ,)" \
        "stopped for a reset,started again after a reset"

gpuagent-emulate fail-reset 0 --count 1
exits 1 "after a reset that failed" gpuagentctl reset -i 0
eventually 5 "it runs, too" exports
touch /run/tray/stubborn
exits 1 "monitoring that does not stop" gpuagentctl reset -i 1
like "is named, with its words" "$output" "the exporter is stubborn"
holds "and runs still" exports
rm /run/tray/stubborn

for name in gpuagentd gpuagent-driver; do
        eventually 5 "the exporter runs" exports
        gpuagentctl reset -i 0 >/dev/null 2>&1 &
        caller=$!
        eventually 5 "a reset is under way, with the exporter quiet" test -e /run/tray/quiet
        eventually 5 "and begun" resets
        kill -KILL "$(main_pid $name)"
        wait $caller 2>/dev/null
        eventually 15 "$name dies in it, and the exporter runs again" exports
        eventually 5 "the agent answers" answers
done
eventually 10 "a reset makes the GPU clean" gpuagentctl reset -i 0
kill $exporter
wait $exporter 2>/dev/null
finish
