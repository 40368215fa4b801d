#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The time of day is set under the daemons and their clients, by hours and by years, forwards and back: nothing gets
# clean by it and no lease is lost, no deadline moves, and what is told of times makes sense.
. "$(dirname "$0")/lib.sh"
config='
driver: {poll-interval: 500ms, probe-timeout: 2s}
handover: {busy-grace: 4s}
slurm: {drain: false, gpu-index: index}
quiesce: {command: /run/tray/monitoring}'
emulation='reset-time: 500ms'
tray_options=(--bare)
in_tray

hour=3600 day=86400 year=$((365 * 86400)) now=$EPOCHSECONDS

# Never cut short: it is mapped.
set_clock() { printf '%-23d\n' "$1" 1<>/run/tray/clock && ahead=$1; }
# What is started by this sees the clock that was set.
clocked() {
        LD_PRELOAD=$GPUAGENT_BUILD/tests/process/libset-clock.so \
                ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} "$@"
}
restart() { stop_service gpuagentd && stop_service gpuagent-driver && clocked start_driver && clocked start_agent; }
ctl() { clocked gpuagentctl "$@"; }

# near SECONDS: a time that was told is the one that is set, within two minutes.
near() {
        local off=$(($1 - EPOCHSECONDS - ahead))

        [ "${off#-}" -lt 120 ]
}
metrics_are_written() { near "$(sed -n 's/^gpuagent_last_update_timestamp_seconds{.*} \([0-9]*\).*/\1/p' /run/gpuagent/metrics.prom)"; }
reset_is_dated() { near "$(($(gpu "$1" LastResetTimestamp) / 1000000))"; }
reset_was_short() { [ "$(gpu "$1" LastResetDurationUSec)" -lt 60000000 ]; }
# What status tells of GPU 0's last reset, and of the time since when it is clean, is as long ago as $1 says.
ages_are() {
        local line='(since|reset): +[0-9]{4}(-[0-9]{2}){2} [0-9:]{8} [A-Z]+'

        like "status says so" "$(ctl status 0 | grep -E '^  (since|reset): ')" "^  $line \\($1\\)"$'\n'"  $line \\($1\\)$"
}
resetting() { state_is 0 resetting; }
told_of_holder() { [[ $(gpu 0 StateReason) == *"held by"* ]]; }
quiet() { [ -e /run/tray/quiet ]; }
loud() { [ ! -e /run/tray/quiet ]; }

# --- a machine without a battery begins in 1970, and learns better

cat >/run/tray/monitoring <<'END'
#!/bin/sh
case $1 in stop) touch /run/tray/quiet ;; start) rm -f /run/tray/quiet ;; esac
END
chmod 755 /run/tray/monitoring
set_clock $((100 - now))
clocked start_driver
clocked start_agent
exits 0 "in 1970 the tray is reset" ctl boot-reset
holds "which has its date" reset_is_dated 0
ages_are '[0-9]+ s ago'
set_clock 0
eventually 20 "the metrics have the new time" metrics_are_written
is "the GPUs are clean after 50 years" "$(states)" "clean clean clean clean"
exits 0 "which a look confirms" ctl verify
ages_are '[0-9]{5} days ago'

# --- at idle

exits 0 "a GPU is reset" ctl reset -i 0
exits 0 "a tenant books another" ctl acquire --tenant pod/x -i 3
before=$(gpu 0 LastResetTimestamp)
while read -r offset age; do
        set_clock "$offset"
        eventually 20 "at $offset s the metrics have the new time" metrics_are_written
        is "the states are the same" "$(states)" "clean clean clean in-use"
        exits 0 "a look confirms it" ctl verify -i 0,1,2
        is "the lease stands" "$(gpu 3 Tenant)" pod/x
        exits 1 "for anybody else" ctl acquire --tenant pod/y -i 3
        is "the last reset was when it was" "$(gpu 0 LastResetTimestamp)" "$before"
        ages_are "$age"
done <<END
$hour 6[0-9] min ago
-$hour ahead of the clock
$day 24 h ago
-$day ahead of the clock
$((20 * year)) 7300 days ago
$((100 - now)) ahead of the clock
END

# --- in what takes its time

for offset in $((5 * year)) -$((5 * year)) $day -$hour 0; do
        before=$(true_resets 0)
        ctl reset -i 0 >/run/tray/answer 2>&1 &
        caller=$!
        eventually 20 "a reset is under way" resetting
        set_clock "$offset"
        wait $caller && code=0 || code=$?
        is "set by $offset s in a reset the clock does no harm" "$code $(cat /run/tray/answer)" "0 GPUs 0 reset"
        holds "the reset was a true one" [ "$(true_resets 0)" -gt "$before" ]
        holds "and took no year" reset_was_short 0
        holds "and is dated by the new time" reset_is_dated 0
