# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # the tests use what is set here
# For the tests on the lab: TAP output, commands on its hosts, and bounded polls. A test sources this, runs
# its checks and ends with `finish`. `begin` brings the lab up with the gpuagent of this tree; each test
# starts on idle, clean trays.
set -u

lab=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../../packaging/lab/lab")
trays=(sched-worker1 sched-worker2)
bus_manager='org.gpuagent1 /org/gpuagent1 org.gpuagent1.Manager'
n_checks=0
n_failures=0

# --- TAP

pass() {
        n_checks=$((n_checks + 1))
        printf 'ok %d - %s\n' "$n_checks" "$1"
}

# fail NAME [WHAT WAS SEEN]
fail() {
        n_checks=$((n_checks + 1))
        n_failures=$((n_failures + 1))
        printf 'not ok %d - %s\n' "$n_checks" "$1"
        [[ -z ${2-} ]] || printf '%s\n' "$2" | sed 's/^/# /'
}

bail_out() {
        printf 'Bail out! %s\n' "$1"
        exit 1
}

finish() {
        printf '1..%d\n' "$n_checks"
        exit $((n_failures > 0))
}

# is NAME SEEN EXPECTED
is() {
        if [[ $2 == "$3" ]]; then
                pass "$1"
        else
                fail "$1" "seen:     ${2//$'\n'/$'\n'          }"$'\n'"expected: ${3//$'\n'/$'\n'          }"
        fi
}

# like NAME SEEN EXTENDED-REGEX
like() {
        if [[ $2 =~ $3 ]]; then
                pass "$1"
        else
                fail "$1" "seen:     ${2//$'\n'/$'\n'          }"$'\n'"expected: $3"
        fi
}

# succeeds NAME COMMAND…
succeeds() {
        local name=$1 output

        shift
        if output=$("$@" 2>&1); then
                pass "$name"
        else
                fail "$name" "$output"
        fi
}

# within SECONDS NAME COMMAND…: the command succeeds before long.
within() {
        local seconds=$1 name=$2

        shift 2
        if poll "$seconds" "$@"; then
                pass "$name"
        else
                fail "$name" "not in $seconds s: $*"
        fi
}

# poll SECONDS COMMAND…
poll() {
        local end=$((SECONDS + $1))

        shift
        until "$@" >/dev/null 2>&1; do
                ((SECONDS < end)) || return 1
                sleep 0.1
        done
}

# --- Hosts

# on HOST COMMAND: run by a shell there; root, on login joe.
on() {
        "$lab" ssh "$@" </dev/null
}

# joe COMMAND
joe() {
        on login "$1"
}

controller() {
        on sched-control "$1"
}

# --- GPUs of a tray

# column TRAY NAME: the column of gpuagentctl's list, all GPUs on one line, freshly probed.
column() {
        on "$1" "busctl --timeout=60 -q call $bus_manager Refresh 'a{sv}' 0 && gpuagentctl list" |
                awk -v name="$2" '
                NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i; next }
                { line = line (NR > 2 ? " " : "") $column }
                END { print line }'
}

column_is() {
        [[ $(column "$1" "$2") == "$3" ]]
}

# Without a probe of its own, which would wait for the reset.
is_resetting() {
        on "$1" 'gpuagentctl list --no-legend' | grep -qw resetting
}

# property TRAY GPU NAME: of the GPU object with that index, as busctl prints it, without the type.
property() {
        on "$1" "path=\$(busctl -j call $bus_manager GetGPU s $2 | grep -o '/org[^\"]*') &&
                busctl get-property org.gpuagent1 \$path org.gpuagent1.GPU $3" | cut -d ' ' -f 2- | tr -d '"'
}

property_is() {
        [[ $(property "$1" "$2" "$3") == "$4" ]]
}

# reset_counts TRAY: how often each GPU was reset since the boot, by the driver's own count.
reset_counts() {
        on "$1" 'gpuagent-emulate status' | sed -n 's/.*  resets //p' | paste -sd ' '
}

# assign TRAY ID NAME: what a fabric manager does with all GPUs of the tray.
assign() {
        on "$1" "gpuagent-emulate partition assign $2 $3 0,1,2,3"
}

# hold TRAY GPU: a process that Slurm does not know about, as unit foreign.service.
hold() {
        on "$1" "systemd-run --quiet --collect --unit=foreign \
                python3 -c 'import signal; device = open(\"/dev/nvidia$2\"); signal.pause()'"
        poll 10 on "$1" "gpuagentctl ps -i $2 | grep foreign.service"
}

let_go() {
        on "$1" 'systemctl stop foreign.service 2>/dev/null'
}

# configure TRAY YAML: until the test's end.
configure() {
        on "$1" "mkdir -p /etc/gpuagent/gpuagentd.yaml.d &&
                printf '%s\n' '$2' >/etc/gpuagent/gpuagentd.yaml.d/90-test.yaml &&
                systemctl reload gpuagentd"
}

unconfigure() {
        on "$1" 'rm -f /etc/gpuagent/gpuagentd.yaml.d/90-test.yaml && systemctl reload-or-restart gpuagentd'
}

# --- Slurm

