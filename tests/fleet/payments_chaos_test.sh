#!/usr/bin/env bash
# "Bookings at the simulator equal to what the payments say", with trouble everywhere; and that it would be seen if they were not.
# SIM.1, SIM.3, RL.1. With 2,000 payments: payments_chaos_long_test.sh.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"
# shellcheck source=tests/fleet/payments_chaos.sh
. "$(dirname "$0")/payments_chaos.sh"

test_with_chaos_and_killed_workers_nothing_is_lost_and_nothing_left_behind() { pay_with_chaos 250; }

# sees REGEX FILE JQ: what the simulator has, changed.
sees_booking() {
    local problems
    cp "$work/$2.json" "$work/kept"
    jq -c "$3" "$work/kept" >"$work/$2.json"
    problems=$(payment_problems 6)
    grep -Eq "$1" <<<"$problems" || fail "not seen: $1, but: $problems"
    mv "$work/kept" "$work/$2.json"
}
# sees_deed REGEX SQL
sees_deed() {
    local problems
    problems=$(payment_problems 6 "$2")
    grep -Eq "$1" <<<"$problems" || fail "not seen: $1, but: $problems"
}

# Three payments that are complete, two that the gateway declined, one that the network did after it was submitted.
test_the_ledger_sees_whatever_does_not_fit() {
    local i
    prepare
    start_simulator
    start_ready api
    for i in 1 2 3; do submit "complete-$i"; done
    wait_until "(SELECT count(*) FROM payments.payment WHERE status = 'COMPLETE') = 3" 60
    behave gateway '{"failBusinessRule": 100}'
    for i in 1 2; do submit "declined-$i"; done
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPENSATED') = 2" 60
    behave gateway '{"failBusinessRule": 0}'
    behave network '{"failBusinessRule": 100}'
    submit failed-1
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPENSATED') = 3" 60
    check_payments 6

    same "$(payment_problems 7)" 'lost a payment was submitted and never started'
    sees_booking '^lost payment .* is complete, and fx has nothing of it$' fx '.[1:] | .[1:] | .[1:]'
    sees_booking '^lost command BookRisk .* is complete, and nobody' risk '.[1:]'
    sees_booking '^lost payment .* is complete, and gateway has nothing' gateway '[]'
    sees_booking '^duplicate payment .* is at gateway for the 2. time' gateway '. + .[:1]'
    sees_booking '^duplicate fx of payment .* is released 2 times' fx 'map(if .released == 1 then .released = 2 else . end)'
    sees_booking '^left_behind payment .* is COMPENSATED, and risk is not released' risk 'map(.released = 0)'
    sees_booking '^left_behind payment .* is complete, and fx is released' fx 'map(.released = 1)'
    sees_booking '^left_behind risk has a booking of nobody' risk '. + [.[0] | .key = "00000000-0000-7000-8000-000000000000"]'
    sees_deed '^lost payment .* is EXECUTING$' "UPDATE commandbus.process SET status = 'EXECUTING'"
    sees_deed '^left_behind payment .* is PROCESSING, and its process is COMPLETED' "UPDATE payments.payment SET status = 'PROCESSING'"
    sees_deed '^left_behind payment .* is COMPENSATED, and does not say that it was submitted' \
        "UPDATE commandbus.process SET state = state - 'submissionReference'"
    same "$(payment_problems 6)" '' 'what is wrong in the end'
    stop_worker api
}

run_tests "$@"
