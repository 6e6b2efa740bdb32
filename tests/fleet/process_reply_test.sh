#!/usr/bin/env bash
# Replies that belong to nobody, and instances that each do a part of the work: PM.5, WRK.9, DESIGN 8.5, 8.7.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

reply() { # COMMAND_ID PROCESS_ID [OUTCOME]: somebody puts it into the queue
    sql "SELECT pgmq.send('payments__replies', jsonb_build_object('command_id', '$1', 'correlation_id', '$2',
         'outcome', '${3:-SUCCESS}', 'result', '{}'::jsonb, 'final', true))" >/dev/null
}
nobody=7e57ab1e-0000-4000-8000-000000000000
in_queue="(SELECT count(*) FROM pgmq.q_payments__replies)"
dead="(SELECT count(*) FROM commandbus.audit WHERE event_type = 'REPLY_DEAD_LETTERED')"

# PM.5: kept for reply-grace, then archived; what is not a reply at once
test_replies_for_nobody_are_kept_for_the_grace_and_then_archived_and_others_go_by_them() {
    local poison
    stage_flows
    start_ready a --set worker.reply-grace=12s
    known=$(start Five "$(noted)")
    status_is "$known" COMPLETED
    bookings=$(sql "SELECT command_id FROM commandbus.command_metadata WHERE command_type = 'BookFx'")
    waiting=$(start Five "$(noted '"waitFor": true')")
    waits_at "$waiting" awaitGo

    # Poison of every kind, archived at once, each with an event.
    for poison in '[]' '"text"' '7' '{}' 'null' '{"command_id": "no", "correlation_id": "no", "outcome": "SUCCESS"}' \
        "{\"command_id\": \"$nobody\", \"correlation_id\": \"$nobody\", \"outcome\": \"PERHAPS\"}" \
        "{\"command_id\": \"$nobody\", \"outcome\": \"SUCCESS\"}"; do
        sql "SELECT pgmq.send('payments__replies', '$poison'::jsonb)" >/dev/null
    done
    wait_until "$in_queue = 0 AND $dead = 8" 4

    began=$(sql "SELECT clock_timestamp()")
    reply "$nobody" "$nobody"               # no such process
    reply "$nobody" "$waiting"              # no such command
    reply "$bookings" "$waiting"            # a command of another process
    others=$(start Five "$(noted)")         # goes through all the same
    status_is "$others" COMPLETED 4
    same "$(sql "SELECT $in_queue || ' ' || $dead")" '3 8' 'kept, and dead'
    wait_until "$in_queue = 0 AND $dead = 11" 30
    same "$(sql "SELECT min(at) - '$began'::timestamptz > interval '11.9 s' FROM commandbus.audit
                 WHERE event_type = 'REPLY_DEAD_LETTERED' AND details ->> 'reason' NOT LIKE '%not a reply%'")" t 'after the grace'
    same "$(sql "SELECT count(*) FROM pgmq.a_payments__replies")" 11 'archived'
    same "$(sql "SELECT string_agg(DISTINCT details ->> 'reason', ', ' ORDER BY details ->> 'reason') FROM commandbus.audit
                 WHERE event_type = 'REPLY_DEAD_LETTERED'")" \
        'the message is not a reply, the process has no such command, there is no such process' 'the reasons'
    same "$(metric a 'commandbus_replies_dead_lettered_total{domain="payments"}')" 11 'the metric'
    same "$(field "$waiting" "status || ' ' || current_wait")" 'WAITING_FOR_ASYNC awaitGo' 'who waits'
    stop_worker a
}

