#!/usr/bin/env bash
# A process that is left while its command is out (queued, running, or in the troubleshooting queue), by a
# deadline or by an operator: nothing that was booked is left behind unseen. STP.8, STP.10, STP.12, RL.3, DESIGN 4
# "Leaving a command behind".
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

# Everything but the handlers of risk, which come when a test wants them.
start_without_risk() {
    "$COMMANDBUS_BIN" queue create risk >/dev/null
    start_ready a --set domains.risk.enabled=false
}
start_risk() { start_ready risk --set domains.payments.enabled=false --set domains.fx.enabled=false; }

# with_deadline ACTION MEMBERS...: a process whose deadline comes when the test says so.
with_deadline() {
    local action=$1
    shift
    sql "SELECT commandbus.start_process('Five', '$(noted "\"onDeadline\": \"$action\"" "$@")',
                                         deadline => commandbus.now() + interval '10 min')"
}
# is_leaving ID: the deadline was seen, and the outcome of its command is waited for.
is_leaving() { wait_until "(SELECT leaving IS NOT NULL FROM commandbus.process WHERE process_id = '$1')" 20; }
# Less than waits and the outcomes of commands are waited for.
deadline_comes() { sql "UPDATE commandbus.clock SET moved_by = moved_by + interval '11 min'"; }
command_is() { # ID TYPE STATUS
    wait_until "(SELECT status::text FROM commandbus.command_metadata WHERE correlation_id = '$1' AND command_type = '$2') = '$3'" 20
}
cancel() { sql "SELECT commandbus.process_cancel('$1', 'me', 'no more', ${2:-true})" >/dev/null; }

