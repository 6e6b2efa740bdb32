#!/usr/bin/env bash
# The limit as the called ones see it: workers of the profile ratelimited-worker call the simulator's FX and risk APIs, and
# its counters say how many calls there were at once. RL.1, RL.4, SIM.2.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/simulator.sh
. "$(dirname "$0")/simulator.sh"

domain=fx
fx_data='{"amount": "100.00", "fromCurrency": "EUR", "toCurrency": "USD", "valueDate": "2099-01-31"}'
risk_data='{"amount": "100.00", "currency": "EUR", "debitAccount": "A-1", "creditAccount": "B-2"}'

# ---- the fleet ----

workers=(a b c)
# Times as short as they can be; what the profile says about slots is the profile's.
prepare() {
    local d
    cp "$COMMANDBUS_SOURCE_DIR"/config/*.cfg "$work/config/"
    "$COMMANDBUS_BIN" queue create risk >/dev/null
    simulator_start "$@"
    worker_settings=("handlers.fx.url=http://127.0.0.1:$simulator_port" "handlers.risk.url=http://127.0.0.1:$simulator_port")
    for d in fx risk; do
        worker_settings+=("domains.$d.poll-interval=100ms" "domains.$d.visibility-timeout=15s"
            "domains.$d.handler-timeout=15s" "domains.$d.retry-backoff=200ms" "domains.$d.max-attempts=1000")
    done
}
start_fleet() {
    local name
    fleet=(--profile ratelimited-worker "$@")
    for name in "${workers[@]}"; do start_worker "$name" "${fleet[@]}"; done
    for name in "${workers[@]}"; do wait_ready "$name"; done
}
stop_fleet() {
    local name
    for name in "${workers[@]}"; do wait_ready "$name"; done
    for name in "${workers[@]}"; do stop_worker "$name"; done
}
send_fx() { send_commands "$1" BookFx "$fx_data"; }
send_risk() { (domain=risk && send_commands "$1" BookRisk "$risk_data"); }
# Each command booked once, however often it was called for.
check_bookings() { same "$(seen .fx.bookings.booked)" "$1" 'contracts booked'; }

# RL.1: 3 workers of 2 and 2.
test_three_workers_of_two_slots_make_six_calls_at_once_and_never_seven() {
    prepare
    behave fx '{"minMs": 150, "maxMs": 250}'
    behave risk '{"minMs": 150, "maxMs": 250}'
    start_fleet
    send_fx 200
    send_risk 200

    wait_until "$all_done" 240

    note "$(simulator GET /stats | jq -c '{fx: .fx | {calls, most_in_flight, rejected_429}, risk: .risk | {calls, most_in_flight, rejected_429}}')"
    same "$(seen .fx.most_in_flight)" 6 'most calls to fx at once'
    same "$(seen .risk.most_in_flight)" 6 'most calls to risk at once'
    same "$(seen '.fx.rejected_429 + .risk.rejected_429')" 0 'calls over capacity'
    check_bookings 200
    same "$(seen .risk.bookings.booked)" 200 'payments judged'
    stop_fleet
    check_ledger 200
    domain=risk
    check_ledger 200
}

# The same with a worker more: shows that the test above could fail, and what over capacity looks like.
test_a_fourth_worker_breaks_the_limit_and_still_nothing_is_lost() {
    prepare
    workers=(a b c d)
    behave fx '{"minMs": 200, "maxMs": 300}'
    start_fleet
    send_fx 80

    await_seen .fx.rejected_429 1
    wait_until "$all_done" 240

    at_least "$(seen .fx.most_in_flight)" 7 'most calls to fx at once'
    check_bookings 80
    stop_fleet
    check_ledger 80
}

# RL.1, DESIGN 2: a limit of the fleet below what the replicas could do.
test_a_fleet_limit_of_four_makes_four_calls_at_once() {
    prepare
    behave fx '{"minMs": 150, "maxMs": 250}'
    start_fleet --set domains.fx.fleet-limit=4
    send_fx 120

    wait_until "$all_done" 240

    same "$(seen .fx.most_in_flight)" 4 'most calls to fx at once'
    check_bookings 120
    stop_fleet
    check_ledger 120
}

# kill_busy N: so many times a worker that is calling, each restarted at once. There is always more
# to do.
kill_busy() {
    local name
    for ((kills = 0; kills < $1; kills++)); do
        if (($(count "status = 'PENDING'") < 60)); then
            send_fx 60
            sent=$((sent + 60))
        fi
        name=$(busy_worker "domain = 'fx'")
        kill_worker "$name"
        start_worker "$name" "${fleet[@]}"
        sleep 0.5 # not a wait for anything: kills come at any moment
    done
}

# RL.1: the simulator goes on with what a dead worker has asked for, and counts it. The limit bounds that too.
test_workers_that_are_killed_never_make_more_calls_than_the_fleet_limit() {
    local sent=0 kills
    prepare
    behave fx '{"minMs": 300, "maxMs": 600}'
    start_fleet --set domains.fx.fleet-limit=6 --set domains.fx.visibility-timeout=3s --set domains.fx.handler-timeout=3s

    send_fx 60
    sent=60
    await_seen .fx.most_in_flight 6 120
    kill_busy 12
    wait_until "$all_done" 240

    note "$kills kills, $sent commands, $(simulator GET /stats | jq -c '.fx | {calls, most_in_flight, rejected_429, repeats}')"
    same "$(seen .fx.rejected_429)" 0 'calls over capacity'
    same "$(seen .fx.most_in_flight)" 6 'most calls to fx at once'
    at_least "$(count 'attempts > 1')" 1 'commands that were claimed again'
    check_bookings "$sent"
    stop_fleet
    check_ledger "$sent"
}

# Without it: a worker that dies and comes back calls while the API is still busy with what it asked before.
test_without_a_fleet_limit_a_worker_that_is_killed_makes_more_calls() {
    prepare --fx-capacity 20
    behave fx '{"minMs": 12000, "maxMs": 12000}' # longer than a start takes
    start_fleet
    send_fx 20
    await_seen .fx.in_flight 6

    kill_worker a
    start_worker a "${fleet[@]}"

    await_seen .fx.most_in_flight 7
    behave fx '{"minMs": 0, "maxMs": 0}'
    wait_until "$all_done" 240
    check_bookings 20
    stop_fleet
    check_ledger 20
}

# slowed MS ROUNDS: 120 more commands, and the time until six slots have made so many calls each.
slowed() {
    local start
    behave fx "{\"minMs\": $1, \"maxMs\": $1}"
    simulator POST /stats/reset >/dev/null
    start=${EPOCHREALTIME/./}
    send_fx 120
    sent=$((sent + 120))
    await_seen .fx.outcomes.ok $((6 * $2))
    took_ms=$(((${EPOCHREALTIME/./} - start) / 1000))
    waiting=$(count "status = 'PENDING'")
    note "$1 ms: $((6 * $2)) calls in $took_ms ms, most at once $(seen .fx.most_in_flight), $waiting waiting"
    # Calls of 20 ms need not meet on a machine that has much to do; longer ones do.
    at_most "$(seen .fx.most_in_flight)" 6 'most calls to fx at once'
    if (($1 >= 500)); then same "$(seen .fx.most_in_flight)" 6 'most calls to fx at once'; fi
    # Six slots are busy all the time and never more: slots / latency calls a second. Calls of before may be among the first.
    at_least "$took_ms" $((($2 - 1) * $1)) 'the time of these calls'
}

# RL.4 with latencies of 20 ms to 1 s: tests/fleet/adaptive_test.sh has the rates of S4's table, this what the API sees.
test_a_slow_api_grows_the_queue_and_never_the_calls() {
    local sent=0 took_ms waiting before
    prepare
    start_fleet
    slowed 20 20
    same "$waiting" 0 'commands waiting'
    slowed 500 4
    at_least "$waiting" 30 'commands waiting'
    before=$waiting
    slowed 1000 3
    at_least "$waiting" $((before + 1)) 'commands waiting'

    behave fx '{"minMs": 0, "maxMs": 0}'
    wait_until "$all_done" 240
    check_bookings "$sent"
    same "$(seen .fx.rejected_429)" 0 'calls over capacity'
    stop_fleet
    check_ledger "$sent"
}

# "The simulator or API away: transient, queue grows, nothing lost."
test_an_api_that_is_away_loses_nothing_and_goes_on_when_it_is_back() {
    prepare
    behave fx '{"minMs": 3000, "maxMs": 3000}' # there is still something to do when it goes
    start_fleet
    send_fx 60
    await_seen .fx.in_flight 6 120
    simulator_kill
    wait_until "EXISTS (SELECT FROM commandbus.audit WHERE event_type = 'FAILED' AND details ->> 'error_code' = 'API_UNREACHABLE')" 30
    at_least "$(count "status = 'PENDING'")" 1 'commands waiting'

    simulator_start
    wait_until "$all_done" 240

    same "$(count "error_code IS NOT NULL AND status <> 'COMPLETED'")" 0 'commands that failed'
    stop_fleet
    check_ledger 60
}

run_tests "$@"
