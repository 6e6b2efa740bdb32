#!/usr/bin/env bash
# Everything that a worker can do, at once and with many slots: what ThreadSanitizer is to see.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# send_mixture N: N of each kind; what becomes of each is in its comment.
send_mixture() {
    local kind kinds=(
        'Noop|{}'                                                # completed
        'Echo|{"amount": "12.50"}'                               # completed
        'Sleep|{"ms": 20, "interruptible": true}'                # completed, if need be elsewhere
        'Record|{"account": "A-1", "amount": "12.50"}'           # completed, with its booking
        'Extend|{"ms": 1500, "times": 2, "sleep_ms": 10}'        # completed
        'Fail|{"outcome": "TRANSIENT", "until_attempt": 2}'      # completed in its third attempt
        'Fail|{"outcome": "BUSINESS_RULE"}'                      # failed
        'Fail|{"outcome": "PERMANENT"}'                          # TSQ
        'Fail|{"outcome": "TRANSIENT"}'                          # TSQ after three attempts
        'BadResult|{"kind": "nan"}'                              # TSQ
        'BadOutcome|{}'                                          # TSQ after three attempts
        'BadEffect|{"kind": "null"}'                             # TSQ
    )
    for kind in "${kinds[@]}"; do send_commands "$1" "${kind%%|*}" "${kind#*|}" 'max_attempts => 3'; done
}

# scrape NAME...: reads what they say of themselves, until told to end.
scrape() {
    local name
    while [[ ! -e $work/enough ]]; do
        for name; do
            http_get "$name" /metrics
            http_get "$name" /readyz
            http_get "$name" /livez
        done
        sleep 0.05
    done
}

# WRK.4–7, WRK.11, WRK.14
test_every_kind_of_outcome_at_once_in_two_workers_that_are_replaced_meanwhile() {
    local n=40 name settings
    settings=(--set "domains.$domain.concurrent-messages=24" --set "domains.$domain.prefetch=8"
        --set "domains.$domain.visibility-timeout=5s" --set "domains.$domain.handler-timeout=5s")
    "$COMMANDBUS_BIN" migrate --quiet --set "$COMMANDBUS_SOURCE_DIR/handlers/sample/sql" >/dev/null
    for name in a b; do start_worker "$name" "${settings[@]}"; done
    for name in a b; do wait_ready "$name"; done
    scrape a b &
    others=$!

    send_mixture "$n"
    wait_until "(SELECT count(*) > $n FROM commandbus.command_metadata WHERE status = 'COMPLETED')" 60
    start_worker c "${settings[@]}"
    stop_worker a
    send_mixture "$n"
    wait_until "$all_done" 120

    : >"$work/enough"
    wait "$others"
    n=$((2 * n))
    same "$(sql "SELECT count(*) FROM sample.ledger")" $n bookings
    for name in b c; do wait_ready "$name"; done
    for name in b c; do stop_worker "$name"; done
    check_ledger $((12 * n)) "COMPLETED $((6 * n)), FAILED $n, IN_TROUBLESHOOTING_QUEUE $((5 * n))"
}

run_tests "$@"
