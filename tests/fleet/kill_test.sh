#!/usr/bin/env bash
# kill -9 of a random worker every second, restarted at once, for COMMANDBUS_FLEET_SECONDS.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=${COMMANDBUS_FLEET_SECONDS:-30}
workers=(a b c d)

# kill_for SECONDS [ARGUMENTS...]: one a second, restarted with these arguments.
kill_for() {
    local until=$((SECONDS + $1)) name at=${EPOCHREALTIME/./}
    shift
    kills=0
    while ((SECONDS < until)); do
        keep_busy 30 200
        at=$((at + 1000000))
        # Not a wait for anything: kills come at any moment.
        sleep "$(awk -v us=$((at - ${EPOCHREALTIME/./})) 'BEGIN { print (us > 0 ? us / 1e6 : 0) }')"
        name=${workers[RANDOM % ${#workers[@]}]}
        kill_worker "$name"
        start_worker "$name" "$@"
        kills=$((kills + 1))
    done
}

# WRK.11, DESIGN 8: four workers of two slots, and a limit below what they could do. A second is the
# shortest time that a lease can have, so that what died with its worker soon comes back.
test_killed_workers_lose_nothing_and_the_limit_holds() {
    local name sent=0 limits
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    limits=(--set "domains.$domain.fleet-limit=6" --set "domains.$domain.visibility-timeout=1s"
        --set "domains.$domain.handler-timeout=1s" --set "domains.$domain.max-attempts=1000")
    tally_start
    for name in "${workers[@]}"; do start_worker "$name" "${limits[@]}"; done
    for name in "${workers[@]}"; do wait_ready "$name"; done

    kill_for "$seconds" "${limits[@]}"
    # A busy machine may have killed them before they had begun anything.
    for name in "${workers[@]}"; do wait_ready "$name"; done
    while (($(count 'attempts > 1') == 0)); do
        keep_busy 30 200
        name=$(busy_worker 'lease_until > clock_timestamp()')
        kill_worker "$name"
        start_ready "$name" "${limits[@]}"
        kills=$((kills + 1))
    done
    wait_until "$all_done" 120

    note "$kills kills, $sent commands, tally $(tally_stats)"
    at_most "$(tally_number max)" 6 'most calls at once'
    # It was worth trying: workers died in the middle of calls.
    at_least "$(sql "SELECT count(*) FROM commandbus.command_metadata WHERE attempts > 1")" 1 \
        'commands that were claimed again'
    for name in "${workers[@]}"; do wait_ready "$name"; done
    for name in "${workers[@]}"; do stop_worker "$name"; done
    check_ledger "$sent"
}

run_tests "$@"
