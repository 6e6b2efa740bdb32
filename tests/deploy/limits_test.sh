#!/usr/bin/env bash
# deploy/check-limits: what limit the manifests really give. RL.1, CFG.2, CFG.8
# shellcheck source=tests/deploy/lib.sh
. "$(dirname "$0")/lib.sh"

check_limits() { "$tree/deploy/check-limits" --worker "$COMMANDBUS_WORKER_BIN" "$@"; }
# limits FIELD...: of production, such as fx or fx.rollout; a domain alone is its limit, - what is not there.
limits() {
    check_limits --json "$tree/deploy/k8s/overlays/production" 2>"$work/warnings" |
        jq -r '[.domains[] | {(.domain): .}] | add as $of | [$ARGS.positional[] | split(".") | $of[.[0]][.[1] // "limit"] // "-"] | join(" ")' \
            --args "$@"
}
ratelimited=deploy/k8s/overlays/production/ratelimited-worker/deployment.yaml

test_production_gives_six_calls_to_fx_and_six_to_risk() {
    check_limits "$tree/deploy/k8s/overlays/production" >"$work/out"
    same "$(awk '$1 == "fx" || $1 == "risk" { print $1, $2, $NF }' "$work/out")" $'fx ratelimited-worker 6\nrisk ratelimited-worker 6' 'the table'
    same "$(limits fx risk payments fx.rollout payments.rollout)" '6 6 30 6 40' 'limits, and calls during a rollout'
}

test_replicas_count() {
    in_copy
    replace "$ratelimited" 's/replicas: 3/replicas: 2/'
    same "$(limits fx risk)" '4 4' 'limits'
}

test_the_fleet_limit_counts_when_there_are_more_slots() {
    in_copy
    replace "$ratelimited" 's/replicas: 3/replicas: 5/'
    same "$(limits fx fx.calls)" '6 10' 'limit and slots'
    check_limits "$tree/deploy/k8s/overlays/production" | grep -q 'fx: the fleet-limit 6 leaves 4 of 10 slots unused'
}

test_the_files_of_the_config_map_count() {
    in_copy
    replace config/ratelimited-worker.cfg 's/(fx .*concurrent-messages = )2/\11/'
    same "$(limits fx risk)" '3 6' 'limits'
}

test_the_environment_counts() {
    in_copy
    replace "$ratelimited" 's/# (- \{name: COMMANDBUS_DOMAINS_RISK_CONCURRENT_MESSAGES, value: )"2"/\1"1"/'
    same "$(limits fx risk)" '6 3' 'limits'
}

test_values_of_a_config_map_count() {
    in_copy
    echo COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES=1 >>"$tree/deploy/k8s/overlays/production/settings/downstream.env"
    same "$(limits fx)" 3 'the limit'
}

test_a_role_without_command_handlers_calls_nobody() {
    in_copy
    replace "$ratelimited" 's/# (- \{name: COMMANDBUS_FEATURES_COMMAND_HANDLERS, value: )"true"/\1"false"/'
    same "$(limits fx)" - 'the limit'
}

# The image's own command is the worker.
test_a_worker_without_a_command_counts_too() {
    in_copy
    replace deploy/k8s/base/worker/deployment.yaml '/command: \[commandbus-worker\]/d'
    same "$(limits fx risk payments)" '6 6 30' 'limits'
}

test_a_surge_is_reported() {
    in_copy
    replace "$ratelimited" 's/maxSurge: 0/maxSurge: 25%/'
    same "$(limits fx.rollout fx)" '8 6' 'calls of pods during a rollout, and the limit'
}

test_two_workloads_that_serve_a_domain_add_up() {
    in_copy
    replace deploy/k8s/overlays/production/payments-worker/deployment.yaml 's/value: payments-worker/value: multipurpose-worker/'
    same "$(limits fx.calls risk.calls fx)" '12 15 6' 'slots and limit'
}

test_an_autoscaled_workload_counts_with_its_most_replicas() {
    in_copy
    replace deploy/k8s/overlays/production/kustomization.yaml 's/# (- .*keda)/\1/'
    same "$(limits payments fx)" '100 6' 'limits'
}

test_an_unknown_variable_gets_a_warning() {
    in_copy
    replace "$ratelimited" 's/COMMANDBUS_DOMAINS_FX_FLEET_LIMIT/COMMANDBUS_DOMAINS_FX_FLEETLIMIT/'
    limits fx >/dev/null
    grep -q 'ratelimited-worker: .*ignored unknown setting COMMANDBUS_DOMAINS_FX_FLEETLIMIT' "$work/warnings" || fail "$(cat "$work/warnings")"
}

# refuses CODE TEXT ARGUMENTS...
refuses() {
    local code=0 expected=$1 text=$2
    shift 2
    check_limits "$@" >"$work/out" 2>"$work/err" || code=$?
    same "$code" "$expected" "the exit code ($(cat "$work/err"))"
    grep -q "$text" "$work/err" || fail "it says $(cat "$work/err")"
    same "$(cat "$work/out")" '' 'what it prints'
}

test_what_a_worker_would_refuse_is_refused() {
    in_copy
    replace "$ratelimited" 's/(COMMANDBUS_DOMAINS_FX_FLEET_LIMIT, value: )"6"/\1"six"/'
    refuses 1 'ratelimited-worker: a worker would not start' "$tree/deploy/k8s/overlays/production"
}
test_a_limit_from_a_secret_is_refused() {
    in_copy
    replace "$ratelimited" 's/(COMMANDBUS_DOMAINS_FX_FLEET_LIMIT), value: "6"/\1, valueFrom: {secretKeyRef: {name: x, key: y}}/'
    refuses 1 'COMMANDBUS_DOMAINS_FX_FLEET_LIMIT comes from a Secret' "$tree/deploy/k8s/overlays/production"
}
test_an_overlay_that_cannot_be_rendered_is_refused() {
    in_copy
    replace deploy/k8s/overlays/production/kustomization.yaml 's/- settings/- setings/'
    refuses 1 'cannot be rendered' "$tree/deploy/k8s/overlays/production"
}
test_wrong_usage_is_refused() {
    refuses 2 'which overlay'
    refuses 2 'no kustomization.yaml' "$work"
    refuses 2 "unknown option '--jsn'" --jsn "$tree/deploy/k8s/overlays/dev"
    refuses 1 'no workload .* runs commandbus-worker' "$tree/deploy/k8s/overlays/production/migrate"
}

run_tests
