#!/usr/bin/env bash
# A worker that is paused (SIGSTOP) past its leases and goes on (SIGCONT) as if nothing had happened.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# held_by NAME: commands that the database says it holds.
held_by() {
    echo "SELECT c.command_id FROM commandbus.command_metadata c JOIN commandbus.worker w ON w.worker = c.lease_owner
          WHERE c.status = 'IN_PROGRESS' AND w.details ->> 'name' = '$1'"
}

# claimed_by NAME: how often it has claimed.
claimed_by() {
    sql "SELECT count(*) FROM commandbus.audit a JOIN commandbus.worker w USING (worker)
         WHERE a.event_type = 'RECEIVED' AND w.details ->> 'name' = '$1'"
}

# pause_in_two_calls NAME: the only worker so far; $lost is what it holds. On a slow machine the calls may
# have ended before the signal comes: then again.
pause_in_two_calls() {
    while :; do
        send_holds 2 1000
        sent=$((sent + 2))
        tally_wait open 2
        kill_worker "$1" STOP
        if ! is_met "(SELECT count(*) < 2 FROM ($(held_by "$1")) h)" 0.5; then break; fi
        kill_worker "$1" CONT
        wait_until "$all_done" 60
    done
    lost=$(sql "$(held_by "$1")" | paste -sd,)
}
# WRK.9, DESIGN 2 "Fence"
test_a_paused_worker_loses_its_commands_to_others_and_changes_nothing_when_it_goes_on() {
    local name sent=0 before settings
    settings=(--set "domains.$domain.visibility-timeout=4s" --set "domains.$domain.handler-timeout=4s")
    tally_start
    start_ready a "${settings[@]}"

    pause_in_two_calls a
    start_worker b "${settings[@]}"
    start_worker c "${settings[@]}"
    # It goes on in the moment in which others are in the middle of the same calls.
    wait_until "NOT EXISTS (SELECT FROM commandbus.command_metadata
                            WHERE command_id = ANY ('{$lost}') AND lease_no = 1)" 60
    before=$(claimed_by a)
    kill_worker a CONT
    send_holds 60 300
    wait_until "$all_done" 60

    # It comes too late: the second run of each is the last. It goes on with other things.
    same "$(sql "SELECT string_agg(DISTINCT lease_no::text, ',') FROM commandbus.command_metadata
                 WHERE command_id = ANY ('{$lost}')")" 2 'the fence of what was taken over'
    wait_log a 'event=(lease\.lost|command\.late)'
    at_least "$(claimed_by a)" $((before + 1)) 'claims, with those after the pause'
    same "$(tally_number max)" 6 'most calls at once'
    same "$(tally_number commands_repeated)" 2 'commands called twice'
    for name in a b c; do stop_worker "$name"; done
    check_ledger $((sent + 60))
}

# DESIGN 2, "The limit, exactly": capacity of a silent holder returns after its lease and its timeout.
test_the_calls_of_a_paused_worker_count_until_their_lease_and_timeout_are_over() {
    local name sent=0 limits
    limits=(--set "domains.$domain.fleet-limit=4" --set "domains.$domain.visibility-timeout=6s"
        --set "domains.$domain.handler-timeout=6s")
    tally_start
    start_ready a "${limits[@]}"

    pause_in_two_calls a
    start_worker b "${limits[@]}"
    start_worker c "${limits[@]}"
    # Others have run again what it held: its leases are over, its timeouts are not.
    wait_until "NOT EXISTS (SELECT FROM commandbus.command_metadata
                            WHERE command_id = ANY ('{$lost}') AND status <> 'COMPLETED')" 60
    send_holds 40 300
    tally_wait open 4
    same "$(sql "SELECT count(*) FROM commandbus.fleet_lease WHERE held_until > clock_timestamp()
                 AND command_id = ANY ('{$lost}')")" 2 'places of the paused worker'
    kill_worker a CONT
    wait_until "$all_done" 60

    same "$(tally_number max)" 4 'most calls at once'
    same "$(tally_number commands_repeated)" 2 'commands called twice'
    for name in a b c; do stop_worker "$name"; done
    check_ledger $((sent + 40))
}

run_tests "$@"
