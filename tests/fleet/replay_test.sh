#!/usr/bin/env bash
# --replay: code that would not go on with the processes that are there is found before it is rolled out. STP.23
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"

# No worker dies here: a lease that a busy machine lets run out would only be a step whose end nobody knows.
release_unhurried() {
    release_is "$1"
    unhurried
}
release_unhurried flows

# replay CODE ARGUMENTS...: what it prints is in $work/out, what it says in $work/err.
replay() {
    local expected=$1 code=0 setting arguments=()
    shift
    for setting in "${worker_settings[@]}"; do arguments+=(--set "$setting"); done
    "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" "${arguments[@]}" \
        --set worker.modules-dir="$work/modules" --replay "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    cp "$work/err" "$work/replay.log" # looked through for sanitizers
    ((code == expected)) || fail "exit $code, not $expected: $(cat "$work/out" "$work/err")"
}
prints() { grep -Eq -- "$1" "$work/out" || fail "it prints no '$1': $(cat "$work/out")"; }
says() { grep -Eq -- "$1" "$work/err" || fail "it says no '$1': $(cat "$work/err")"; }
is_silent() { [[ ! -s $work/err ]] || fail "it says: $(cat "$work/err")"; }
prints_nothing() { [[ ! -s $work/out ]] || fail "it prints: $(cat "$work/out")"; }

# Processes in the middle of their lives, one of each kind, left there by workers of release 1 that have ended.
stage() {
    start_ready a
    waiting=$(start Five '{"waitFor": true}')
    letters=$(start Letters '{}')
    parked=$(start Locals '{"fails": {"three": "PERMANENT"}}')
    undone=$(start Five '{"decline": true, "fails": {"ReleaseFx": "PERMANENT"}}')
    finished=$(start Long '{"n": 3}')
    waits_at "$waiting" awaitGo
    waits_at "$letters" awaitL1
    respond "$letters" L1
    waits_at "$letters" awaitL2
    status_is "$parked" WAITING_FOR_TSQ
    status_is "$undone" WAITING_FOR_TSQ
    status_is "$finished" COMPLETED
    stop_worker a
    sql "INSERT INTO commandbus.process_type (process_type, domain, execution_model, version, reply_queue)
         VALUES ('Foreign', 'payments', 'PROCESS_STEP', 1, 'payments__replies')"
    foreign=$(start Foreign '{}')
}

# Everything that a process is.
everything() {
    sql "SELECT md5(string_agg(t::text, ';' ORDER BY t::text)) FROM (
             SELECT to_jsonb(p) FROM commandbus.process p UNION ALL SELECT to_jsonb(h) FROM commandbus.process_history h
             UNION ALL SELECT to_jsonb(i) FROM commandbus.process_inbox i
             UNION ALL SELECT to_jsonb(e) FROM commandbus.process_event e
             UNION ALL SELECT to_jsonb(c) FROM commandbus.command_metadata c
             UNION ALL SELECT to_jsonb(w) FROM commandbus.worker w) t"
}

# DESIGN 4, "Version skew"; STP.5
test_code_that_changed_its_order_is_found_and_listed_and_nothing_is_written() {
    stage
    before=$(everything)
    release_unhurried flows_broken

    replay 1 --all-running

    prints "^$waiting  Five  version 1  NON_DETERMINISTIC: record 2 is COMMAND 'bookFx', but the code calls STEP 'enrich'"
    prints "^$undone  Five  version 1  NON_DETERMINISTIC"
    prints "^$letters  Letters  version 1  NON_DETERMINISTIC: record 1 is WAIT 'awaitL1', but the code calls WAIT 'awaitL4'"
    prints "^$parked  Locals  version 1  NON_DETERMINISTIC: .* 'one', .* 'two'"
    prints '^4 checked, 4 would diverge, 1 skipped \(1 of types that are not in this program, 0 written by newer code\)$'
    same "$(wc -l <"$work/out")" 5 'lines'
    is_silent
    same "$(everything)" "$before" 'the database'
}

# What it says is what happens.
test_those_that_are_listed_are_those_that_a_rollout_parks() {
    stage
    other=$(start Long '{"n": 2}')
    release_unhurried flows_broken
    replay 1 --all-running
    if grep -q "$other" "$work/out"; then fail 'one that has not begun is listed'; fi

    start_ready b
    respond "$waiting" go
    respond "$letters" L2
    status_is "$other" COMPLETED

    wait_until "(SELECT count(*) FROM commandbus.process WHERE process_id IN ('$waiting', '$letters')
                 AND status = 'WAITING_FOR_TSQ' AND error_code = 'NON_DETERMINISTIC') = 2" 30
    stop_worker b
}

