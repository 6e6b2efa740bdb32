#!/usr/bin/env bash
# What the manifests ask a real worker and a real database: metrics by their names, and KEDA's query. WRK.19
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/../fleet/lib.sh"
: "${COMMANDBUS_SOURCE_DIR:?}"
k8s=$COMMANDBUS_SOURCE_DIR/deploy/k8s

# Every metric in an expression of alerts and dashboard.
asked() {
    { yq -r '.spec.groups[].rules[].expr' "$k8s/components/alerts/prometheusrule.yaml"
      jq -r '.. | objects | .expr?, .query? | strings' "$k8s/components/dashboard/commandbus.json"; } |
        grep -oE 'commandbus_[a-z_]+' | sort -u
}
# Every metric that a worker shows: histograms by the names that are asked for.
shown() {
    http_get "$1" /metrics
    awk '$1 == "#" && $2 == "TYPE" { print $3; if ($4 == "histogram") print $3 "_bucket\n" $3 "_sum\n" $3 "_count" }' <<<"$http_body" | sort
}

test_alerts_and_dashboard_ask_for_metrics_that_a_worker_has() {
    start_ready a
    asked >"$work/asked"
    at_least "$(wc -l <"$work/asked")" 25 'metrics asked for'
    same "$(comm -23 "$work/asked" <(shown a))" '' 'what no worker shows'
    stop_worker a
}

# Labels in expressions are those of the series: one that is nowhere makes an alert that never fires.
test_alerts_ask_for_labels_that_their_series_have() {
    start_ready a
    http_get a /metrics
    local labels
    labels=$(grep -oE '[{,][a-z_]+="' <<<"$http_body" | tr -d '{,="' | sort -u)
    yq -r '.spec.groups[].rules[].expr' "$k8s/components/alerts/prometheusrule.yaml" | grep -oE '(by|on) \([a-z_, ]+\)' |
        grep -oE '[a-z_]+' | grep -vxE 'by|on|namespace|pod|instance' | sort -u >"$work/asked"
    # process_type, error_code, wait and name are of processes, of which there are none here.
    same "$(comm -23 "$work/asked" <(printf '%s\n' "$labels" process_type error_code wait name | sort -u))" '' 'unknown labels'
    stop_worker a
}

test_kedas_query_counts_what_is_due_and_no_more_with_the_rights_of_a_monitor() {
    local query due
    query=$(yq -r '.spec.triggers[0].metadata.query' "$k8s/components/keda/scaledobject.yaml")
    "$COMMANDBUS_BIN" queue create payments >/dev/null
    as_monitor() { sql "SET ROLE commandbus_monitor; $query"; }
    same "$(as_monitor)" 0 'with nothing to do'

    domain=payments send_commands 3 Echo '{}'
    domain=payments send_commands 2 Echo '{}' 'delay_seconds => 600'
    same "$(as_monitor)" 3 'with three commands due and two later'

    sql "SELECT commandbus.register_process_type('Paying', 'payments', 1)" >/dev/null
    sql "SELECT commandbus.start_process('Paying', '{}') FROM generate_series(1, 4)" >/dev/null
    due=$(as_monitor)
    same "$due" 7 'with four processes due too'
    sql "UPDATE commandbus.process SET wake_at = commandbus.now() + interval '1 h'
         WHERE process_id = (SELECT process_id FROM commandbus.process LIMIT 1)"
    same "$(as_monitor)" 6 'with one of them waiting'
}

run_tests "$@"
