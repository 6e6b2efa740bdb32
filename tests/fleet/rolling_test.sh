#!/usr/bin/env bash
# A rolling restart with surge: a fourth worker starts before one of three is told to end.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# roll CALLS: replaces a, b and c, one after the other, while there is always something to do, and each
# time after that many calls were open at once with the fourth one there.
roll() {
    local old new
    keep_busy 60 300
    for old in a b c; do start_worker "$old" "${fleet_limit[@]}"; done
    for old in a b c; do wait_ready "$old"; done
    for old in a b c; do
        new=new_$old
        start_ready "$new" "${fleet_limit[@]}"
        keep_busy 60 300
        wait_until "EXISTS (SELECT FROM commandbus.audit a JOIN commandbus.worker w USING (worker)
                            WHERE a.event_type = 'RECEIVED' AND w.details ->> 'name' = '$new')" 60
        keep_busy 60 300
        tally_wait open "$1"
        stop_worker "$old"
    done
    wait_until "$all_done" 120
    for old in a b c; do stop_worker "new_$old"; done
}

# DESIGN 2, "The limit, exactly"
test_with_a_fleet_limit_a_surge_makes_no_more_calls_at_once() {
    local sent=0 fleet_limit=(--set "domains.$domain.fleet-limit=6")
    tally_start

    roll 6

    same "$(tally_number max)" 6 'most calls at once'
    # Whoever was told to end has ended what it began, so nothing was called twice.
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    check_ledger "$sent"
}

# The same without a limit: shows that the test above could fail.
test_without_a_fleet_limit_a_surge_makes_more_calls_at_once() {
    local sent=0 fleet_limit=()
    tally_start

    roll 8

    same "$(tally_number max)" 8 'most calls at once'
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    check_ledger "$sent"
}

run_tests "$@"