# sinfo of 24.11 goes on with "mixed" when the epilog of one of two jobs has failed, until somebody asks scontrol.
node_state() {
        controller "scontrol show node $1 >/dev/null; sinfo --noheader --Node --nodes=$1 --format=%T"
}

node_is() {
        [[ $(node_state "$1") == "$2" ]]
}

# Drained, or going to be when its last job is over.
node_drains() {
        [[ $(node_state "$1") == drain* ]]
}

# The whole reason; sinfo -R cuts it.
node_reason() {
        controller "sinfo --noheader --list-reasons --nodes=$1 --format=%E"
}

# submit OPTION… COMMAND: as joe; prints the job's id and returns before it runs.
submit() {
        local command=${*: -1}

        joe "cd /tmp && sbatch --parsable --output=/dev/null ${*:1:$#-1} --wrap $(printf %q "$command")"
}

# A requeued job is left to the administrator after a failed prolog: state and reason.
job_in_queue() {
        controller "squeue --noheader --jobs=$1 --format='%T %r'"
}

job_is_running() {
        [[ $(job_in_queue "$1") == RUNNING* ]]
}

# cancel_all: whatever a test has left behind.
cancel_all() {
        controller 'scancel --user=joe'
        poll 120 no_jobs
}

no_jobs() {
        [[ -z $(controller 'squeue --noheader') ]]
}

# Over means that the epilog has ended, too.
job_is_over() {
        [[ -z $(controller "squeue --noheader --jobs=$1" 2>/dev/null) ]]
}

job_state() {
        controller "sacct --noheader --allocations --parsable2 --jobs=$1 --format=State"
}

# audit TRAY JOB: the agent's lines about a job's epilog in the tray's journal.
audit() {
        on "$1" "journalctl --sync; journalctl --quiet --boot --identifier=slurm-epilog --output=cat \
                _SYSTEMD_UNIT=gpuagentd.service | grep '^job $2:'"
}

# prolog_said TRAY JOB: the agent's lines about a job's prolog.
prolog_said() {
        on "$1" "journalctl --sync; journalctl --quiet --boot --identifier=slurm-prolog --output=cat \
                _SYSTEMD_UNIT=gpuagentd.service | grep '^job $2:'"
}

has_audit() {
        [[ -n $(audit "$@") ]]
}

# slurm_conf LINES: what all hosts' slurm.conf has beyond the lab's own.
slurm_conf() {
        local host

        for host in sched-control root@login "${trays[@]}"; do
                on "$host" "sed -i '/^# For a test/,\$d' /etc/slurm/slurm.conf &&
                        printf '%s\n' '# For a test' '$1' >>/etc/slurm/slurm.conf"
        done
        controller 'scontrol reconfigure'
        for host in "${trays[@]}"; do
                poll 30 on "$host" "scontrol show slurmd"
        done
}

# restart_slurm SECONDS: until the trays are idle again, or for so long.
restart_slurm() {
        local host

        controller 'systemctl restart slurmctld'
        for host in "${trays[@]}"; do
                on "$host" 'systemctl restart slurmd'
        done
        for host in "${trays[@]}"; do
                poll "$1" node_is "$host" idle || return 1
        done
}

# The lab itself hands over by its epilog alone.
gate_is_open() {
        ! on sched-control "grep -q '^# For a test' /etc/slurm/slurm.conf"
}

gate_lines=$'PrologFlags=Alloc,Contain\nProlog=/usr/lib/gpuagent/slurm/prolog'

# --- Beginning and end

resume() {
        case $(node_state "$1") in
        *drain* | down*)
                controller "scontrol update nodename=$1 state=resume"
                ;;
        esac
}

tray_is_ready() {
        column_is "$1" STATE 'clean clean clean clean' && node_is "$1" idle
}

# A tray as it is after a boot, whatever a test (or one before, that failed) has left.
make_ready() {
        local tray=$1

        let_go "$tray"
        on "$tray" 'rm -f /etc/gpuagent/gpuagentd.yaml.d/90-test.yaml /shared/ran /shared/go
                gpuagent-emulate heal && gpuagent-emulate hang off &&
                systemctl start gpuagent-driver.socket gpuagentd slurmd &&
                systemctl reload gpuagentd && gpuagentctl maintenance off'
        if ! column_is "$tray" PARTITION '32766 32766 32766 32766'; then
                assign "$tray" 32766 default
        fi
        if ! column_is "$tray" STATE 'clean clean clean clean' || ! column_is "$tray" RESET '- - - -'; then
                on "$tray" 'gpuagentctl reset'
        fi
        resume "$tray"
        poll 60 tray_is_ready "$tray"
}

# begin [gate]: with the prolog.
begin() {
        local tray

        "$lab" up >&2 || bail_out "the lab does not come up"
        if [[ ${1-} == gate ]]; then
                slurm_conf "$gate_lines"
        elif ! gate_is_open; then
                slurm_conf ''
                on sched-control "sed -i '/^# For a test/,\$d' /etc/slurm/slurm.conf"
        fi
        for tray in "${trays[@]}"; do
                make_ready "$tray" >/dev/null 2>&1 ||
                        bail_out "$tray is not ready: $(column "$tray" STATE), $(node_state "$tray")"
        done
}
