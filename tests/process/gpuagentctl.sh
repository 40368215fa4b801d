#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What gpuagentctl prints for programs, who may call what, the monitor, and the reset at boot.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms}'
in_tray

as() { setpriv --reuid="$1" --regid="$1" --init-groups "${@:2}"; }
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

is "each GPU is an object" "$(gpuagentctl list --json=short | jq -rc '[length, (.[0] | keys_unsorted | join(","))] | join(" ")')" \
        "4 tray,gpu,uuid,partition,clique,reset,nvlinks,health,state,tenant"
is "numbers are numbers, nothing is null" "$(gpuagentctl list --json=short | jq -rc '.[0] | [.gpu, .clique, .reset, .tenant]')" \
        '[0,1,null,null]'
is "pretty is the same, in lines" "$(gpuagentctl list --json=pretty | jq -c .)" "$(gpuagentctl list --json=short | jq -c .)"
holds "a table has a head" eval 'gpuagentctl list | head -n 1 | grep -q ^TRAY'
is "or none" "$(gpuagentctl list --no-legend | wc -l)" 4
exits 0 "the status of a tray" gpuagentctl status
exits 0 "of a GPU" gpuagentctl status 0
hold 2
is "processes are listed" "$(gpuagentctl ps --json=short | jq -rc '.[] | [.gpu, .pid, .user, .command]')" "[2,$holder,\"root\",\"holder\"]"
release
gpuagentctl --quiet reset -i 2

exits 0 "nobody may look" nobody "$(command -v gpuagentctl)" list
before=$(true_resets 0)
exits 4 "but not reset" nobody "$(command -v gpuagentctl)" reset -i 0
is "and nothing happens" "$(true_resets 0)" "$before"
exits 4 "nor see who holds the GPUs" nobody "$(command -v gpuagentctl)" ps
exits 0 "nobody gets to know what is clean" nobody "$(command -v gpuagentctl)" verify
gpuagentctl --quiet acquire --job 5 -i 0,1
is "what nobody may not know is said once" "$(nobody "$(command -v gpuagentctl)" status 2>&1 >/dev/null | wc -l)" 1
echo 'access: {processes: own}' >/etc/gpuagent/gpuagentd.yaml.d/60-own.yaml
gpuagentctl reload
like "a lease whose tenant is hidden is nobody's task" "$(nobody "$(command -v gpuagentctl)" status 2>/dev/null)" \
        "to do: +nothing"
rm /etc/gpuagent/gpuagentd.yaml.d/60-own.yaml
gpuagentctl reload
gpuagentctl --quiet release --job 5
before=$(true_resets 0)
exits 0 "a member of the group may reset" as operator "$(command -v gpuagentctl)" reset -i 0
is "and it is done" "$(true_resets 0)" $((before + 1))

gpuagentctl monitor --json=short >/run/tray/monitor &
monitor=$!
sleep 0.5
gpuagentctl --quiet reset -i 1
sleep 0.3
kill $monitor
wait $monitor 2>/dev/null
is "the monitor tells of a reset from its start to its end" \
        "$(jq -r 'select(.gpu == 1) | .signal' /run/tray/monitor | grep ^Reset | tr '\n' ' ')" "ResetStarted ResetFinished "
holds "each line is an object" jq -e . /run/tray/monitor

before=$(true_resets 0)
exits 0 "a second reset at boot" gpuagentctl boot-reset
is "does nothing" "$(true_resets 0)" "$before"
stop_service gpuagentd
for verb in list status reset verify ps clique monitor gres reload "maintenance off" "forget 0" "partition list" "fabric trays" \
        "acquire --job 1 -i 0" "release --job 1"; do
        # shellcheck disable=SC2086 # words
        exits 5 "without an agent there is no $verb" gpuagentctl $verb
done
rm /run/gpuagent/state
start_agent
eventually 3 "after a boot nothing is known to be clean" states_are unknown unknown unknown unknown
exits 0 "the reset at boot" gpuagentctl boot-reset
is "makes it so" "$(states)" "clean clean clean clean"
exits 2 "GPUs given twice are not guessed at" gpuagentctl reset -i 0 -i 1
like "but a list is asked for" "$output" "-i 0,1$"
exits 2 "nor are two tenants" gpuagentctl release --job 27 --tenant pod/x
exits 2 "a GPU without -i is no argument" gpuagentctl reset 0
like "and the command is told" "$output" "gpuagentctl reset -i 0$"

hold 1
gpuagentctl --quiet acquire --tenant x/1 -i 2
gpuagentctl verify >/dev/null 2>&1
output=$(nobody "$(command -v gpuagentctl)" status 2>&1)
is "that holders are told to others is said once" "$(grep -c 'the holders are not known' <<<"$output")" 1
is "and nothing is to be done about a lease" "$(grep -c 'to do:' <<<"$output")" 1
release

printf 'Epilog=/nowhere\n' >/run/tray/slurm.conf
exits 1 "slurm.conf is checked for programs, too" eval 'gpuagentctl slurm-check --json=short /run/tray/slurm.conf >/run/tray/findings'
is "with a finding an object" "$(jq -c 'map(select(.severity == "error" and (.finding | test("^Epilog=")))) |
        .[0] | [.file, .line]' /run/tray/findings)" '["/run/tray/slurm.conf",1]'
is "and no line where there is none" "$(jq -c 'map(select(.finding | test("^Prolog="))) | .[0].line' /run/tray/findings)" null
like "the count stays on stderr" "$output" 'slurm.conf: [0-9]+ errors, '
exits 1 "a slurm.conf that is not there is asked for" env SLURM_CONF=/nowhere/slurm.conf gpuagentctl slurm-check
is "in one line" "$output" "gpuagentctl: /nowhere/slurm.conf is not there; say where it is: gpuagentctl slurm-check FILE"

finish
