#!/usr/bin/env bash
# A worker that is killed at each point of a process, one after the other, and restarted:
# STP.5, STP.8, STP.9, RL.2, DESIGN 8.4.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"
hasty_settings

# Each place of execute(), of its local steps, of its handlers and its one step with an effect.
forward=({before,after,in,effect}:validate {before,after}:bookFx {in,effect}:BookFx {in,effect}:enrich
    {before,after}:bookRisk {in,effect}:BookRisk {before,after,in,effect}:execute)
backward=({in,effect}:{undoExecute,ReleaseRisk,ReleaseFx})

# expected POINT NAME: how often NAME's effect is made when the worker dies there. What was made and not known
# to be durable is made again: a line was written ("effect"), or the end of execute was not settled ("after").
expected() {
    if [[ $1 == "effect:$2" || ($1 == after:execute && $2 == execute) ]]; then echo 2; else echo 1; fi
}

# dies TIMES: worker a, by what it runs; restarted each time.
dies() {
    local i
    for ((i = 0; i < $1; i++)); do
        wait_exit a 137 20
        start_worker a
    done
}

# dies_at POINT STATUS ORDER MEMBERS...: a process whose worker dies there, once; how it ends, and that everything
# was made as often as it had to be, with one key.
dies_at() {
    local point=$1 status=$2 order=$3 id name sent=()
    shift 3
    id=$(start Five "$(noted "\"dieAt\": \"$point\"" '"maxAttempts": 2' '"retryMs": 50' "$@")")
    dies 1
    status_is "$id" "$status" 20
    same "$(order "$id")" "$order" "the order with $point"
    for name in $order; do
        same "$(effects "$id" "$name") $(keys "$id" "$name")" "$(expected "$point" "$name") 1" \
            "effects and keys of $name with $point"
        if [[ $name != *xecute ]]; then sent+=("$name 1"); fi
    done
    same "$(commands_of "$id")" "$(printf '%s\n' "${sent[@]}" | sort | paste -sd, | sed 's/,/, /g')" "commands with $point"
}

# STP.5, STP.9, RL.2
test_killed_at_each_point_on_the_way_forward_it_completes_and_sends_each_command_once() {
    local point
    stage_flows
    start_ready a
    for point in "${forward[@]}"; do dies_at "$point" COMPLETED 'BookFx BookRisk execute'; done
    wait_ready a
    stop_worker a
    check_processes "COMPLETED ${#forward[@]}"
    note "${#forward[@]} points"
}

# STP.8, STP.9
test_killed_at_each_point_and_declined_at_the_end_everything_is_undone_once_and_in_order() {
    local point
    stage_flows
    start_ready a
    for point in "${forward[@]}" "${backward[@]}"; do
        dies_at "$point" 'COMPENSATED DECLINED' 'BookFx BookRisk execute undoExecute ReleaseRisk ReleaseFx' '"decline": true'
    done
    wait_ready a
    stop_worker a
    check_processes "COMPENSATED $((${#forward[@]} + ${#backward[@]}))"
    note "$((${#forward[@]} + ${#backward[@]})) points"
}

# The points between two transactions: nobody but one part of a worker is there, makes its one movement, and is
# killed. $moves counts them.
move() { # FEATURE CONDITION
    only "$1"
    start_worker a "${role[@]}"
    wait_until "$2" 20
    kill_worker a
    moves=$((moves + 1))
}
no_command="NOT EXISTS (SELECT FROM commandbus.command_metadata WHERE status IN ('PENDING', 'IN_PROGRESS'))"
no_reply="NOT EXISTS (SELECT FROM pgmq.q_payments__replies)"
none_due="NOT EXISTS (SELECT FROM commandbus.process WHERE wake_at <= commandbus.now() OR lease_owner IS NOT NULL)"

# move_until_over: sent, made, answered, delivered, taken: one after the other until there is nothing to move.
move_until_over() {
    moves=0
    while (($(sql "SELECT count(*) FROM commandbus.process WHERE NOT commandbus.is_terminal(status)"))); do
        move process-execution "$none_due"
        move command-handlers "$no_command"
        move reply-processing "$no_reply"
        ((moves < 40)) || fail "it does not end: $(summary)"
    done
}

# DESIGN 2, "One transition, one transaction"
test_killed_after_each_single_movement_it_goes_on_where_it_was() {
    stage_flows
    start_ready a
    stop_worker a # the types are registered
    completed=$(start Five "$(noted)")
    declined=$(start Five "$(noted '"decline": true')")
    move_until_over
    status_is "$completed" COMPLETED
    status_is "$declined" 'COMPENSATED DECLINED'
    for id in "$completed" "$declined"; do
        same "$(effects "$id")" "$(keys "$id")" 'effects: as many as keys'
    done
    same "$(effects "$completed") $(effects "$declined")" '3 6' effects
    check_processes 'COMPENSATED 1, COMPLETED 1'
    note "$moves movements"
}