# DESIGN 4: cb_version lets code change
test_code_behind_cb_version_passes_and_its_rollout_finishes_them() {
    stage
    release_unhurried flows2

    replay 0 --all-running
    prints '^4 checked, 0 would diverge, 1 skipped'
    is_silent

    start_ready b
    new=$(start Five '{}')
    respond "$waiting" go
    for letter in L2 L3 L4; do respond "$letters" "$letter"; done
    for id in "$waiting" "$letters" "$new"; do status_is "$id" COMPLETED; done
    stop_worker b
    same "$(sql "SELECT state->>'screened' FROM commandbus.process WHERE process_id = '$waiting'")" false \
        'the way of one that had gone by'
    same "$(sql "SELECT state->>'screened' FROM commandbus.process WHERE process_id = '$new'")" true \
        'the way of a new one'
}

test_the_same_code_passes() {
    stage
    replay 0 --all-running
    prints '^4 checked, 0 would diverge, 1 skipped'
    replay 0 --all-running --type Letters
    prints '^1 checked, 0 would diverge, 0 skipped$'
}

test_one_process_can_be_asked_about() {
    stage
    replay 0 "$waiting"
    prints '^1 checked, 0 would diverge, 0 skipped$'
    release_unhurried flows_broken
    replay 1 "$waiting"
    prints "^$waiting  Five"
    replay 2 "$foreign"
    says "type 'Foreign', which this program does not have"
    prints_nothing
    replay 2 00000000-0000-0000-0000-000000000001
    says 'there is no process'
    replay 2 no-uuid
    says 'not a UUID'
}

test_json_has_the_same() {
    stage
    replay 0 --all-running --json
    same "$(jq -c . "$work/out")" '{"diverged":[],"checked":4,"skipped":{"unknown_type":1,"newer_version":0,"too_large":0}}'
    release_unhurried flows_broken
    replay 1 --all-running --json --type Letters
    same "$(jq -c '[.checked, (.diverged | length), .diverged[0].process_id, .diverged[0].process_type,
                    .diverged[0].version, .diverged[0].status]' "$work/out")" \
        "[1,1,\"$letters\",\"Letters\",1,\"WAITING_FOR_ASYNC\"]"
    jq -e '.diverged[0].why | startswith("NON_DETERMINISTIC: ")' "$work/out" >/dev/null || fail "$(cat "$work/out")"
}

# DESIGN 4, "Version skew": a worker leaves alone what newer code has written, and so does a replay.
test_what_newer_code_wrote_is_skipped() {
    release_unhurried flows2
    start_ready a
    letters=$(start Letters '{}')
    waits_at "$letters" awaitL1
    stop_worker a
    release_unhurried flows

    replay 0 --all-running
    prints '^0 checked, 0 would diverge, 1 skipped \(0 of types .*, 1 written by newer code\)$'
    replay 2 "$letters"
    says 'version 2 .*newer'
}

# Looking at nothing is not a pass.
test_what_cannot_be_compared_is_refused() {
    replay 2 --all-running --type Fives
    says "no process type 'Fives'"
    says 'Did you mean Five\?'
    release_unhurried sample
    replay 2 --all-running
    says 'no handler set of this configuration has a process type'
    prints_nothing
}

test_many_are_read_in_pages() {
    start_ready a
    stop_worker a # the types are registered
    sql "SELECT count(commandbus.start_process('Long', '{\"n\": 1}')) FROM generate_series(1, 1201)" >/dev/null
    replay 0 --all-running
    prints '^1201 checked, 0 would diverge, 0 skipped$'
}

# Roles are of the whole server: this one goes before its database does.
drop_login() {
    sql "DROP OWNED BY $login" 2>/dev/null || true
    sql "DROP ROLE IF EXISTS $login"
}
test_a_login_that_may_only_read_is_enough() {
    stage
    [[ $url =~ ^postgresql://[^@]*@(.*)$ ]] || fail 'the server has no URL with a user'
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test'"
    trap 'code=$?; set +e; drop_login; (exit "$code"); end_test' EXIT
    sql "GRANT USAGE ON SCHEMA commandbus TO $login; GRANT SELECT ON commandbus.schema_version TO $login;
         GRANT EXECUTE ON FUNCTION commandbus.read_processes, commandbus.running_processes TO $login"

    COMMANDBUS_DATABASE_URL="postgresql://$login:of-the-test@${BASH_REMATCH[1]}" replay 0 --all-running
    prints '^4 checked, 0 would diverge'
}

test_without_a_database_it_ends_with_3() {
    COMMANDBUS_DATABASE_URL=postgresql://127.0.0.1:1/none replay 3 --all-running
    says 'Connection refused'
    prints_nothing
}

run_tests "$@"