done

# reset_meets_holder CLAIM SECONDS: a reset that waits for a holder while the clock is set.
reset_meets_holder() {
        set_clock 0
        hold 0
        ctl reset -i 0 >/run/tray/answer 2>&1 &
        caller=$!
        eventually 20 "$1" told_of_holder
        set_clock "$2"
}
for offset in $year -$year; do
        reset_meets_holder "a reset waits for a holder" "$offset"
        release
        wait $caller && code=0 || code=$?
        is "set by $offset s the clock does not end its patience" "$code $(cat /run/tray/answer)" "0 GPUs 0 reset"

        reset_meets_holder "a reset waits for a holder who stays" "$offset"
        eventually 60 "it ends all the same" eval "! kill -0 $caller"
        wait $caller && code=0 || code=$?
        is "and fails" "$code" 1
        like "for the right reason" "$(cat /run/tray/answer)" "GPU 0 is held by holder"
        release
        exits 0 "without the holder the GPU is reset" ctl reset -i 0
done

for offset in $year -$year; do
        set_clock 0
        gpuagent-emulate settle 0 3s
        ctl reset -i 0 >/dev/null 2>&1 &
        caller=$!
        eventually 20 "a reset is under way, for long" resetting
        exits 1 "who does not wait that long is told so" ctl acquire --tenant pod/z -i 0 --timeout 1
        ctl acquire --tenant pod/z -i 0 --timeout 60 >/run/tray/answer 2>&1 &
        booking=$!
        set_clock "$offset"
        exits 1 "after $offset s, too" ctl acquire --tenant pod/z -i 0 --timeout 1
        wait $booking && code=0 || code=$?
        is "who waits gets the GPU" "$code $(gpu 0 Tenant)" "0 pod/z"
        wait $caller
        gpuagent-emulate settle 0 default
        exits 0 "and gives it back" ctl release --tenant pod/z
done

for offset in $year -$year; do
        set_clock 0
        gpuagent-emulate hang on
        eventually 20 "a driver hangs" worker_runs
        set_clock "$offset"
        eventually 20 "which is told after $offset s, too" driver_is unresponsive
        gpuagent-emulate hang off
        eventually 20 "and that it does no more" driver_is ok
        gpuagent-emulate recovery 1 gpu-reset
        eventually 20 "what changes in the driver is seen" eval '[ "$(gpu 1 RecoveryAction)" = gpu-reset ]'
        holds "and dated" near "$(($(gpu 1 StateTimestamp) / 1000000))"
        exits 0 "and cured" ctl reset -i 1
done

# --- with monitoring that was told to let go

for offset in $year -$year; do
        for name in gpuagentd gpuagent-driver; do
                set_clock 0
                hold 0
                ctl reset -i 0 >/dev/null 2>&1 &
                caller=$!
                eventually 20 "monitoring is quiet for a reset" quiet
                set_clock "$offset"
                kill -KILL "$(main_pid $name)"
                eventually 30 "$name dies, $offset s away, and it runs again" loud
                wait $caller
                release
                eventually 20 "the agent answers" answers
        done
        eventually 20 "a reset makes the GPU clean" ctl --quiet reset -i 0
done

# --- over restarts

for offset in $((2 * year)) -$((2 * year)) 0; do
        exits 0 "a job ends" ctl release --job 7 -i 1
        before=$(true_resets 1) dated=$(gpu 1 LastResetTimestamp)
        set_clock "$offset"
        restart
        is "a restart at $offset s loses nothing" "$(states)" "clean clean clean in-use"
        is "no lease" "$(gpu 3 Tenant)" pod/x
        is "and no date" "$(gpu 1 LastResetTimestamp)" "$dated"
        exits 0 "the job ends once more" ctl release --job 7 -i 1
        is "which is the same end" "$(true_resets 1)" "$before"
        gpuagentctl --quiet reset -i 1
done
exits 0 "the tenant gives back" ctl release --tenant pod/x
holds "with a reset by the clock as it is" reset_is_dated 3

# --- who watches

clocked "$(command -v gpuagentctl)" list --watch --json=short >/run/tray/lines &
watcher=$!
eventually 20 "a list is watched" test -s /run/tray/lines
for offset in -$year $year; do
        set_clock "$offset"
        : >/run/tray/lines
        ctl --quiet reset -i 2
        eventually 20 "at $offset s it shows a reset" grep -q '"state":"resetting"' /run/tray/lines
        eventually 20 "and its end" eval 'tail -n 1 /run/tray/lines | jq -e ".[2].state == \"clean\""'
done
kill $watcher
wait $watcher 2>/dev/null
is "in the end all are clean" "$(states)" "clean clean clean clean"
finish
