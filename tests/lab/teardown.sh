#!/bin/bash
# SPDX-License-Identifier: MIT
# The end of the lab: nothing of it stays on the machine but the cache. tests/run has it last, so that the
# others share a lab.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

# The machine's own processes of that sort are not ours to count.
leftovers() {
        {
                find /sys/fs/cgroup -depth -name gpuagent-lab
                find /var/lib/gpuagent-lab /run/netns /run/systemd/nspawn -mindepth 1 -maxdepth 1 2>/dev/null
                ip -brief link | grep -E '^(lab0|host0|sched-|login)'
                grep gpuagent-lab /proc/self/mountinfo
                pgrep --full --list-name "systemd-nspawn.*gpuagent-lab"
        } | sort -u
}

"$lab" up >&2 || bail_out "the lab does not come up"
"$lab" ssh sched-worker1 'systemd-run --quiet --unit=straggler sleep infinity' </dev/null
before=$(findmnt --list --noheadings | wc -l)
succeeds "the lab goes down" "$lab" down
is "nothing of it is left" "$(leftovers)" ''
is "no mount has come or gone" "$(findmnt --list --noheadings | wc -l)" "$before"
succeeds "without a lab it has nothing to do" "$lab" down
if "$lab" status >/dev/null; then
        fail "its status is down"
else
        pass "its status is down"
fi
finish
