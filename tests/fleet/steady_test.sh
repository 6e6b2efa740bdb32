#!/usr/bin/env bash
# Steady load: replicas × concurrent-messages is the number of calls in flight, seen from outside.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
unhurried_settings

# RL.1, WRK.3
test_one_worker_makes_as_many_calls_at_once_as_it_has_slots() {
    tally_start
    start_ready a

    tally_shut
    send_holds 12 50
    tally_wait open 2
    tally_open
    wait_until "$all_done" 60

    same "$(tally_number max)" 2 'most calls at once'
    same "$(tally_number total)" 12 calls
    stop_worker a
    check_ledger 12
}

# RL.1
test_three_workers_of_two_slots_make_six_calls_at_once_and_never_more() {
    local name
    tally_start
    for name in a b c; do start_worker "$name"; done
    for name in a b c; do wait_ready "$name"; done

    tally_shut
    send_holds 90 50
    tally_wait open 6
    tally_open
    wait_until "$all_done" 60

    same "$(tally_number max)" 6 'most calls at once'
    same "$(tally_number open)" 0 'open calls'
    # Nothing happened, so nothing was called twice.
    same "$(tally_number total)" 90 calls
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    for name in a b c; do stop_worker "$name"; done
    check_ledger 90
}

run_tests "$@"
