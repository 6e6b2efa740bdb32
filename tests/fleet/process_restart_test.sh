#!/usr/bin/env bash
# The database dies in the middle of many processes and comes back: WRK.10, DESIGN 8.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/server.sh
. "$(dirname "$0")/server.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

start_many() { # N MEMBERS...
    local n=$1
    shift
    sql "SELECT count(commandbus.start_process('Five', '$(noted "$@")'::jsonb
             || CASE WHEN i % 10 = 0 THEN '{\"decline\": true}'::jsonb ELSE '{}' END)) FROM generate_series(1, $n) i" >/dev/null
}
ended() { wait_until "(SELECT count(*) >= $1 FROM commandbus.process WHERE commandbus.is_terminal(status))" 60; }

# A short lease: what the outage has cut is taken over. Steps may be tried again.
test_a_database_that_dies_twice_in_the_middle_of_processes_loses_none() {
    local what name
    stage_flows
    for name in a b; do start_worker "$name"; done
    for name in a b; do wait_ready "$name"; done
    start_many 200 '"maxAttempts": 20' '"retryMs": 20' '"sleeps": {"execute": 50, "BookFx": 20}'
    for what in 20 90; do
        ended "$what"
        server_stop immediate
        for name in a b; do wait_http "$name" 503; done
        server_start
        for name in a b; do wait_ready "$name"; done
    done
    wait_until "$all_settled AND $all_done" 120
    for name in a b; do stop_worker "$name"; done
    check_processes 'COMPENSATED 20, COMPLETED 180'
}

# DESIGN "Leases": an outage does not make the fleet run everything twice. Single attempts, longer than the outage
# in lease: none is begun again, none parked.
test_steps_that_run_all_through_a_restart_are_not_begun_again() {
    local name
    unhurried
    stage_flows
    for name in a b; do start_worker "$name"; done
    for name in a b; do wait_ready "$name"; done
    sql "SELECT count(commandbus.start_process('Long', '$(noted '"n": 3' '"stepMs": 600000' "$(gated step2)")')) FROM generate_series(1, 6)" >/dev/null
    until (($(grep -c ' step2 ' "$log") == 6)); do sleep 0.02; done
    server_stop immediate
    for name in a b; do wait_http "$name" 503; done
    server_start
    for name in a b; do wait_ready "$name"; done
    open_gate step2
    wait_until "$all_settled" 90
    same "$(wc -l <"$log")" 18 'effects'
    for name in a b; do stop_worker "$name"; done
    check_processes 'COMPLETED 6'
}

with_server "$@"
