#!/usr/bin/env bash
# A worker that is paused inside of a run, past its lease or not, and what arrives meanwhile: STP.11, DESIGN 2
# "Fence", DESIGN 8.3, 8.4.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

# wait_paused NAME: until what it runs has paused it.
wait_paused() {
    local until=$((SECONDS + 80))
    until is_paused "$1"; do
        ((SECONDS < until)) || fail "$1 goes on: $(summary)"
        sleep 0.02
    done
}

# STP.4, STP.9; DESIGN 8.4: run by one worker at a time
test_a_step_of_a_paused_worker_is_run_again_by_another_and_only_one_of_them_counts() {
    stage_flows
    start_ready a
    id=$(start Long "$(noted '"n": 3' '"maxAttempts": 2' '"dieAt": "stop:effect:step1"')")
    wait_paused a
    start_ready b
    status_is "$id" COMPLETED
    kill_worker a CONT
    wait_until "(SELECT count(*) > 0 FROM commandbus.process_event WHERE process_id = '$id' AND event = 'STALE_OUTCOME')" 20
    wait_log a 'event=process.stale'

    # a had made the first effect, too; it went no further than its next checkpoint.
    same "$(effects "$id" step1) $(keys "$id" step1)" '2 1' 'effects and keys of the step it was paused in'
    same "$(effects "$id" step2) $(effects "$id" step3)" '1 1' 'effects of the steps behind it'
    same "$(events_of "$id" STALE_OUTCOME)" 1 'late outcomes'
    same "$(record "$id" STEP step1)" 'COMPLETED 2' 'the record'
    # It goes on with other things.
    stop_worker b
    other=$(start Long "$(noted '"n": 2')")
    status_is "$other" COMPLETED
    stop_worker a
    check_processes 'COMPLETED 2'
}

# DESIGN 4: max_attempts 1 with STARTED and no end → TSQ, never rerun
test_a_single_attempt_of_a_paused_worker_is_left_to_a_person_and_its_late_success_changes_nothing() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"dieAt": "stop:effect:execute"')")
    wait_paused a
    start_ready b
    status_is "$id" 'WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY'
    kill_worker a CONT
    wait_until "(SELECT count(*) > 0 FROM commandbus.process_event WHERE process_id = '$id' AND event = 'STALE_OUTCOME')" 20
    same "$(effects "$id" execute)" 1 effects
    same "$(field "$id" status)" WAITING_FOR_TSQ 'its status'
    # The person finds that it was done.
    sql "SELECT commandbus.process_complete('$id', 'me', 'it was done', '{\"executed\": true}')" >/dev/null
    status_is "$id" COMPLETED
    stop_worker a
    stop_worker b
    same "$(effects "$id" execute)" 1 effects
}

# DESIGN 8.4: each command step has one live command
test_a_worker_paused_before_it_sends_a_command_does_not_send_it_again() {
    local point
    stage_flows
    start_ready a
    for point in before:bookFx after:bookFx in:enrich before:bookRisk after:bookRisk; do
        id=$(start Five "$(noted "\"dieAt\": \"stop:$point\"")")
        wait_paused a
        start_worker b
        status_is "$id" COMPLETED
        kill_worker a CONT
        wait_until "(SELECT count(*) > 0 FROM commandbus.process_event WHERE process_id = '$id' AND event = 'STALE_OUTCOME')" 20
        same "$(commands_of "$id")" 'BookFx 1, BookRisk 1' "commands with $point"
        same "$(effects "$id") $(keys "$id")" '3 3' "effects and keys with $point"
        wait_ready b
        stop_worker b
    done
    stop_worker a
    check_processes 'COMPLETED 5'
}

# STP.8: undone once, whoever was at it
test_a_worker_paused_while_it_undoes_does_not_undo_twice() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"decline": true' '"maxAttempts": 2' '"dieAt": "stop:effect:undoExecute"')")
    wait_paused a
    start_ready b
    status_is "$id" COMPENSATED
    kill_worker a CONT
    wait_until "(SELECT count(*) > 0 FROM commandbus.process_event WHERE process_id = '$id' AND event = 'STALE_OUTCOME')" 20
    same "$(commands_of "$id")" 'BookFx 1, BookRisk 1, ReleaseFx 1, ReleaseRisk 1' commands
    same "$(effects "$id" undoExecute) $(keys "$id" undoExecute)" '2 1' 'effects and keys'
    stop_worker a
    stop_worker b
    check_processes 'COMPENSATED 1'
}

# ---- what arrives meanwhile ----

# Nobody polls and no lease runs out: what is slept through is slept through for good.
patient=(--set domains.payments.visibility-timeout=30s --set domains.payments.handler-timeout=30s
    --set domains.payments.poll-interval=30s)

# STP.11: running: seen before suspending. The claim has read an empty inbox.
test_a_response_that_arrives_between_claim_and_settle_is_not_slept_through() {
    stage_flows
    start_ready a "${patient[@]}"
    id=$(start Letters "$(noted '"dieAt": "stop:before:awaitL1"')")
    wait_paused a
    same "$(field "$id" 'lease_owner IS NOT NULL AND status = '"'EXECUTING'")" t 'claimed'
    for letter in L1 L2 L3 L4; do respond "$id" "$letter"; done
    kill_worker a CONT
    status_is "$id" COMPLETED 10
    same "$(state_of "$id" arrived)" 'L1 L2 L3 L4' 'the order'
    stop_worker a
    check_processes 'COMPLETED 1'
}

