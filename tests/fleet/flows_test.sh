#!/usr/bin/env bash
# The set flows does what it is told, so that other tests can build on it; and on the way, what a process is
# for: its worker may die anywhere, and each effect is made as often as was said.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"

# dies_once NAME: its process kills it; another worker takes its place, with leases that do not run out on a busy machine.
dies_once() {
    wait_exit "$1" 137
    start_ready again --set domains.payments.visibility-timeout=20s
}

# RL.2
test_five_books_enriches_and_executes() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted)")
    status_is "$id" COMPLETED
    same "$(awk '{ print $2 }' "$log" | paste -sd ' ')" 'BookFx BookRisk execute' 'the log'
    same "$(state_of "$id" "done")" 5 'steps done'
    [[ $(state_of "$id" fxReference) =~ ^[0-9a-f]{8}$ ]] || fail "no reference of fx: $(state_of "$id" fxReference)"
    stop_worker a
}

# STP.8
test_declined_at_the_end_everything_is_undone_in_reverse_order() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"decline": true')")
    status_is "$id" 'COMPENSATED DECLINED'
    same "$(awk '{ print $2 }' "$log" | paste -sd ' ')" \
        'BookFx BookRisk execute undoExecute ReleaseRisk ReleaseFx' 'the log'
    stop_worker a
}

# STP.9; DESIGN 4: max_attempts 1 with STARTED and no end → TSQ, never rerun
test_a_worker_that_dies_behind_the_effect_of_a_single_attempt_leaves_it_to_a_person() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"dieAt": "effect:execute"')")
    dies_once a
    status_is "$id" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY'
    same "$(effects "$id" execute)" 1 'effects'
    stop_worker again
}

# DESIGN 4: its idempotency key is the same on each attempt
test_with_another_attempt_it_runs_again_with_the_same_key() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"dieAt": "effect:execute"' '"maxAttempts": 2')")
    dies_once a
    status_is "$id" COMPLETED
    same "$(effects "$id" execute) $(keys "$id" execute)" '2 1' 'effects and keys'
    stop_worker again
}

# DESIGN 8.4: whatever dies, each command step has one live command
test_a_worker_that_dies_around_a_command_sends_it_once() {
    stage_flows
    start_ready a
    for point in before:bookFx after:bookFx before:execute after:execute; do
        id=$(start Five "$(noted "\"dieAt\": \"$point\"" '"maxAttempts": 2')")
        wait_exit a 137
        start_ready a
        status_is "$id" COMPLETED
        same "$(effects "$id" BookFx) $(effects "$id" BookRisk)" '1 1' "effects of commands with $point"
        same "$(keys "$id" execute)" 1 "keys of execute with $point"
    done
    stop_worker a
}

# STP.7, STP.8, RL.3
test_steps_and_commands_fail_as_they_are_told() {
    stage_flows
    start_ready a
    transient=$(start Five "$(noted '"maxAttempts": 3' '"retryMs": 50' '"fails": {"execute": "TRANSIENT:1", "BookFx": "TRANSIENT:1"}')")
    exhausted=$(start Five "$(noted '"fails": {"execute": "TRANSIENT"}')")
    permanent=$(start Five "$(noted '"fails": {"enrich": "PERMANENT"}')")
    declined=$(start Five "$(noted '"fails": {"BookRisk": "BUSINESS"}')")
    stuck=$(start Five "$(noted '"fails": {"BookRisk": "PERMANENT"}')")
    status_is "$transient" COMPLETED
    same "$(effects "$transient" BookFx) $(keys "$transient" BookFx)" '2 1' 'attempts and keys of BookFx'
    same "$(effects "$transient" execute) $(keys "$transient" execute)" '2 1' 'attempts and keys of execute'
    status_is "$exhausted" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED'
    status_is "$permanent" 'WAITING_FOR_TSQ PERMANENT_FAILURE'
    status_is "$declined" 'COMPENSATED DECLINED'
    same "$(effects "$declined" ReleaseFx)" 1 'releases'
    status_is "$stuck" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'
    stop_worker a
}

# RL.3, DESIGN 8.4
test_when_the_first_desk_fails_the_second_is_asked_once_whoever_dies() {
    stage_flows
    start_ready a
    for failure in BUSINESS PERMANENT; do
        id=$(start Second "$(noted "\"fails\": {\"BookFx\": \"$failure\"}")")
        status_is "$id" COMPLETED
        same "$(effects "$id" BookFx) $(effects "$id" BookRisk)" '1 1' "effects with $failure"
    done
    same "$(state_of "$id" arrived)" BROKEN 'what the code took'
    same "$(sql "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'IN_TROUBLESHOOTING_QUEUE'")" 0 \
        'commands left in the troubleshooting queue'
    for point in after:askFx after:askRisk; do
        id=$(start Second "$(noted "\"dieAt\": \"$point\"" '"fails": {"BookFx": "PERMANENT"}')")
        wait_exit a 137
        start_ready a
        status_is "$id" COMPLETED
        same "$(effects "$id" BookFx) $(effects "$id" BookRisk)" '1 1' "effects with $point"
    done
    stop_worker a
}

# STP.11
test_letters_are_each_applied_once_in_the_order_of_arrival() {
    stage_flows
    start_ready a
    id=$(start Letters '{}')
    for letter in L3 L1 L4 L2; do respond "$id" "$letter"; done
    status_is "$id" COMPLETED
    same "$(state_of "$id" arrived)" 'L3 L1 L4 L2' 'the order'
    stop_worker a
}

test_long_makes_as_many_steps_as_it_is_told() {
    stage_flows
    start_ready a
    id=$(start Long "$(noted '"n": 40')")
    locals=$(start Locals '{}')
    status_is "$id" COMPLETED
    same "$(effects "$id") $(keys "$id")" '40 40' 'effects and keys'
    status_is "$locals" COMPLETED
    same "$(state_of "$locals" "done")" 3 'local steps'
    stop_worker a
}

run_tests "$@"
