#!/usr/bin/env bash
# The database goes away under load and comes back: WRK.10, DESIGN "Leases".
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/server.sh"

# Room for a slow machine: the visibility timeout that holders get after a restart counts from the first claim.
vt=12
patient_settings=(
    --set domains.$domain.visibility-timeout=${vt}s
    --set domains.$domain.handler-timeout=${vt}s
    --set domains.$domain.concurrent-messages=4
)

start_all() {
    local name
    for name; do start_worker "$name" "${patient_settings[@]}"; done
    for name; do wait_ready "$name"; done
}
wait_all() { # STATUS NAME...
    local name status=$1
    shift
    for name; do wait_http "$name" "$status"; done
}

# WRK.10
test_outcomes_of_an_outage_longer_than_the_leases_are_settled_after_it_and_nothing_is_run_twice() {
    local gone name
    tally_start
    start_all a b
    send_holds 30 1500
    tally_wait total 12

    server_stop immediate
    gone=$SECONDS
    wait_all 503 a b
    [[ $http_body == *database* ]] || fail "/readyz says '$http_body'"
    until (($(tally_number open) == 0)); do sleep 0.05; done
    # Every lease must have run out: that time has to pass.
    sleep $((gone + vt + 1 - SECONDS))
    server_start
    # The first to claim is somebody new with room for all, before the others have found the server again.
    start_worker c "${patient_settings[@]}" --set domains.$domain.concurrent-messages=30

    wait_until "$all_done" 90
    wait_all 200 a b
    # A claim whose answer was lost is given back before its handler is entered.
    same "$(tally_number total)" 30 calls
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    check_ledger 30
    same "$(sql "SELECT count(*) FROM commandbus.audit WHERE event_type = 'STALE_OUTCOME'")" 0 'late outcomes'
    same "$(count 'attempts <> 1')" 0 'commands charged for the outage'
    at_least "$(metric a 'commandbus_reconnects_total{connection="settle"}')" 1 reconnects
    for name in a b c; do stop_worker "$name"; done
}

# WRK.10: c has free slots all the time, and must not take what the others still run.
test_commands_that_run_all_through_a_restart_are_not_run_twice() {
    local name
    tally_start
    start_all a b
    tally_shut
    send_holds 8 1 "$patience"
    tally_wait open 8
    start_all c

    server_stop fast
    wait_all 503 a b c
    server_start

    wait_all 200 a b c
    tally_open
    wait_until "$all_done" 90
    check_ledger 8
    same "$(count 'lease_no <> 1')" 0 'commands run twice'
    for name in a b c; do stop_worker "$name"; done
}

# WRK.10, RL.1: leases as short as everywhere in these tests, so that work is taken over, too.
test_restarts_of_every_kind_under_load_lose_nothing_and_keep_the_limit() {
    local name what
    tally_start
    for name in a b c; do start_worker "$name" --set domains.$domain.fleet-limit=5; done
    wait_all 200 a b c
    send_holds 150 300

    for what in fast crash immediate crash; do
        tally_stats RESET >/dev/null
        tally_wait max 4
        if [[ $what == crash ]]; then
            server_crash
        else
            server_stop "$what"
            wait_all 503 a b c
            server_start
        fi
        wait_all 200 a b c
        at_most "$(tally_number max)" 5 'most calls at once'
    done

    wait_until "$all_done" 120
    at_most "$(tally_number max)" 5 'most calls at once'
    for name in a b c; do stop_worker "$name"; done
    check_ledger 150
}

# WRK.10, WRK.11
test_a_worker_told_to_end_during_an_outage_settles_if_the_server_comes_back_in_time() {
    local name
    tally_start
    start_all patient
    start_worker hasty "${patient_settings[@]}" --set worker.shutdown-timeout=1s
    wait_all 200 hasty
    tally_shut
    send_holds 8 1 'timeout_seconds => 30' # and so long are the leases of what is left behind
    tally_wait open 8

    server_stop fast
    wait_all 503 patient hasty
    for name in patient hasty; do kill -TERM "${worker_pid[$name]}"; done
    wait_exit hasty 1
    tally_open
    until (($(tally_number open) == 0)); do sleep 0.05; done
    server_start
    wait_exit patient 0
    same "$(count "status = 'COMPLETED' AND attempts = 1")" 4 'commands settled after the outage'
    same "$(count "status = 'IN_PROGRESS' AND attempts = 1")" 4 'commands left behind'

    start_all c
    wait_until "$all_done" 60
    stop_worker c
    check_ledger 8
    same "$(count 'attempts = 2')" 4 'commands redelivered and charged'
}

with_server "$@"
