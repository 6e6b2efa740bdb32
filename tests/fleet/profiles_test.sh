#!/usr/bin/env bash
# One binary, three roles: what it serves under each profile of config/. CFG.1, CFG.3.
. "$(dirname "$0")/lib.sh"

all_domains=(fx payments risk)
# The profiles of this tree; the sets are the sample's, and times short, whatever they say.
prepare() {
    local d
    cp "$COMMANDBUS_SOURCE_DIR"/config/*.cfg "$work/config/"
    worker_settings=()
    for d in "${all_domains[@]}"; do
        worker_settings+=("domains.$d.handlers=sample" "domains.$d.poll-interval=100ms")
        "$COMMANDBUS_BIN" queue create "$d" >/dev/null
    done
}

# slots NAME: what it serves, as "fx 2, risk 2".
slots() {
    http_get "$1" /metrics
    sed -nE 's/^commandbus_slots\{domain="([a-z]+)"\} ([0-9]+)$/\1 \2/p' <<<"$http_body" | sort | paste -sd, | sed 's/,/, /g'
}
send_everywhere() {
    local domain
    for domain in "${all_domains[@]}"; do send_commands 3 Echo '{"to": "all"}'; done
}
served() { sql "SELECT coalesce(string_agg(DISTINCT domain, ' ' ORDER BY domain), '') FROM commandbus.command_metadata WHERE lease_no > 0"; }
fleet_json() { "$COMMANDBUS_BIN" fleet --json; }

# serves DOMAINS: those, and of the others nothing is even claimed.
serves() {
    send_everywhere
    wait_until "(SELECT bool_and(status = 'COMPLETED') FROM commandbus.command_metadata WHERE domain = ANY (string_to_array('$1', ' ')))" 30
    same "$(served)" "$1" 'what is served'
}

# role PROFILE SLOTS DOMAINS
role() {
    prepare
    start_ready a --profile "$1"
    same "$(slots a)" "$2" 'slots in /metrics'
    same "$(fleet_json | jq -r '.instances[0] | .profile + ": " + ([.domains | to_entries[] | .key + " " + (.value.slots | tostring)] | sort | join(", "))')" \
        "$1: $2" 'the instance in commandbus fleet'
    serves "$3"
    stop_worker a
}

test_the_ratelimited_worker_makes_the_limited_calls_and_nothing_else() {
    role ratelimited-worker 'fx 2, risk 2' 'fx risk'
}
test_the_payments_worker_leaves_the_limited_calls_to_others() { role payments-worker 'payments 10' payments; }
test_the_multipurpose_worker_does_everything() {
    role multipurpose-worker 'fx 2, payments 10, risk 3' 'fx payments risk'
}

test_two_profiles_together_serve_everything_once() {
    prepare
    start_ready a --profile ratelimited-worker
    start_ready b --profile payments-worker
    serves 'fx payments risk'
    same "$(sql "SELECT string_agg(DISTINCT domain || ' ' || left(worker, 1), ', ' ORDER BY domain || ' ' || left(worker, 1))
                 FROM commandbus.audit WHERE event_type = 'RECEIVED'")" 'fx a, payments b, risk a' 'who served what'
    stop_worker a
    stop_worker b
}

# CFG.3: a pod that is started again with another COMMANDBUS_PROFILE and nothing else changed.
test_the_variable_alone_switches_the_role_of_an_instance() {
    prepare
    send_everywhere

    COMMANDBUS_PROFILE=ratelimited-worker start_ready a
    same "$(slots a)" 'fx 2, risk 2' 'slots in /metrics'
    wait_metric a 'commandbus_claimed_total{domain="fx"}' 3
    wait_metric a 'commandbus_claimed_total{domain="risk"}' 3
    stop_worker a
    same "$(served)" 'fx risk' 'what the ratelimited-worker has claimed'

    COMMANDBUS_PROFILE=payments-worker start_ready a
    same "$(slots a)" 'payments 10' 'slots in /metrics'
    wait_metric a 'commandbus_claimed_total{domain="payments"}' 3
    same "$(fleet_json | jq -r '.instances[].profile')" payments-worker 'the profile in commandbus fleet'
    stop_worker a
    same "$(sql "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'")" 9 'commands that are done'
}

# CFG.2: Kubernetes names the profile and overrides single values by environment.
test_the_environment_names_of_the_deployments_override_the_profile() {
    prepare
    export COMMANDBUS_PROFILE=ratelimited-worker COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES=4 \
        COMMANDBUS_DOMAINS_RISK_ENABLED=false COMMANDBUS_DOMAINS_PAYMENTS_ENABLED=true \
        COMMANDBUS_DOMAINS_PAYMENTS_CONCURRENT_MESSAGES=7 COMMANDBUS_FEATURES_REPLY_PROCESSING=true
    start_ready a
    same "$(slots a)" 'fx 4, payments 7' 'slots in /metrics'
    serves 'fx payments'
    stop_worker a
}

test_without_command_handlers_no_commands_are_served() {
    prepare
    start_ready a --profile multipurpose-worker
    COMMANDBUS_FEATURES_COMMAND_HANDLERS=false start_ready b --profile multipurpose-worker
    stop_worker a
    send_everywhere
    same "$(slots b)" 'fx 0, payments 0, risk 0' 'slots in /metrics'
    stop_worker b
    same "$(served)" '' 'what is served'
}

run_tests "$@"
