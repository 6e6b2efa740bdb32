# Sourced by the tests of payments with trouble everywhere: APIs that fail as the simulator's chaos preset says, workers that are killed.

# shellcheck shell=bash disable=SC2154 # from lib.sh and payments.sh
# pay_with_chaos N: N payments through the fleet while one of its six workers is killed every second or so. What the gateway leaves
# without an answer is with an operator in the end; what waits for a person is decided by one.
pay_with_chaos() {
    local until=$((SECONDS + 60 + $1 / 5)) began=${EPOCHREALTIME/./} open=1 kills=0
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    prepare_fleet --chaos --seed 11
    behave network '{"timeout": 0}' # nobody here has the hours that a confirmation may take to be missed
    start_fleet --set domains.fx.fleet-limit=6 --set domains.risk.fleet-limit=6
    submit_all "$1"
    while is_submitting || ((open > 0)); do
        ((SECONDS < until)) || fail "they do not end: $(summary)"
        sleep 0.8 # not a wait for anything: kills come at any moment
        if is_submitting || ((open > $1 / 10)); then kill_one "${callers[@]}" "${payers[@]}"; fi
        play_person
        open=$(open_payments)
    done
    took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
    wait "$submitter" || fail "not all were submitted: $(sort "$work/submitted" | uniq -c)"

    note "$1 payments with chaos and $kills kills in $((took_ms / 1000)) s: $(outcomes)"
    note "$(simulator GET /stats | jq -c '[.fx, .risk, .gateway | {calls, most_in_flight, rejected_429, repeats}]')"
    check_limits 6 6
    check_payments "$1"
    at_least "$kills" 3 kills
    for status in COMPLETED COMPENSATED WAITING_FOR_TSQ; do
        at_least "$(sql "SELECT count(*) FROM commandbus.process WHERE status = '$status'")" 1 "payments that are $status"
    done
    check_submissions
    stop_fleet
}

# What was submitted and then undone cannot be taken back: the payment says so, with the reference and the level that failed.
check_submissions() {
    local undone
    undone=$(sql "SELECT count(*) FROM commandbus.process WHERE status = 'COMPENSATED' AND state ->> 'submissionReference' <> ''")
    note "$undone payments were undone after their submission"
    at_least "$undone" 1 'payments undone after their submission'
}