# PM.5: a reply that is early, because its process is not committed yet, arrives.
test_a_reply_that_comes_before_its_process_is_delivered_when_that_is_there() {
    stage_flows
    only process-execution
    start_ready a "${role[@]}"
    only reply-processing
    start_ready b "${role[@]}"
    id=$(start Five "$(noted)")
    waits_at "$id" bookFx
    # As if its command were answered from a database that is ahead: the row of the command is away for a while.
    command=$(sql "SELECT command_id FROM commandbus.command_metadata WHERE correlation_id = '$id'")
    sql "UPDATE commandbus.command_metadata SET process_id = '$nobody' WHERE command_id = '$command'"
    sql "SELECT pgmq.send('payments__replies', jsonb_build_object('command_id', '$command', 'correlation_id', '$id',
         'outcome', 'SUCCESS', 'result', '{\"reference\": \"r\"}'::jsonb, 'final', true))" >/dev/null
    wait_until "(SELECT count(*) = 1 FROM pgmq.q_payments__replies WHERE read_ct >= 2)" 10
    sql "UPDATE commandbus.command_metadata SET process_id = '$id' WHERE command_id = '$command'"
    waits_at "$id" bookRisk 10
    same "$(sql "SELECT $dead")" 0 'dead letters'
    stop_worker a
    stop_worker b
}

# DESIGN 8.6: a late or duplicate reply is recorded and harmless
test_a_doubled_reply_and_one_after_the_end_change_nothing() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"waitFor": true')")
    waits_at "$id" awaitGo
    command=$(sql "SELECT command_id FROM commandbus.command_metadata WHERE correlation_id = '$id' AND command_type = 'BookFx'")
    reply "$command" "$id" FAILED
    wait_until "(SELECT count(*) = 1 FROM commandbus.process_event WHERE process_id = '$id' AND event = 'LATE_REPLY')" 10
    same "$(field "$id" "status || ' ' || current_wait")" 'WAITING_FOR_ASYNC awaitGo' 'it'
    respond "$id" go
    status_is "$id" COMPLETED
    reply "$command" "$id"
    wait_until "(SELECT count(*) = 2 FROM commandbus.process_event WHERE process_id = '$id' AND event = 'LATE_REPLY')" 10
    wait_until "$in_queue = 0" 10
    same "$(field "$id" status) $(effects "$id")" 'COMPLETED 3' 'it'
    stop_worker a
}

# Somebody has all processes locked: replies to them go to their queue meanwhile.
lock_processes() {
    local line
    coproc holder { psql -XqAt -d "$url"; }
    echo 'BEGIN; SELECT count(*) FROM (SELECT FROM commandbus.process FOR UPDATE) p;' >&"${holder[1]}"
    read -r line <&"${holder[0]}"
    same "$line" "$1" 'processes that are locked'
}
unlock_processes() {
    local pid=$holder_PID
    echo 'COMMIT; \q' >&"${holder[1]}"
    wait "$pid"
}

# DESIGN 4: who settles a command tells its process, and nobody has to deliver.
test_a_process_needs_no_instance_that_delivers_replies() {
    stage_flows
    only process-execution
    start_ready runs "${role[@]}"
    only command-handlers
    start_ready handles "${role[@]}"
    id=$(start Five "$(noted)")
    status_is "$id" COMPLETED
    same "$(sql "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pgmq.q_payments__replies_msg_id_seq")" 0 'messages in the reply queue'
    for name in runs handles; do stop_worker "$name"; done
    check_processes 'COMPLETED 1'
}

# CONTRACT features.*: each instance does its part, and nobody else's.
test_a_process_goes_through_three_instances_with_one_feature_each() {
    stage_flows
    only process-execution
    start_ready runs "${role[@]}"
    id=$(start Five "$(noted)")
    undone=$(start Five "$(noted '"decline": true')")
    waits_at "$id" bookFx
    waits_at "$undone" bookFx
    same "$(count "status = 'PENDING'")" 2 'commands that nobody handles'
    lock_processes 2
    only command-handlers
    start_ready handles "${role[@]}"
    wait_until "$in_queue = 2" 10
    unlock_processes
    same "$(field "$id" current_wait)" bookFx 'where it waits while nobody delivers'
    only reply-processing
    start_ready delivers "${role[@]}"
    status_is "$id" COMPLETED
    status_is "$undone" COMPENSATED
    same "$(sql "SELECT string_agg(DISTINCT w.details ->> 'name', ' ') FROM commandbus.audit a JOIN commandbus.worker w USING (worker)
                 WHERE a.event_type IN ('RECEIVED', 'COMPLETED')")" handles 'who handled'
    for name in runs handles delivers; do stop_worker "$name"; done
    check_processes 'COMPENSATED 1, COMPLETED 1'
}

run_tests "$@"
