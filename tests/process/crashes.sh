#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The daemons die in the middle of a reset. What comes out may be a failure, and is never a clean GPU that is not.
. "$(dirname "$0")/lib.sh"
emulation='reset-time: 1s'
config='driver: {poll-interval: 500ms}'
in_tray

resetting() { state_is 0 resetting; }
clean_again() { gpuagentctl --quiet reset -i 0 2>/dev/null && state_is 0 clean; }

# A GPU is clean only if the emulated driver has carried out a reset since it became dirty.
never_falsely_clean() {
        local before=$1 i

        for i in {1..30}; do
                if [ "$(gpu 0 State 2>/dev/null)" = clean ] && [ "$(true_resets 0)" -le "$before" ]; then
                        echo "clean after $i looks without a reset"
                        return 1
                fi
                sleep 0.1
        done
}

for name in gpuagentd gpuagent-driver; do
        before=$(true_resets 0)
        gpuagentctl reset -i 0 >/run/tray/answer 2>&1 &
        caller=$!
        eventually 3 "a reset is under way" resetting
        sleep 0.2
        kill -KILL "$(main_pid $name)"
        eventually 3 "the agent answers after $name was killed" answers
        holds "and takes nothing for clean that is not" never_falsely_clean "$before"
        if wait $caller; then
                holds "the caller's success was true" [ "$(true_resets 0)" -gt "$before" ]
        else
                like "the caller was told why" "$(cat /run/tray/answer)" .
        fi
        eventually 10 "a repeated reset makes it clean" clean_again
done

# nvidia-smi dies.
before=$(true_resets 0)
gpuagentctl reset -i 0 >/run/tray/answer 2>&1 &
caller=$!
eventually 3 "a reset is under way again" pgrep -x nvidia-smi
pkill -KILL -x nvidia-smi
wait $caller && code=0 || code=$?
if [ "$code" = 0 ]; then
        holds "a success without nvidia-smi was true" [ "$(true_resets 0)" -gt "$before" ]
else
        pass "a dead nvidia-smi is a failed reset"
        unlike "and no clean GPU" "$(gpu 0 State)" clean
fi
eventually 10 "a repeated reset makes it clean, too" clean_again
is "the other GPUs never noticed" "$(gpu 1 State) $(gpu 2 State)" "clean clean"

# The caller dies; the work goes on.
before=$(true_resets 0)
gpuagentctl reset -i 0 &
caller=$!
eventually 3 "a reset is under way for a caller that leaves" resetting
kill -KILL $caller
wait $caller 2>/dev/null
eventually 4 "it ends all the same" state_is 0 clean
holds "with a true reset" [ "$(true_resets 0)" -gt "$before" ]
finish
