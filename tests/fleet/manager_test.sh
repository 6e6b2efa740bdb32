#!/usr/bin/env bash
# The reply-driven manager (STEP_BASED) in real workers: beside the other model, dying, replayed.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

# start_machine MEMBERS...: prints its id, which is in its state too.
start_machine() {
    local id
    id=$(sql 'SELECT gen_random_uuid()')
    sql "SELECT commandbus.start_process('Machine', '$(noted "\"processId\": \"$id\"" "$@")', '$id')"
}

# DESIGN 4, last point; PM.1–4
test_both_models_run_side_by_side_in_one_worker_on_one_domain() {
    local i id declined=() waiting=()
    stage_flows
    start_ready a --set domains.payments.concurrent-processes=4
    for ((i = 0; i < 10; i++)); do
        start Five "$(noted)" >/dev/null
        start_machine >/dev/null
        start Five "$(noted '"decline": true')" >/dev/null
        declined+=("$(start_machine '"decline": true')")
        start_machine '"fails": {"BookRisk": "BUSINESS"}' >/dev/null
        waiting+=("$(start_machine '"waitFor": true')")
    done
    for id in "${waiting[@]}"; do
        status_is "$id" WAITING_FOR_ASYNC
        respond "$id" go
    done
    wait_until "$all_settled" 60

    same "$(sql "SELECT string_agg(concat_ws(' ', execution_model, status, n), ', ' ORDER BY execution_model::text, status::text) FROM (
                     SELECT execution_model, status, count(*) AS n FROM commandbus.process GROUP BY 1, 2) p")" \
        'PROCESS_STEP COMPENSATED 10, PROCESS_STEP COMPLETED 10, STEP_BASED COMPENSATED 20, STEP_BASED COMPLETED 20' 'the ends'
    same "$(order "${declined[0]}")" 'BookFx BookRisk ReleaseRisk ReleaseFx' 'the order of one that was declined'
    same "$(sql "SELECT string_agg(execution_model::text, ' ' ORDER BY process_type) FROM commandbus.process_type
                 WHERE process_type IN ('Five', 'Machine')")" 'PROCESS_STEP STEP_BASED' 'what the worker registered'
    check_processes 'COMPENSATED 30, COMPLETED 30'
    stop_worker a
}

# DESIGN 8.1, 8.4
test_a_worker_that_dies_anywhere_sends_each_command_once() {
    local point id
    stage_flows
    hasty_settings
    start_ready a
    for point in in:create before:bookFx effect:BookFx after:bookFx after:awaitGo before:releaseRisk \
        after:bookRisk effect:ReleaseRisk after:releaseRisk after:releaseFx; do
        id=$(start_machine '"decline": true' '"waitFor": true' "\"dieAt\": \"$point\"")
        respond "$id" go
        wait_exit a 137
        start_ready a
        status_is "$id" 'COMPENSATED BUSINESS_FAILURE'
        same "$(commands_of "$id")" 'BookFx 1, BookRisk 1, ReleaseFx 1, ReleaseRisk 1' "commands with $point"
        same "$(keys "$id" BookFx) $(keys "$id" ReleaseRisk)" '1 1' "keys with $point"
        same "$(state_of "$id" "done")" 5 "updates of the state with $point"
    done
    check_processes 'COMPENSATED 10'
    stop_worker a
}

# DESIGN 4, "Version skew"
test_replay_finds_a_manager_that_changed_its_order() {
    local id setting arguments=() code=0
    stage_flows
    start_ready a
    id=$(start_machine '"waitFor": true')
    waits_at "$id" awaitGo
    stop_worker a

    replay() {
        arguments=()
        code=0
        for setting in "${worker_settings[@]}"; do arguments+=(--set "$setting"); done
        "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" "${arguments[@]}" \
            --set worker.modules-dir="$work/modules" --replay --all-running >"$work/out" 2>"$work/err" </dev/null || code=$?
    }
    replay
    same "$code" 0 "exit ($(cat "$work/out" "$work/err"))"
    grep -q '1 checked, 0 would diverge' "$work/out" || fail "it prints $(cat "$work/out")"
    release_is flows_broken
    replay
    same "$code" 1 "exit ($(cat "$work/out" "$work/err"))"
    grep -q "$id .*NON_DETERMINISTIC: record 2 is COMMAND 'bookFx', but the code calls COMMAND 'bookRisk'" "$work/out" ||
        fail "it prints $(cat "$work/out")"
}

run_tests "$@"
