#!/usr/bin/env bash
# A slow downstream grows the queue and never the concurrency: calls a second are slots / latency.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# Of slots / latency, in percent. A sanitizer's overhead is part of the latency of a call.
least=90
if [[ $instrumented == yes ]]; then least=60; fi

# calls_per_second N: over all of the last N calls, from the first claim to the last outcome.
calls_per_second() {
    sql "SELECT round($1 / extract(epoch FROM max(at) FILTER (WHERE event_type = 'COMPLETED')
                                            - min(at) FILTER (WHERE event_type = 'RECEIVED')), 3)
         FROM commandbus.audit
         WHERE command_id IN (SELECT command_id FROM commandbus.command_metadata
                              ORDER BY created_at DESC LIMIT $1)"
}

# five_slots_at MS ROUNDS: what S4's table has for 5 slots, within ten percent. Whatever else this machine
# does at the time slows calls down, so the best of three counts; too fast is wrong every time.
five_slots_at() {
    local calls=$((5 * $2)) expected rate percent best=0 sent=0
    expected=$(awk -v ms="$1" 'BEGIN { print 5000 / ms }')
    for _ in 1 2 3; do
        tally_stats RESET >/dev/null
        send_holds "$calls" "$1"
        sent=$((sent + calls))
        wait_until "$all_done" 120
        rate=$(calls_per_second "$calls")
        percent=$(awk -v r="$rate" -v e="$expected" 'BEGIN { printf "%d", 100 * r / e }')
        note "$calls calls of $1 ms: $rate calls/s, $percent % of $expected"
        same "$(tally_number max)" 5 'most calls at once'
        at_most "$percent" 100 'percent of slots / latency'
        best=$((percent > best ? percent : best))
        if ((best >= least)); then break; fi
    done
    at_least "$best" $((least * 100 / $(slowness))) 'percent of slots / latency'
    all_sent=$((${all_sent:-0} + sent))
}

# RL.4: 25 calls/s at 200 ms; 2 s and 10 s are divided by two and by five.
test_five_slots_make_calls_at_slots_divided_by_latency() {
    tally_start
    start_ready a --set "domains.$domain.concurrent-messages=5" \
        --set "domains.$domain.visibility-timeout=10s" --set "domains.$domain.handler-timeout=10s"

    five_slots_at 200 15
    five_slots_at 1000 3
    five_slots_at 2000 2

    stop_worker a
    check_ledger "$all_sent"
}

run_tests "$@"
