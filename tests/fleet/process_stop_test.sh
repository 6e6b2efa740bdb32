#!/usr/bin/env bash
# How a worker ends while processes run, and the least that its login must be allowed: WRK.11, DESIGN 3 "Roles".
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

# Leases that nobody waits for in a test: what goes on at once was given back.
long_leases() { worker_settings+=(domains.payments.visibility-timeout=60s domains.payments.handler-timeout=60s); }

# WRK.11
test_a_drain_ends_the_step_that_runs_and_another_worker_goes_on_at_once() {
    long_leases
    stage_flows
    start_ready a
    sql "SELECT count(commandbus.start_process('Long', '$(noted '"n": 40' "$(gated step1)")'))
         FROM generate_series(1, 12)" >/dev/null
    until (($(grep -c ' step1 ' "$log") == 5)); do sleep 0.02; done

    kill_worker a TERM
    wait_log a event=worker.draining
    open_gate step1
    wait_exit a 0
    same "$(sql "SELECT count(*) FROM commandbus.process WHERE lease_owner IS NOT NULL")" 0 'leases left behind'
    same "$(sql "SELECT count(*) FROM commandbus.process_history WHERE status = 'STARTED'")" 0 'steps left open'
    same "$(sql "SELECT count(*) FROM commandbus.process WHERE wake_at IS NULL OR wake_at > commandbus.now()")" 0 \
        'processes that nobody would go on with at once'
    at_least "$(sql "SELECT count(*) FROM commandbus.process WHERE status = 'PENDING'")" 12 'given back'
    before=$(wc -l <"$log")
    at_most "$before" 10 'effects before the end'

    start_ready b
    wait_until "$all_settled" 60
    same "$(wc -l <"$log")" $((12 * 40)) effects
    stop_worker b
    check_processes 'COMPLETED 12'
}

# WRK.11: the other one is there already, as in a rolling update; single attempts, and none is parked.
test_rolling_updates_under_load_lose_nothing_and_run_no_single_attempt_twice() {
    local name next
    long_leases
    stage_flows
    start_ready w1
    sql "SELECT count(commandbus.start_process('Five', '$(noted '"sleeps": {"execute": 30, "BookFx": 10}')'::jsonb
             || CASE WHEN i % 10 = 0 THEN '{\"decline\": true}'::jsonb ELSE '{}' END)) FROM generate_series(1, 120) i" >/dev/null
    for next in 2 3 4; do
        start_ready "w$next"
        stop_worker "w$((next - 1))"
    done
    wait_until "$all_settled AND $all_done" 60
    same "$(awk '$2 == "execute"' "$log" | wc -l)" 120 'runs of the single attempt'
    stop_worker w4
    check_processes 'COMPENSATED 12, COMPLETED 108'
}

# WRK.11: a step that outlasts the shutdown timeout: exit 1, and its single attempt is left to a person.
test_a_step_that_outlasts_the_shutdown_timeout_is_not_run_twice() {
    stage_flows
    start_ready a --set worker.shutdown-timeout=500ms
    id=$(start Five "$(noted "$(gated execute)")")
    until (($(effects "$id" execute) == 1)); do sleep 0.02; done
    stop_worker a 1
    start_ready b
    status_is "$id" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY'
    same "$(effects "$id" execute)" 1 effects
    stop_worker b
    check_processes 'WAITING_FOR_TSQ 1'
}

# ---- roles ----

# Roles are of the whole server: this one goes before its database does.
drop_login() {
    sql "DROP OWNED BY $login" 2>/dev/null || true
    sql "DROP ROLE IF EXISTS $login"
}
make_login() {
    [[ $url =~ ^postgresql://[^@]*@(.*)$ ]] || fail 'the server has no URL with a user'
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_worker"
    trap 'code=$?; set +e; drop_login; (exit "$code"); end_test' EXIT
    role_url="postgresql://$login:of-the-test@${BASH_REMATCH[1]}"
}

# DESIGN 3, "Roles": everything that a process can come to, by a login that is a worker and nothing more.
test_the_role_of_workers_is_enough_for_processes() {
    make_login
    stage_flows
    start_ready a --set database.url="$role_url" --set worker.reply-grace=1s
    completed=$(start Five "$(noted '"maxAttempts": 3' '"retryMs": 50' '"fails": {"execute": "TRANSIENT:1"}')")
    declined=$(start Five "$(noted '"decline": true')")
    parked=$(start Five "$(noted '"fails": {"BookRisk": "PERMANENT"}')")
    letters=$(start Letters "$(noted)")
    slow=$(start Long "$(noted '"n": 2' '"sleeps": {"step1": 2500}')") # renewed meanwhile
    overdue=$(sql "SELECT commandbus.start_process('Five', '$(noted '"waitFor": true' '"onDeadline": "COMPENSATE"')',
                   deadline => commandbus.now() + interval '1 s')")
    for letter in L1 L2 L3 L4; do respond "$letters" "$letter"; done
    sql "SELECT pgmq.send('payments__replies', '[]')" >/dev/null
    for id in "$completed" "$letters" "$slow"; do status_is "$id" COMPLETED; done
    for id in "$declined" "$overdue"; do status_is "$id" COMPENSATED; done
    status_is "$parked" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'
    sql "SELECT commandbus.process_cancel('$parked', 'me', 'no more', true)" >/dev/null
    status_is "$parked" CANCELED
    respond "$letters" L1 # late
    wait_until "(SELECT count(*) = 1 FROM commandbus.process_event WHERE event = 'LATE_ASYNC_RESPONSE')" 20
    wait_until "(SELECT count(*) = 1 FROM commandbus.audit WHERE event_type = 'REPLY_DEAD_LETTERED')" 20
    http_get a /metrics
    stop_worker a
    # Nothing was refused.
    if grep -E 'level=(warn|error)' "$work/a.log" | grep -vE 'event=(process.parked|replies.dead_lettered)'; then
        fail 'it has complaints'
    fi
    same "$(process_ledger 'CANCELED 1, COMPENSATED 2, COMPLETED 3')" "$(sql "SELECT format('%s %s: %s', a.event_type,
        a.command_id, a.details) FROM commandbus.audit a WHERE a.event_type = 'REPLY_DEAD_LETTERED'")" 'what the ledger says'
}

# A stolen password of a worker opens no more than what workers do.
test_the_role_of_workers_cannot_reach_around_the_functions_of_processes() {
    local statement
    make_login
    stage_flows
    start_ready a
    id=$(start Letters "$(noted)")
    waits_at "$id" awaitL1
    for statement in 'SELECT state FROM commandbus.process' 'SELECT result FROM commandbus.process_history' \
        'UPDATE commandbus.process SET status = status' 'DELETE FROM commandbus.process_event' \
        'SELECT payload FROM commandbus.process_inbox' \
        "SELECT commandbus.process_complete('$id', 'me', 'why')" "SELECT commandbus.process_cancel('$id', 'me', 'why')" \
        "SELECT commandbus.process_retry('$id', 'me', 'why')"; do
        if psql -XqAt -d "$role_url" -c "$statement" >"$work/said" 2>&1; then fail "it may: $statement"; fi
        grep -q 'permission denied' "$work/said" || fail "$statement: $(cat "$work/said")"
    done
    stop_worker a
}

run_tests "$@"
