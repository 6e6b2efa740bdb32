#!/usr/bin/env bash
# The limit as the called ones see it, while payments flow: 3 × payments-worker take them over HTTP and run them, 3 ×
# ratelimited-worker make the calls to FX and risk, two at a time each. RL.1, SIM.2
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"
fleet_lease=30s

# finish N SECONDS: until N payments are complete, all of them taken by the API.
finish() {
    wait_until "(SELECT count(*) FROM payments.payment WHERE status = 'COMPLETE') = $1" "$2"
    wait "$submitter" || fail "not all were submitted: $(sort "$work/submitted" | uniq -c)"
    same "$(sort "$work/submitted" | uniq -c | tr -s ' ')" " $1 202" 'answers of the API'
    note "$1 payments: $(simulator GET /stats | jq -c '{fx: .fx | {calls, most_in_flight}, risk: .risk | {calls, most_in_flight}, gateway: .gateway | {calls, most_in_flight}}')"
}
# Calls take so long that they meet, however busy the machine is.
slow() {
    behave fx '{"minMs": 3000, "maxMs": 3000}'
    behave risk '{"minMs": 3000, "maxMs": 3000}'
}
# await_limits FX RISK: until that many calls have met; from then on they are quick.
await_limits() {
    await_seen .fx.most_in_flight "$1" 120
    await_seen .risk.most_in_flight "$2" 120
    behave fx '{"minMs": 100, "maxMs": 200}'
    behave risk '{"minMs": 100, "maxMs": 200}'
}

test_three_times_two_are_six_calls_at_once_and_never_seven() {
    prepare_fleet
    slow
    start_fleet
    submit_all 150
    await_limits 6 6
    finish 150 240
    check_limits 6 6
    same "$(seen .fx.most_in_flight) $(seen .risk.most_in_flight)" '6 6' 'most calls at once'
    check_payments 150
    stop_fleet
}

test_a_fleet_limit_of_four_are_four_calls_at_once() {
    prepare_fleet
    slow
    start_fleet --set domains.fx.fleet-limit=4
    submit_all 100
    await_limits 4 6
    finish 100 240
    check_limits 4 6
    same "$(seen .fx.most_in_flight) $(seen .risk.most_in_flight)" '4 6' 'most calls at once'
    check_payments 100
    stop_fleet
}

# The simulator goes on with what a dead worker has asked for, and counts it: the fleet's limit bounds that too.
test_workers_that_are_killed_never_make_more_calls_than_the_fleet_limit() {
    local kills=0 name
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    prepare_fleet
    behave fx '{"minMs": 400, "maxMs": 800}'
    behave risk '{"minMs": 400, "maxMs": 800}'
    for name in fx risk; do # whose callers are killed
        worker_settings+=("domains.$name.visibility-timeout=3s" "domains.$name.handler-timeout=3s")
    done
    start_fleet --set domains.fx.fleet-limit=6 --set domains.risk.fleet-limit=6 --set domains.fx.max-attempts=1000 \
        --set domains.risk.max-attempts=1000 --set command-steps.bookFx.max-attempts=1000 --set command-steps.bookRisk.max-attempts=1000
    submit_all 150
    name=$(busy_worker "domain IN ('fx', 'risk')") # one at least while it calls
    kill_one "$name"
    while ((kills < 12)); do
        sleep 0.9 # not a wait for anything: kills come at any moment
        kill_one "${callers[@]}"
    done
    finish 150 240
    note "$kills kills, $(count 'attempts > 1') commands claimed again"
    check_limits 6 6
    at_least "$(count 'attempts > 1')" 1 'commands that were claimed again'
    check_payments 150
    stop_fleet
}

run_tests "$@"