# STP.9: two attempts, and the worker dies in both: a person decides.
test_a_step_that_kills_its_worker_is_begun_as_often_as_it_may_and_then_parked() {
    stage_flows
    start_ready a
    # Without marks it dies each time.
    id=$(start Five "{\"log\": \"$log\", \"dieAt\": \"effect:execute\", \"maxAttempts\": 3}")
    dies 3
    status_is "$id" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY'
    same "$(effects "$id" execute) $(keys "$id" execute)" '3 1' 'effects and keys'
    same "$(record "$id" STEP execute)" 'STARTED 3' 'the record'
    # Nobody begins it again, whatever comes; after an operator's retry its attempts are counted
    # from one again.
    respond "$id" go
    wait_ready a
    same "$(effects "$id" execute)" 3 'effects'
    sql "SELECT commandbus.process_retry('$id', 'me', 'try again')" >/dev/null
    dies 1
    wait_exit a 137 20
    same "$(record "$id" STEP execute)" 'STARTED 2' 'the record, counted anew'
    same "$(keys "$id" execute)" 1 'keys, also after an operator has retried'
}

# STP.9, DESIGN 4: max_attempts 1 with STARTED and no end → TSQ, never rerun
test_a_step_with_one_attempt_never_runs_twice_wherever_its_worker_dies() {
    local point
    stage_flows
    start_ready a
    for point in in:execute effect:execute after:execute; do
        id=$(start Five "$(noted "\"dieAt\": \"$point\"" '"decline": true')")
        dies 1
        status_is "$id" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY' 20
        at_most "$(effects "$id" execute)" 1 "effects with $point"
    done
    # An inline compensation with one attempt, too.
    for point in in:undoExecute effect:undoExecute; do
        id=$(start Five "$(noted "\"dieAt\": \"$point\"" '"decline": true')")
        dies 1
        status_is "$id" 'WAITING_FOR_TSQ COMPENSATION_FAILED' 20
        at_most "$(effects "$id" undoExecute)" 1 "effects with $point"
        same "$(effects "$id" ReleaseRisk)" 0 "what comes behind it, with $point"
    done
    wait_ready a
    stop_worker a
    check_processes 'WAITING_FOR_TSQ 5'
}

# DESIGN 2: a command that has killed its workers max_attempts times goes to the TSQ, and its process with it.
test_a_handler_that_kills_its_worker_ends_in_the_tsq_and_its_process_waits_for_a_person() {
    stage_flows
    start_ready a
    id=$(start Five "{\"log\": \"$log\", \"dieAt\": \"effect:BookRisk\"}")
    dies 3
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'
    same "$(effects "$id" BookRisk) $(keys "$id" BookRisk)" '3 1' 'effects and keys'
    same "$(sql "SELECT status || ' ' || error_code FROM commandbus.command_metadata WHERE command_type = 'BookRisk'")" \
        'IN_TROUBLESHOOTING_QUEUE LEASE_EXHAUSTED' 'the command'
    sql "SELECT commandbus.process_cancel('$id', 'me', 'undo it', true)" >/dev/null
    status_is "$id" CANCELED
    same "$(order "$id")" 'BookFx BookRisk ReleaseFx' 'what was undone'
    wait_ready a
    stop_worker a
    check_processes 'CANCELED 1'
}

# DESIGN 8.7: code that dies outside of any step is not claimed for ever, and does not delay others.
test_a_process_that_kills_its_workers_outside_of_steps_is_parked_in_the_end() {
    local deaths=0
    stage_flows
    start_ready a
    id=$(start Five "{\"log\": \"$log\", \"dieAt\": \"before:validate\"}")
    while ! is_met "(SELECT status FROM commandbus.process WHERE process_id = '$id') = 'WAITING_FOR_TSQ'" 0.2; do
        is_alive a && continue
        wait_exit a 137
        deaths=$((deaths + 1))
        at_most "$deaths" 12 'workers that it has killed'
        start_worker a
    done
    status_is "$id" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY'
    other=$(start Five "$(noted)")
    status_is "$other" COMPLETED
    wait_ready a
    stop_worker a
    check_processes 'COMPLETED 1, WAITING_FOR_TSQ 1'
    note "$deaths workers died of it"
}

run_tests "$@"
