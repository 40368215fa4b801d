#!/bin/bash
# SPDX-License-Identifier: MIT
# Prometheus with node-exporter: the agent's metrics, Slurm's series, the alerts, and each query of the dashboard.
# shellcheck source-path=SCRIPTDIR source=helper.sh
. "$(dirname "$0")/helper.sh"

repository=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
tray1=sched-worker1
share=/usr/share/gpuagent

start_monitoring() {
        local host

        for host in sched-control "${trays[@]}"; do
                on "$host" 'systemctl start prometheus-node-exporter'
        done
        controller "systemd-run --quiet --collect --unit=slurm-metrics --on-active=1 --on-unit-active=3 \
                --timer-property=AccuracySec=100ms \
                $share/prometheus/slurm-metrics /var/lib/prometheus/node-exporter/slurm.prom
                systemctl start prometheus"
}

stop_monitoring() {
        local host

        controller 'systemctl stop prometheus slurm-metrics.timer; rm -f /var/lib/prometheus/node-exporter/slurm.prom'
        for host in sched-control "${trays[@]}"; do
                on "$host" 'systemctl stop prometheus-node-exporter'
        done
}

# query EXPRESSION: lines of LABELS => VALUE @[TIME].
query() {
        printf '%s' "$1" | on sched-control "promtool query instant http://localhost:9090 $(printf %q "$1")"
}

# value EXPRESSION: of its only sample.
value() {
        query "$1" | sed -nE 's/.*=> ([^ ]+) @.*/\1/p'
}

value_is() {
        [[ $(value "$1") == "$2" ]]
}

has_samples() {
        [[ $(query "$1") == *'=>'* ]]
}

metrics_are_scraped() {
        within 60 "both trays' drivers are up" value_is 'sum(gpuagent_driver_up)' 2
        within 20 "all GPUs are clean" value_is 'sum(gpuagent_gpu_state{state="clean"})' 8
        is "the tray's name is its label" "$(value 'count(nvlink_gpu_clique_id{host="sched-worker1"})')" 4
        is "node-exporter finds nothing wrong" "$(value 'sum(node_textfile_scrape_error)')" 0
        succeeds "nor does promtool" on "$tray1" 'promtool check metrics </run/gpuagent/metrics.prom'
        succeeds "in Slurm's either" controller 'promtool check metrics </var/lib/prometheus/node-exporter/slurm.prom'
}

slurm_is_counted() {
        submit --nodes=1 --nodelist="$tray1" --gpus=3 'sleep 600' >/dev/null
        submit --nodes=1 --nodelist="$tray1" --gpus=3 'sleep 600' >/dev/null
        within 60 "allocated GPUs are counted" value_is sched_gpus_alloc 3
        is "of all that there are" "$(value sched_gpus)" 8
        is "by tray" "$(value 'sched_node_gpus_alloc{node="sched-worker1"}')" 3
        is "by user" "$(value 'sched_user_gpus{user="joe"}')" 3
        is "the job runs" "$(value 'sched_jobs{state="RUNNING"}')" 1
        is "and another waits" "$(value 'sched_jobs{state="PENDING"}')" 1
        within 30 "the tray is in use, in part" value_is 'sched_nodes{state="MIXED"}' 1
        is "and the other is not" "$(value 'sched_nodes{state="IDLE"}')" 1
}

# While a job runs, so that there is something to show.
dashboard_has_data() {
        local expression empty=()

        while IFS= read -r expression; do
                expression=${expression//'$host'/.*}
                expression=${expression//'$__rate_interval'/1m}
                poll 20 has_samples "$expression" || empty+=("$expression")
        done < <(jq -r '.panels[].targets[]?.expr' "$repository/packaging/grafana/gpuagent.json")
        is "each query of the dashboard has an answer" "$(printf '%s\n' "${empty[@]}")" ''
}

alerts_are_raised() {
        is "the rules are evaluated without a failure" \
                "$(value 'sum(increase(prometheus_rule_evaluation_failures_total[5m]))')" 0
        on "$tray1" 'gpuagent-emulate fail-reset 3; gpuagentctl --quiet reset -i 3' 2>/dev/null
        within 60 "a quarantined GPU is an alert soon" \
                value_is 'count(ALERTS{alertname="GpuagentGpuQuarantined", host="sched-worker1", gpu="3"})' 1
        within 20 "a handover that failed is one at once" \
                value_is 'count(ALERTS{alertname="GpuagentHandoverFailed", alertstate="firing", host="sched-worker1",
                        result="reset-failed"})' 1
        on "$tray1" 'gpuagent-emulate heal && gpuagentctl --quiet reset -i 3'
        within 60 "and no more once the GPU is clean" value_is \
                'count(ALERTS{alertname="GpuagentGpuQuarantined"}) or vector(0)' 0
}

rules_pass_their_tests() {
        "$lab" scp -r "$repository/tests/monitoring" sched-control:/tmp/ >/dev/null
        controller "sed -i 's|../../packaging/prometheus|$share/prometheus|' /tmp/monitoring/*.yml"
        succeeds "the rules pass their tests here, too" controller 'promtool test rules /tmp/monitoring/*.yml'
        succeeds "and Prometheus likes its configuration" \
                controller "promtool check config /etc/prometheus/prometheus.yml $share/prometheus/prometheus.yml"
        controller 'rm -r /tmp/monitoring'
}

begin
trap stop_monitoring EXIT
start_monitoring
metrics_are_scraped
slurm_is_counted
dashboard_has_data
cancel_all
alerts_are_raised
rules_pass_their_tests
finish