# RL.2: it runs for a response while the reply to its command comes.
test_a_reply_that_arrives_between_claim_and_settle_is_not_slept_through() {
    stage_flows
    only process-execution
    start_ready a "${patient[@]}" "${role[@]}"
    # Without marks it is paused each time that it passes there.
    id=$(start Five "{\"log\": \"$log\", \"dieAt\": \"stop:before:bookFx\", \"waitFor\": true}")
    wait_paused a
    kill_worker a CONT
    waits_at "$id" bookFx
    respond "$id" go
    wait_paused a
    only command-handlers
    start_ready b "${role[@]}" --set features.reply-processing=true
    wait_until "(SELECT count(*) = 1 FROM commandbus.process_inbox WHERE process_id = '$id' AND kind = 'REPLY')" 20
    same "$(field "$id" 'lease_owner IS NOT NULL')" t 'still claimed'
    until is_met "(SELECT status FROM commandbus.process WHERE process_id = '$id') = 'COMPLETED'" 0.1; do
        kill_worker a CONT
        at_most "$SECONDS" $((${began:=$SECONDS} + 20)) 'seconds'
    done
    same "$(effects "$id") $(keys "$id")" '3 3' 'effects and keys'
    stop_worker a
    stop_worker b
    check_processes 'COMPLETED 1'
}

# ---- many at once ----

# What respond() has put into inboxes, in order.
log_arrivals() {
    sql "CREATE TABLE public.arrival (process_id uuid, seq integer, name text);
         GRANT INSERT ON public.arrival TO PUBLIC;
         CREATE FUNCTION public.note_arrival() RETURNS trigger LANGUAGE plpgsql AS
         \$\$ BEGIN INSERT INTO public.arrival VALUES (NEW.process_id, NEW.seq, NEW.name); RETURN NEW; END \$\$;
         CREATE TRIGGER note_arrival BEFORE INSERT ON commandbus.process_inbox
         FOR EACH ROW EXECUTE FUNCTION public.note_arrival()"
}

# STP.11: L1–L4 at once: each applied once, in arrival order. Each is sent twice under one response_id.
test_letters_of_four_connections_at_once_are_each_applied_once_in_the_order_of_arrival() {
    local n=40 i pids=() said
    stage_flows
    log_arrivals
    start_worker a
    start_ready b
    wait_ready a
    sql "SELECT count(commandbus.start_process('Letters', '{}')) FROM generate_series(1, $n)" >/dev/null
    for i in 1 2 3 4; do
        psql -XqAt -v ON_ERROR_STOP=1 -d "$url" >"$work/said$i" <<<"
            SELECT format('SELECT commandbus.respond(%L, ''L$i'', ''{\"reference\": \"r$i\"}'', %L)', process_id,
                          md5(process_id || 'L$i')::uuid)
            FROM commandbus.process CROSS JOIN generate_series(1, 2) ORDER BY md5(process_id || '$((i % 2))') \gexec" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    wait_until "$all_settled" 30

    said=$(sort "$work"/said? | uniq -c | awk '{ print $2, $1 }' | paste -sd ' ')
    same "$said" "f $((4 * n)) t $((4 * n))" 'what respond() said'
    same "$(sql "SELECT count(*) FROM commandbus.process p WHERE p.state ->> 'arrived' IS DISTINCT FROM
                 (SELECT string_agg(a.name, ' ' ORDER BY a.seq) FROM public.arrival a WHERE a.process_id = p.process_id)")" \
        0 'processes with another order than that of arrival'
    same "$(sql "SELECT count(*) FROM commandbus.process_history WHERE kind = 'RESPONSE' AND status = 'COMPLETED'")" \
        $((4 * n)) 'responses recorded'
    note "$(sql "SELECT count(DISTINCT state ->> 'arrived') FROM commandbus.process") different orders of arrival"
    stop_worker a
    stop_worker b
    check_processes "COMPLETED $n"
}

# STP.11: terminal process: applied to state, LATE_ASYNC_RESPONSE, no replay
test_a_response_after_the_end_is_applied_and_recorded_and_runs_nothing() {
    stage_flows
    start_ready a
    id=$(start Letters "$(noted)")
    for letter in L1 L2 L3 L4; do respond "$id" "$letter"; done
    status_is "$id" COMPLETED
    ended=$(field "$id" completed_at)
    five=$(start Five "$(noted)")
    status_is "$five" COMPLETED
    respond "$id" L2
    respond "$five" go
    wait_until "(SELECT count(*) = 2 FROM commandbus.process_event WHERE event = 'LATE_ASYNC_RESPONSE')" 20
    wait_until "$all_settled" 20
    same "$(state_of "$id" arrived)" 'L1 L2 L3 L4 L2' 'its letters'
    same "$(field "$id" status) $(field "$id" completed_at)" "COMPLETED $ended" 'its end'
    same "$(state_of "$five" went) $(effects "$five")" 'true 3' 'the other'
    stop_worker a
    check_processes 'COMPLETED 2'
}

run_tests "$@"