# booked ID: "fx 1-1 risk 0-0": bookings that succeeded, and what was released, as the effects' log has it; a
# booking that failed has made no booking.
booked() {
    local d
    for d in Fx Risk; do
        echo "${d,,} $(made "$1" "Book$d")-$(made "$1" "Release$d")"
    done | paste -sd ' '
}
made() {
    if [[ $(sql "SELECT status = 'COMPLETED' FROM commandbus.command_metadata
                 WHERE correlation_id = '$1' AND command_type = '$2'") == t ]]; then keys "$1" "$2"; else echo 0; fi
}
# uncompensated ID: what the records say is still booked.
uncompensated() {
    sql "SELECT coalesce(string_agg(h.name, ' ' ORDER BY h.ordinal), 'nothing') FROM commandbus.process_history h
         WHERE h.process_id = '$1' AND h.owes IS NOT NULL AND h.kind <> 'COMPENSATION' AND h.status = 'COMPLETED'
           AND NOT EXISTS (SELECT FROM commandbus.process_history c WHERE c.process_id = h.process_id
                           AND c.kind = 'COMPENSATION' AND c.during = h.ordinal AND c.status = 'COMPLETED')"
}
# ends ID STATUS BOOKED UNCOMPENSATED
ends() {
    status_is "$1" "$2"
    same "$(booked "$1")" "$3" "bookings and releases of what is $2"
    same "$(uncompensated "$1")" "$4" "what is still to undo in what is $2"
}

# ---- queued: nobody has received it ----

# STP.10
test_a_deadline_takes_a_queued_command_back() {
    stage_flows
    start_without_risk
    compensates=$(with_deadline COMPENSATE)
    fails=$(with_deadline FAIL)
    parks=$(with_deadline TSQ)
    for id in "$compensates" "$fails" "$parks"; do waits_at "$id" bookRisk; done
    deadline_comes
    ends "$compensates" 'COMPENSATED DEADLINE_EXCEEDED' 'fx 1-1 risk 0-0' nothing
    ends "$fails" 'FAILED DEADLINE_EXCEEDED' 'fx 1-0 risk 0-0' bookFx
    ends "$parks" 'WAITING_FOR_TSQ DEADLINE_EXCEEDED' 'fx 1-0 risk 0-0' bookFx
    # Nothing of it was ever received, also not when somebody comes who could.
    start_risk
    command_is "$parks" BookRisk COMPLETED
    same "$(effects "$compensates" BookRisk) $(effects "$fails" BookRisk)" '0 0' 'bookings of what was left'
    # A person decides: undone with what has come meanwhile.
    cancel "$parks"
    ends "$parks" CANCELED 'fx 1-1 risk 1-1' nothing
    for id in "$compensates" "$fails" "$parks"; do same "$(events_of "$id" DEADLINE_EXCEEDED)" 1 'deadline events'; done
    stop_worker a
    stop_worker risk
    check_processes 'CANCELED 1, COMPENSATED 1, FAILED 1'
}

# STP.12
test_an_operator_takes_a_queued_command_back() {
    stage_flows
    start_without_risk
    undone=$(with_deadline TSQ)
    kept=$(with_deadline TSQ)
    completed=$(with_deadline TSQ)
    for id in "$undone" "$kept" "$completed"; do waits_at "$id" bookRisk; done
    deadline_comes
    for id in "$undone" "$kept" "$completed"; do status_is "$id" 'WAITING_FOR_TSQ DEADLINE_EXCEEDED'; done
    cancel "$undone"
    cancel "$kept" false
    sql "SELECT commandbus.process_complete('$completed', 'me', 'by hand', '{\"executed\": true}')" >/dev/null
    ends "$undone" CANCELED 'fx 1-1 risk 0-0' nothing
    ends "$kept" CANCELED 'fx 1-0 risk 0-0' bookFx
    ends "$completed" COMPLETED 'fx 1-0 risk 0-0' bookFx
    for id in "$undone" "$kept" "$completed"; do command_is "$id" BookRisk CANCELED; done
    stop_worker a
    check_processes 'CANCELED 2, COMPLETED 1'
}

# ---- running: its outcome is waited for ----

# STP.10
test_a_deadline_waits_for_a_running_command_and_undoes_its_success() {
    local slow
    unhurried
    stage_flows
    slow=$(gated BookRisk)
    start_without_risk
    start_risk
    compensates=$(with_deadline COMPENSATE "$slow")
    fails=$(with_deadline FAIL "$slow")
    parks=$(with_deadline TSQ "$slow")
    for id in "$compensates" "$fails" "$parks"; do command_is "$id" BookRisk IN_PROGRESS; done
    deadline_comes
    status_is "$parks" 'WAITING_FOR_TSQ DEADLINE_EXCEEDED'
    for id in "$compensates" "$fails"; do is_leaving "$id"; done
    open_gate BookRisk
    ends "$compensates" 'COMPENSATED DEADLINE_EXCEEDED' 'fx 1-1 risk 1-1' nothing
    ends "$fails" 'FAILED DEADLINE_EXCEEDED' 'fx 1-0 risk 1-0' 'bookFx bookRisk'
    # Its success is with the process, and undone with it.
    command_is "$parks" BookRisk COMPLETED
    cancel "$parks"
    ends "$parks" CANCELED 'fx 1-1 risk 1-1' nothing
    stop_worker a
    stop_worker risk
    check_processes 'CANCELED 1, COMPENSATED 1, FAILED 1'
}

# STP.12: canceled while it runs
test_an_operator_cancels_while_a_command_runs_and_its_success_is_undone_or_recorded() {
    local slow
    unhurried
    stage_flows
    slow=$(gated BookRisk)
    start_without_risk
    start_risk
    undone=$(with_deadline TSQ "$slow")
    kept=$(with_deadline TSQ "$slow")
    for id in "$undone" "$kept"; do command_is "$id" BookRisk IN_PROGRESS; done
    deadline_comes
    for id in "$undone" "$kept"; do status_is "$id" 'WAITING_FOR_TSQ DEADLINE_EXCEEDED'; done
    cancel "$undone"
    cancel "$kept" false
    open_gate BookRisk
    ends "$undone" CANCELED 'fx 1-1 risk 1-1' nothing
    ends "$kept" CANCELED 'fx 1-0 risk 1-0' 'bookFx bookRisk'
    stop_worker a
    stop_worker risk
    check_processes 'CANCELED 2'
}

# DESIGN 4: a command that was left and then fails is not a booking; one in the TSQ is asked about.
test_a_running_command_that_fails_after_it_was_left() {
    local slow
    unhurried
    stage_flows
    slow=$(gated BookRisk)
    start_without_risk
    start_risk
    declined=$(with_deadline COMPENSATE "$slow" '"fails": {"BookRisk": "BUSINESS"}')
    stuck=$(with_deadline COMPENSATE "$slow" '"fails": {"BookRisk": "PERMANENT"}')
    stuck2=$(with_deadline FAIL "$slow" '"fails": {"BookRisk": "PERMANENT"}')
    for id in "$declined" "$stuck" "$stuck2"; do command_is "$id" BookRisk IN_PROGRESS; done
    deadline_comes
    for id in "$declined" "$stuck" "$stuck2"; do is_leaving "$id"; done
    open_gate BookRisk
    ends "$declined" 'COMPENSATED DEADLINE_EXCEEDED' 'fx 1-1 risk 0-0' nothing
    for id in "$stuck" "$stuck2"; do status_is "$id" 'WAITING_FOR_TSQ OUTCOME_UNKNOWN'; done
    # Somebody finds out: it was booked after all. Both go on by themselves.
    sql "SELECT commandbus.tsq_complete('risk', command_id, 'me', 'it is booked', '{\"reference\": \"r\"}')
         FROM commandbus.command_metadata WHERE status = 'IN_TROUBLESHOOTING_QUEUE'" >/dev/null
    ends "$stuck" 'COMPENSATED DEADLINE_EXCEEDED' 'fx 1-1 risk 1-1' nothing
    ends "$stuck2" 'FAILED DEADLINE_EXCEEDED' 'fx 1-0 risk 1-0' 'bookFx bookRisk'
    stop_worker a
    stop_worker risk
    check_processes 'COMPENSATED 2, FAILED 1'
}

# ---- in the troubleshooting queue ----

# STP.10: never in WAITING_FOR_TSQ; STP.12
test_a_deadline_waits_for_the_person_who_has_the_command() {
    local id broken='"fails": {"BookRisk": "PERMANENT"}' ids=()
    stage_flows
    start_without_risk
    start_risk
    for action in COMPENSATE FAIL TSQ; do ids+=("$(with_deadline "$action" "$broken")"); done
    for id in "${ids[@]}"; do status_is "$id" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'; done
    deadline_comes
    # The command ends by a person's word, and with it the process goes on: its deadline has passed.
    sql "SELECT commandbus.tsq_complete('risk', command_id, 'me', 'it is booked', '{\"reference\": \"r\"}')
         FROM commandbus.command_metadata WHERE status = 'IN_TROUBLESHOOTING_QUEUE'" >/dev/null
    ends "${ids[0]}" 'COMPENSATED DEADLINE_EXCEEDED' 'fx 1-1 risk 1-1' nothing
    ends "${ids[1]}" 'FAILED DEADLINE_EXCEEDED' 'fx 1-0 risk 1-0' 'bookFx bookRisk'
    status_is "${ids[2]}" 'WAITING_FOR_TSQ DEADLINE_EXCEEDED'
    cancel "${ids[2]}"
    ends "${ids[2]}" CANCELED 'fx 1-1 risk 1-1' nothing
    stop_worker a
    stop_worker risk
    check_processes 'CANCELED 1, COMPENSATED 1, FAILED 1'
}

# STP.12: both also cancel the command in the TSQ
test_an_operator_leaves_a_process_whose_command_is_in_the_tsq() {
    local id broken='"fails": {"BookRisk": "PERMANENT"}'
    stage_flows
    start_without_risk
    start_risk
    undone=$(start Five "$(noted "$broken")")
    kept=$(start Five "$(noted "$broken")")
    completed=$(start Five "$(noted "$broken")")
    for id in "$undone" "$kept" "$completed"; do status_is "$id" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'; done
    cancel "$undone"
    cancel "$kept" false
    sql "SELECT commandbus.process_complete('$completed', 'me', 'by hand', '{\"executed\": true}')" >/dev/null
    ends "$undone" CANCELED 'fx 1-1 risk 0-0' nothing
    ends "$kept" CANCELED 'fx 1-0 risk 0-0' bookFx
    ends "$completed" COMPLETED 'fx 1-0 risk 0-0' bookFx
    for id in "$undone" "$kept" "$completed"; do command_is "$id" BookRisk CANCELED; done
    stop_worker a
    stop_worker risk
    check_processes 'CANCELED 2, COMPLETED 1'
}

# STP.12: COMMAND_IN_TSQ → also tsq_retry of that command
test_an_operator_retries_a_process_and_its_command_with_it() {
    stage_flows
    start_without_risk
    start_risk
    id=$(start Five "$(noted '"fails": {"BookRisk": "PERMANENT"}')")
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'
    sql "UPDATE commandbus.command_metadata SET data = data - 'fail' WHERE command_type = 'BookRisk'"
    sql "SELECT commandbus.process_retry('$id', 'me', 'mended')" >/dev/null
    ends "$id" COMPLETED 'fx 1-0 risk 1-0' 'bookFx bookRisk execute'
    same "$(effects "$id" BookRisk) $(keys "$id" BookRisk)" '2 1' 'effects and keys'
    same "$(commands_of "$id")" 'BookFx 1, BookRisk 1' commands
    stop_worker a
    stop_worker risk
    check_processes 'COMPLETED 1'
}

# ---- a command that is waited for too long ----

# DESIGN 4: never received → CANCELED in the same transaction; send_no grows when an operator retries
test_a_command_that_nobody_received_in_time_is_taken_back_and_a_retry_sends_another() {
    stage_flows
    start_without_risk
    id=$(start Five "$(noted '"waitMs": 2000')")
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT'
    command_is "$id" BookRisk CANCELED
    # Its own cancel is not a decision: it stays where it is, and nobody can book it any more.
    start_risk
    wait_until "NOT EXISTS (SELECT FROM pgmq.q_payments__replies)" 10
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT'
    same "$(effects "$id" BookRisk)" 0 'bookings'
    sql "SELECT commandbus.process_retry('$id', 'me', 'somebody is there now')" >/dev/null
    status_is "$id" COMPLETED
    same "$(commands_of "$id") $(effects "$id" BookRisk)" 'BookFx 1, BookRisk 2 1' 'commands, bookings'
    stop_worker a
    stop_worker risk
}

# RL.3: its final reply resumes
test_a_command_that_ends_after_its_time_resumes_its_process_without_a_person() {
    unhurried
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"waitMs": 1000' "$(gated BookRisk)")")
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT'
    open_gate BookRisk
    status_is "$id" COMPLETED
    same "$(commands_of "$id") $(effects "$id" BookRisk)" 'BookFx 1, BookRisk 1 1' 'commands, bookings'
    stop_worker a
    check_processes 'COMPLETED 1'
}

# RL.2: what cannot be sent is settled by itself, and repaired by a person.
test_a_command_to_a_domain_that_nobody_has_parks_its_process_alone_and_a_retry_sends_it() {
    stage_flows
    start_ready a --set domains.risk.enabled=false
    id=$(start Five "$(noted)")
    other=$(start Long "$(noted '"n": 2')")
    status_is "$id" 'WAITING_FOR_TSQ PERMANENT_FAILURE'
    status_is "$other" COMPLETED
    start_risk # registers it
    sql "SELECT commandbus.process_retry('$id', 'me', 'registered')" >/dev/null
    ends "$id" COMPLETED 'fx 1-0 risk 1-0' 'bookFx bookRisk execute'
    stop_worker a
    stop_worker risk
    check_processes 'COMPLETED 2'
}

# STP.8: a compensation that fails parks the process, the rest waits; a retry goes on at the failed one.
test_a_release_that_fails_holds_the_rest_back_until_it_is_repaired() {
    stage_flows
    start_ready a
    id=$(start Five "$(noted '"decline": true' '"fails": {"ReleaseRisk": "PERMANENT"}')")
    ends "$id" 'WAITING_FOR_TSQ COMPENSATION_FAILED' 'fx 1-0 risk 1-0' 'bookFx bookRisk'
    sql "UPDATE commandbus.command_metadata SET data = data - 'fail' WHERE command_type = 'ReleaseRisk'"
    sql "SELECT commandbus.process_retry('$id', 'me', 'mended')" >/dev/null
    ends "$id" 'COMPENSATED DECLINED' 'fx 1-1 risk 1-1' nothing
    same "$(order "$id")" 'BookFx BookRisk execute undoExecute ReleaseRisk ReleaseFx' 'the order'
    same "$(effects "$id" undoExecute)" 1 'effects of what was undone before'
    stop_worker a
    check_processes 'COMPENSATED 1'
}

run_tests "$@"
