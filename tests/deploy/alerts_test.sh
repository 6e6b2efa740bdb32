#!/usr/bin/env bash
# The alerts of deploy/k8s/components/alerts, as Prometheus reads them. WRK.19
# shellcheck source=tests/deploy/lib.sh
. "$(dirname "$0")/lib.sh"
promtool=$tools/promtool
[[ -x $promtool ]] || promtool=promtool

# The rules of the rendered manifest, as a file of Prometheus' own; JSON is YAML.
rules() { rendered_with alerts production | jq '.[] | select(.kind == "PrometheusRule").spec' >"$work/rules.yaml"; }
alert_names() { jq -r '.groups[].rules[].alert' "$work/rules.yaml" | sort; }

test_prometheus_takes_the_rules() {
    in_copy
    rules
    "$promtool" check rules "$work/rules.yaml"
}

test_every_alert_fires_when_it_should_and_not_before() {
    in_copy
    rules
    cp "$deploy_tests/alerts.yaml" "$work/"
    "$promtool" test rules "$work/alerts.yaml"
    # Each has a moment at which it does not fire, and one at which it does.
    yaml_to_json <"$work/alerts.yaml" >"$work/tests"
    tested() { jq -r "[.tests[].alert_rule_test[] | select(.exp_alerts | $1).alertname] | unique[]" "$work/tests"; }
    same "$(tested .)" "$(alert_names)" 'those that fire'
    same "$(tested not)" "$(alert_names)" 'those that do not'
}

test_a_rule_that_does_not_do_what_it_should_is_found() {
    in_copy
    cp "$deploy_tests/alerts.yaml" "$work/"
    replace deploy/k8s/components/alerts/prometheusrule.yaml 's/ == 0$/ == 1/'
    rules
    if "$promtool" test rules "$work/alerts.yaml" >"$work/out" 2>&1; then fail 'it passes'; fi
    grep -q CommandbusDomainUnserved "$work/out" || fail "$(cat "$work/out")"
}

test_every_alert_has_its_paragraph() {
    in_copy
    rules
    same "$(sed -nE 's/^## (Commandbus[A-Za-z]+)$/\1/p' "$tree/deploy/k8s/components/alerts/README.md" | sort)" "$(alert_names)" 'headings'
    none 'alerts without a runbook' "$(jq -r '.groups[].rules[]
        | select(.annotations.runbook != "deploy/k8s/components/alerts/README.md#" + (.alert | ascii_downcase)).alert' "$work/rules.yaml")"
}

run_tests
