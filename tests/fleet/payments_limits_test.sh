#!/usr/bin/env bash
# The limit as the called ones see it, while payments flow: 3 × payments-worker take them over HTTP and run them, 3 ×
# ratelimited-worker make the calls to FX and risk, two at a time each. RL.1, SIM.2
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"

# finish N SECONDS: until N payments are complete, all of them taken by the API.
finish() {
    wait_until "(SELECT count(*) FROM payments.payment WHERE status = 'COMPLETE') = $1" "$2"
    wait "$submitter" || fail "not all were submitted: $(sort "$work/submitted" | uniq -c)"
    same "$(sort "$work/submitted" | uniq -c | tr -s ' ')" " $1 202" 'answers of the API'
    note "$1 payments: $(simulator GET /stats | jq -c '{fx: .fx | {calls, most_in_flight}, risk: .risk | {calls, most_in_flight}, gateway: .gateway | {calls, most_in_flight}}')"
}
slow() {
    behave fx '{"minMs": 100, "maxMs": 200}'
    behave risk '{"minMs": 100, "maxMs": 200}'
}

test_three_times_two_are_six_calls_at_once_and_never_seven() {
    prepare_fleet
    slow
    start_fleet
    submit_all 150
    finish 150 90
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
    finish 100 90
    check_limits 4 6
    same "$(seen .fx.most_in_flight) $(seen .risk.most_in_flight)" '4 6' 'most calls at once'
    check_payments 100
    stop_fleet
}

# The simulator goes on with what a dead worker has asked for, and counts it: the fleet's limit bounds that too.
test_workers_that_are_killed_never_make_more_calls_than_the_fleet_limit() {
    local kills=0
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    prepare_fleet
    behave fx '{"minMs": 300, "maxMs": 600}'
    behave risk '{"minMs": 300, "maxMs": 600}'
    start_fleet --set domains.fx.fleet-limit=6 --set domains.risk.fleet-limit=6 --set domains.fx.max-attempts=1000 \
        --set domains.risk.max-attempts=1000 --set command-steps.bookFx.max-attempts=1000 --set command-steps.bookRisk.max-attempts=1000
    submit_all 150
    while ((kills < 12)); do
        sleep 0.9 # not a wait for anything: kills come at any moment
        kill_one "${callers[@]}"
    done
    finish 150 120
    note "$kills kills, $(count 'attempts > 1') commands claimed again"
    check_limits 6 6
    same "$(seen .fx.most_in_flight) $(seen .risk.most_in_flight)" '6 6' 'most calls at once'
    at_least "$(count 'attempts > 1')" 1 'commands that were claimed again'
    check_payments 150
    stop_fleet
}

run_tests "$@"
