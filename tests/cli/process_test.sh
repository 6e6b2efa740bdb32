#!/usr/bin/env bash
# commandbus process: started, listed, shown, answered, decided about. Rows are made by SQL: what a worker
# would have written is not the question here.
. "$(dirname "$0")/lib.sh"
cb migrate --quiet >/dev/null
sql "SELECT commandbus.register_process_type('PaymentStep', 'payments', 2),
            commandbus.register_process_type('Statement', 'reporting', 1, 'STEP_BASED'),
            commandbus.register_domain('fx'), commandbus.register_domain('risk')" >/dev/null
nobody=0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e

# process STATUS [COLUMN=VALUE...]: a row in that status with these columns; prints its id.
process() {
    local id names='' values='' pair
    id=$(new_id)
    for pair in "${@:2}"; do
        names+=", ${pair%%=*}" values+=", ${pair#*=}"
    done
    sql "INSERT INTO commandbus.process (process_id, status, created_at, updated_at, tsq_at, domain, process_type,
             execution_model, reply_queue, initial_state, state, version$names)
         SELECT '$id', '$1', now(), now(), CASE '$1' WHEN 'WAITING_FOR_TSQ' THEN now() END, 'payments', 'PaymentStep',
             'PROCESS_STEP', 'payments__replies', '{}', '{\"amount\": \"10.00\", \"score\": 3, \"reference\": null}', 2$values" >/dev/null
    echo "$id"
}
# record PROCESS ORDINAL KIND STATUS NAME [COLUMN=VALUE...]
record() {
    local names='' values='' pair
    for pair in "${@:6}"; do
        names+=", ${pair%%=*}" values+=", ${pair#*=}"
    done
    sql "INSERT INTO commandbus.process_history (process_id, ordinal, kind, status, name, at$names)
         VALUES ('$1', $2, '$3', '$4', '$5', now() - interval '10 min' + $2 * interval '1 s'$values)"
}
column() { sql "SELECT $2 FROM commandbus.process WHERE process_id = '$1'"; }
refused() { same "$(jq -r .error.code "$work/err")" "$1"; }

# STP.3: deferred, returns the id.
test_start_prints_the_id_and_leaves_the_run_to_workers() {
    local id
    id=$(cb process start PaymentStep --state '{"amount": 12345678901234567890.10}')
    same "$(column "$id" "status || ' ' || (wake_at <= commandbus.now()) || ' ' || (lease_owner IS NULL)")" 'PENDING true true'
    same "$(column "$id" "state ->> 'amount'")" 12345678901234567890.10
    exits 0 process start PaymentStep --id "$nobody" --json
    json .process_id "\"$nobody\""
    same "$(column "$nobody" state)" '{}'
    exits 1 process start PaymentStep --id "$nobody" --json
    refused INVALID_OPERATION
}

test_the_state_comes_from_a_file_or_stdin() {
    echo '{"from": "file"}' >"$work/state.json"
    same "$(column "$(cb process start PaymentStep --state-file "$work/state.json")" "state ->> 'from'")" file
    same "$(column "$(cb process start PaymentStep --state "@$work/state.json")" "state ->> 'from'")" file
    same "$(column "$(echo '{"from": "stdin"}' | cb process start PaymentStep --state-file -)" "state ->> 'from'")" stdin
    exits 2 process start PaymentStep --state '{}' --state-file "$work/state.json"
    exits 1 process start PaymentStep --state '[1]' --json
    refused INVALID_DATA
    exits 1 process start PaymentStep --state '{"broken"'
    says 'reading the state: invalid JSON at character'
    exits 1 process start PaymentStep --state '{"payment": {"amount": "1", "amount": "1000"}}' --json
    refused INVALID_DATA
    exits 1 process start PaymentStep --state '{"payment": {"amount": "1", "amount": "1000"}}'
    says "state has a duplicate key 'amount'"
}

# STP.10: the deadline is a moment of the clock of process timers, also when tests have moved it.
test_a_deadline_is_a_time_or_a_time_from_now() {
    local id
    sql "UPDATE commandbus.clock SET moved_by = '1 year'"
    id=$(cb process start PaymentStep --deadline +4h)
    same "$(column "$id" "deadline_at - created_at BETWEEN '3:59:50' AND '4:00:10'")" t
    sql "UPDATE commandbus.clock SET moved_by = '0'"
    id=$(cb process start PaymentStep --deadline 2031-03-01T08:00:00Z)
    same "$(column "$id" "deadline_at AT TIME ZONE 'UTC'")" '2031-03-01 08:00:00'
    for wrong in 4h tomorrow +soon; do
        exits 2 process start PaymentStep --deadline "$wrong"
        says '--deadline must be a time'
    done
}

test_an_unknown_type_is_refused_with_a_hint() {
    exits 1 process start PaymentStop
    says "'PaymentStop' is not registered"
    says 'hint: .*worker'
}

test_lists_are_filtered() {
    local waiting parked canceled old
    waiting=$(process WAITING_FOR_ASYNC current_wait="'awaitL1'")
    parked=$(process WAITING_FOR_TSQ error_code="'LIST_ME'" current_step="'bookFx'")
    canceled=$(process CANCELED completed_at='now()' error_code="'LIST_ME'")
    old=$(process WAITING_FOR_TSQ error_code="'LIST_OLD'")
    sql "UPDATE commandbus.process SET tsq_at = now() - interval '2 h' WHERE process_id = '$old'"

    exits 0 process list --error-code LIST_ME --json
    json 'map(.process_id) | sort == (["'"$parked"'", "'"$canceled"'"] | sort)' true
    exits 0 process list --error-code LIST_ME --status tsq
    prints "^$parked  PaymentStep +WAITING_FOR_TSQ +bookFx +LIST_ME"
    lacks "$canceled"
    exits 0 process list --error-code LIST_ME --status CANCELLED
    prints "$canceled"
    exits 0 process list --error-code LIST_ME --status open --json
    json 'map(.status)' '["WAITING_FOR_TSQ"]'
    exits 0 process list --type PaymentStep --domain payments --status WAITING_FOR_ASYNC
    prints "^$waiting .* awaitL1 "
    exits 0 process list --status TSQ --older-than 1h --json
    json 'map(.process_id)' "[\"$old\"]"
    exits 0 process list --domain reporting
    says 'nothing matches'
    exits 0 process list --limit 1
    says 'there may be more: --offset 1'
    # S2's words.
    process WAITING_FOR_REPLY error_code="'LIST_S2'" >/dev/null
    process WAITING_FOR_ASYNC error_code="'LIST_S2'" >/dev/null
    process WAITING_FOR_RETRY error_code="'LIST_S2'" >/dev/null
    process EXECUTING error_code="'LIST_S2'" >/dev/null
    exits 0 process list --error-code LIST_S2 --status WAITING --json
    json 'map(.status) | sort' '["WAITING_FOR_ASYNC","WAITING_FOR_REPLY"]'
    exits 0 process list --error-code LIST_S2 --status in_progress --json
    json 'map(.status) | sort' '["EXECUTING","WAITING_FOR_RETRY"]'
    exits 2 process list --status RUNNING
    says 'must be one of PENDING'
    exits 0 process list --error-code LIST_ME --counts --json
    json 'map([.process_type, .status, .processes]) | sort' \
        '[["PaymentStep","CANCELED",1],["PaymentStep","WAITING_FOR_TSQ",1]]'
}

# A command of a process, with a life of its own: sent, failed once, run again, stuck.
stuck_command() { # PROCESS
    local command
    command=$(cb send fx BookFx --correlation-id "$1" --max-attempts 2)
    settle fx TRANSIENT GATEWAY_BUSY
    sql "UPDATE pgmq.q_fx__commands SET vt = now()"
    settle fx TRANSIENT GATEWAY_DOWN
    echo "$command"
}

# DESIGN 2: the command's workers died; who found that out did not run it.
test_show_names_who_ran_a_command_that_lost_its_lease() {
    local id command
    id=$(process WAITING_FOR_TSQ current_step="'bookFx'" error_code="'COMMAND_IN_TSQ'")
    command=$(sql "SELECT commandbus.send('fx', 'BookFx', max_attempts => 1)")
    record "$id" 0 COMMAND WAITING bookFx command_id="'$command'" domain="'fx'" \
        command_type="'BookFx'"
    sql "SELECT commandbus.receive('fx', 'dies', 1)" >/dev/null
    sql "UPDATE commandbus.command_metadata SET lease_until = now() - interval '1 hour'
         WHERE command_id = '$command';
         UPDATE pgmq.q_fx__commands SET vt = now();
         UPDATE commandbus.uptime SET since = '-infinity'"
    sql "SELECT commandbus.receive('fx', 'finds', 1, 0.001)" >/dev/null

    exits 0 process show "$id"
    prints 'moved to the troubleshooting queue, last run by dies after [0-9.]+ m?s: LEASE_EXHAUSTED$'
    exits 0 command show "$command"
    prints 'MOVED_TO_TSQ .*worker dies .*"found_by": "finds"'
}

# STP.2, RL.3: what happened, in the order of time, each command with its own trail.
test_show_tells_the_whole_story() {
    local id command
    id=$(process WAITING_FOR_TSQ current_step="'bookFx'" error_code="'COMMAND_IN_TSQ'" \
        error_message="'it is in the TSQ'" deadline_at="now() + interval '2 h 30 min'")
    command=$(stuck_command "$id")
    record "$id" 0 STEP COMPLETED markProcessing took_ms=4.2 attempts=2 "owes='{\"inline\": true}'" "patch='{\"status\": \"P\"}'"
    record "$id" 1 COMMAND COMPLETED bookRisk command_id="'$(new_id)'" domain="'risk'" command_type="'BookRisk'" \
        "owes='{\"domain\": \"risk\", \"command_type\": \"ReleaseRisk\"}'" "finished_at=now() - interval '9 min'"
    record "$id" 2 WAIT COMPLETED awaitApproval "finished_at=now() - interval '10 min' + interval '62 s'"
    record "$id" 3 RESPONSE COMPLETED approved during=2 "result='{\"by\": \"bob\"}'"
    record "$id" 4 COMMAND WAITING bookFx command_id="'$command'" domain="'fx'" command_type="'BookFx'" send_no=2 \
        "timeout_at=now() + interval '3 min 30 s'"
    sql "INSERT INTO commandbus.process_event (process_id, at, event, operator, details)
         SELECT h.process_id, h.at + interval '1 ms', 'TSQ_RETRY', 'alice', '{\"reason\": \"it is back\"}'
         FROM commandbus.process_history h WHERE h.process_id = '$id' AND h.name = 'bookRisk';
         INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) VALUES ('$id', 1, 'RESPONSE', 'L1', '{\"ok\": true}')"

    exits 0 process show "$id"
    prints "^PaymentStep $id$"
    prints '^  status +WAITING_FOR_TSQ: it waits for an operator'
    prints '^  step +bookFx$'
    prints '^  error +COMMAND_IN_TSQ: it is in the TSQ$'
    prints '^  deadline +in 2 h [0-9]+ min \('
    prints '^  can undo +bookRisk \(risk/ReleaseRisk\), markProcessing$'
    prints "^  look +commandbus command show $command$"
    prints "^  go on +commandbus process retry $id --reason"
    prints "^  was done +commandbus tsq complete fx $command "
    prints "^  undo it +commandbus process cancel $id --reason"
    prints 'STEP +markProcessing +COMPLETED +took 4 ms  2 attempts  sets status$'
    prints 'COMMAND +bookRisk +COMPLETED +after 59\.'
    prints 'command risk/BookRisk [0-9a-f-]+: its retention is over$'
    prints 'WAIT +awaitApproval +COMPLETED +after 1 min$'
    prints 'RESPONSE +approved +COMPLETED +during awaitApproval  \{"by":"bob"\}$'
    prints 'event +TSQ_RETRY by alice: it is back$'
    prints 'COMMAND +bookFx +WAITING +for (9|10|11) min .*, times out in [123] min'
    prints "command fx/BookFx $command IN_TROUBLESHOOTING_QUEUE, sent for the 2\. time$"
    prints '^ +[0-9:.]{12}  sent$'
    prints 'received by tester, attempt 1 of 2, waited [0-9]+ ms$'
    prints 'failed after [0-9]+ ms: GATEWAY_BUSY: it broke$'
    prints 'comes again at [0-9:.]{12}$'
    prints 'received by tester, attempt 2 of 2, waited '
    prints 'moved to the troubleshooting queue after [0-9]+ ms: GATEWAY_DOWN: it broke$'
    prints '^in the inbox, not read yet$'
    prints 'RESPONSE +L1  \{"ok":true\}$'
    prints '^state  \{$'
    # In the order of time: the operator between the first two records.
    same "$(grep -oE '(STEP|COMMAND|WAIT|RESPONSE|event) +(markProcessing|bookRisk|awaitApproval|approved|bookFx|TSQ_RETRY)' \
        "$work/out" | awk '{ print $2 }' | tr '\n' ' ')" \
        'markProcessing bookRisk TSQ_RETRY awaitApproval approved bookFx '
}

# attempt PROCESS ORDINAL KIND STATUS NAME [COLUMN=VALUE...]: what a record was before.
attempt() {
    local names='' values='' pair
    for pair in "${@:6}"; do
        names+=", ${pair%%=*}" values+=", ${pair#*=}"
    done
    sql "INSERT INTO commandbus.process_attempt (process_id, ordinal, kind, status, name, at$names)
         VALUES ('$1', $2, '$3', '$4', '$5', now() - interval '10 min' + $2 * interval '1 s'$values)"
}

# S0: "Attempt 2 of 3". Every attempt and every command before the last, and why it was parked.
test_show_has_attempts_and_commands_that_others_followed() {
    local id first second
    id=$(process WAITING_FOR_TSQ current_step="'submit'" error_code="'RETRIES_EXHAUSTED'")
    first=$(stuck_command "$id")
    second=$(cb send fx BookFx --correlation-id "$id")
    attempt "$id" 1 STEP RETRY mark attempts=1 max_attempts=3 took_ms=5 worker="'w-1'" error_code="'BUSY'" \
        error_message="'come back'"
    attempt "$id" 1 STEP STARTED mark attempts=2 max_attempts=3 worker="'w-2'"
    record "$id" 1 STEP COMPLETED mark attempts=3 max_attempts=3 took_ms=7 worker="'w-3'"
    attempt "$id" 2 COMMAND FAILED bookFx attempts=1 send_no=1 command_id="'$first'" domain="'fx'" command_type="'BookFx'"
    record "$id" 2 COMMAND WAITING bookFx attempts=2 send_no=2 command_id="'$second'" domain="'fx'" command_type="'BookFx'"
    record "$id" 3 STEP RETRY submit attempts=1 max_attempts=2
    sql "INSERT INTO commandbus.process_event (process_id, event, step_name, worker, details)
         VALUES ('$id', 'PARKED', 'submit', 'w-3', '{\"error_code\": \"E\", \"error_message\": \"it broke\"}')"

    exits 0 process show "$id"
    prints 'STEP +mark +COMPLETED +took 7 ms  attempt 3 of 3 on w-3$'
    prints '^      attempt 1 of 3 at [0-9:.]{12}  took 5 ms on w-1: BUSY: come back$'
    prints '^      attempt 2 of 3 at [0-9:.]{12} on w-2: nobody knows how it ended$'
    prints "^      command fx/BookFx $first IN_TROUBLESHOOTING_QUEUE$"
    prints "^      command fx/BookFx $second PENDING, sent for the 2\. time$"
    prints 'STEP +submit +RETRY .* attempt 1 of 2$'
    prints 'event +PARKED at submit on w-3: E: it broke$'
    exits 0 process show "$id" --json
    json '[.attempts[] | [.name, .attempts, .worker, .command.command_id]]' \
        "[[\"mark\",1,\"w-1\",null],[\"mark\",2,\"w-2\",null],[\"bookFx\",1,null,\"$first\"]]"
}

test_show_has_everything_as_json() {
    local id command
    id=$(process WAITING_FOR_ASYNC current_wait="'bookFx'" "leaving='{\"to\": \"COMPENSATE\", \"end\": \"CANCELED\", \"code\": \"LATE\"}'")
    command=$(stuck_command "$id")
    record "$id" 0 COMMAND WAITING bookFx command_id="'$command'" domain="'fx'" command_type="'BookFx'" \
        "opening='{\"n\": 12345678901234567890123}'"
    exits 0 process show "$id" --json
    json '[.status, .state.amount, .leaving.to, .inbox, .events, .owed]' '["WAITING_FOR_ASYNC","10.00","COMPENSATE",[],[],[]]'
    json '.records[0].command | [.command_id, .status, .attempts]' "[\"$command\",\"IN_TROUBLESHOOTING_QUEUE\",2]"
    json '[.records[0].command.trail[].event_type]' \
        '["SENT","RECEIVED","FAILED","RETRY_SCHEDULED","RECEIVED","MOVED_TO_TSQ"]'
    prints '12345678901234567890123'
    exits 0 process show "$id"
    prints '^  leaving +to be CANCELED: LATE; the outcome of its command comes first$'
    prints "^  run again +commandbus tsq retry fx $command "
}

# STP.8: which step a compensation undoes, and what is still owed.
test_show_says_what_is_undone_and_what_is_owed() {
    local id
    id=$(process WAITING_FOR_TSQ phase="'COMPENSATING'" error_code="'COMPENSATION_FAILED'")
    record "$id" 0 STEP COMPLETED first "owes='{\"inline\": true}'"
    record "$id" 1 STEP COMPLETED second "owes='{\"inline\": true}'"
    record "$id" 2 COMPENSATION COMPLETED second during=1 took_ms=1
    record "$id" 3 COMPENSATION FAILED first during=0 error_code="'NO_WAY'" error_message="'the bank says no'"
    exits 0 process show "$id"
    prints '^  still owed +first$'
    prints 'COMPENSATION +second +COMPLETED +took 1 ms  undoes second$'
    prints '^ +error NO_WAY: the bank says no$'
    prints "^  give up +commandbus process cancel $id --reason '...' --no-compensations$"
    id=$(process COMPLETED completed_at='now()') # nobody can undo it any more
    record "$id" 0 STEP COMPLETED first "owes='{\"inline\": true}'"
    exits 0 process show "$id"
    lacks 'can undo'
}

# STP.6: timers in words; what to do is about what it waits for.
test_show_says_what_it_waits_for() {
    local id
    id=$(process WAITING_FOR_ASYNC current_wait="'awaitL1'" "next_wait_timeout_at=now() + interval '3 h 30 min'")
    record "$id" 0 WAIT WAITING awaitL1
    exits 0 process show "$id"
    prints '^  waits for +awaitL1, times out in 3 h'
    prints "^  answer +commandbus process respond $id NAME"
    id=$(process WAITING_FOR_RETRY current_step="'book'" "next_retry_at=now() + interval '110 s'")
    exits 0 process show "$id"
    prints '^  retry +in 1 min '
    lacks '^what to do'
    id=$(process PENDING "wake_at=now() - interval '1 min'")
    sql "UPDATE commandbus.process SET version = 7 WHERE process_id = '$id'"
    exits 0 process show "$id"
    prints 'what to do: No worker takes it'
    prints 'version 7: needs workers of that version, 2 is the newest'
    id=$(process EXECUTING "lease_owner='w-9'" "lease_until=now() + interval '1 h'" "wake_at=now() + interval '1 h'")
    exits 0 process show "$id"
    prints '^  runs on +w-9, lease ends in [0-9]+ (min|h)'
    id=$(process COMPLETED "completed_at=now() + interval '61 s'")
    exits 0 process show "$id"
    prints '^  ended .*, it took 1 min 1 s$'
    lacks '^what to do'
    sql "INSERT INTO commandbus.process_event (process_id, event, details)
         VALUES ('$id', 'LATE_REPLY', '{\"outcome\": \"SUCCESS\"}')"
    exits 0 process show "$id"
    prints 'what to do: A command succeeded after the process had ended'
}

# STP.12: each way into the TSQ has a way out.
test_every_parked_process_gets_advice() {
    local id code
    for code in PERMANENT_FAILURE RETRIES_EXHAUSTED RETRIES_EXHAUSTED_CRASH_RECOVERY STEP_TIMEOUT WAIT_TIMEOUT \
        DEADLINE_EXCEEDED COMMAND_STEP_TIMEOUT COMMAND_IN_TSQ COMPENSATION_FAILED NON_DETERMINISTIC OUTCOME_UNKNOWN; do
        id=$(process WAITING_FOR_TSQ error_code="'$code'")
        exits 0 process show "$id"
        prints '^what to do: '
        prints "^  go on +commandbus process retry $id --reason '...'$"
        lacks '\{(id|command|domain)\}'
    done
}

test_show_of_an_unknown_process_is_refused() {
    exits 1 process show "$(new_id)" --json
    refused PROCESS_NOT_FOUND
    exits 2 process show 17
}

# What others wrote is shown, not obeyed.
test_control_characters_do_not_reach_the_terminal() {
    local id
    id=$(process WAITING_FOR_TSQ error_code="E'\\x1b[31mX'" error_message="E'a\\nb'" current_step="E'\\x07'")
    record "$id" 0 RESPONSE COMPLETED 'odd' "result='{\"x\": \"\\u001b[2J\"}'" "error_message=E'\\x1b'" error_code="'E'"
    exits 0 process show "$id"
    if grep -q $'[\033\007]' "$work/out"; then fail 'control characters'; fi
    prints '^  error +\\x1b\[31mX: a\\nb$'
}

# STP.11
test_respond_brings_a_response_once() {
    local id response
    id=$(process WAITING_FOR_ASYNC current_wait="'awaitL1'")
    response=$(new_id)
    exits 0 process respond "$id" L1 --payload '{"ref": "L1-REF-1"}' --response-id "$response"
    prints '^accepted$'
    exits 0 process respond "$id" L1 --payload '{"ref": "L1-REF-1"}' --response-id "$response" --json
    json '.accepted == false' true
    echo '{"ref": 2}' >"$work/payload.json"
    exits 0 process respond "$id" L2 --payload "@$work/payload.json" --json
    json .accepted true
    exits 0 process respond "$id" L3
    same "$(sql "SELECT string_agg(name || payload, ' ' ORDER BY seq) FROM commandbus.process_inbox WHERE process_id = '$id'")" \
        'L1{"ref": "L1-REF-1"} L2{"ref": 2} L3{}'
    exits 1 process respond "$(new_id)" L1 --json
    refused PROCESS_NOT_FOUND
    exits 1 process respond "$id" L1 --payload '{"broken"'
    exits 2 process respond "$id"
    says 'NAME is missing'
}

# STP.25: "accepted" is said of what the type takes, and of nothing else.
test_respond_refuses_what_the_type_does_not_take() {
    local id before
    sql "SELECT commandbus.register_process_type('Desk', 'payments', 1, responses => '{\"verdict\": {\"fields\":
             {\"status\": [\"APPROVED\", \"DECLINED\"], \"reason\": \"text?\", \"score\": \"integer\"}, \"needs\": [\"status\"]}}')" >/dev/null
    exits 0 process start Desk
    id=$(cat "$work/out")
    before=$(sql 'SELECT count(*) FROM commandbus.process_inbox')
    exits 1 process respond "$id" verdct --payload '{"status": "APPROVED"}'
    says "process type Desk takes no response 'verdct'"
    says 'It takes verdict'
    exits 1 process respond "$id" verdict --payload '{"status": "PERHAPS"}'
    says "field 'status' of response verdict must be APPROVED or DECLINED"
    exits 1 process respond "$id" verdict --payload '{"status": "APPROVED", "score": 1.5}'
    says "field 'score' of response verdict must be integer"
    exits 1 process respond "$id" verdict --payload '{"statsu": "APPROVED"}'
    says 'response verdict needs status'
    says 'It has reason, score, status'
    exits 1 process respond "$id" verdict
    says 'response verdict needs status'
    exits 1 process respond "$id" verdict --payload '{"reason": null}' --json
    refused INVALID_DATA
    same "$(sql 'SELECT count(*) FROM commandbus.process_inbox')" "$before" responses
    exits 0 process respond "$id" verdict --payload '{"status": "APPROVED", "reason": null, "score": 7}'
    prints '^accepted$'
    exits 0 process respond "$id" verdict --payload '{"status": "APPROVED", "desk": {"floor": 3}}'
    prints '^accepted$'
    same "$(sql "SELECT payload -> 'desk' FROM commandbus.process_inbox WHERE process_id = '$id' ORDER BY seq DESC LIMIT 1")" '{"floor": 3}'
}

inbox() { sql "SELECT name || ' ' || (payload ->> '$2') FROM commandbus.process_inbox WHERE process_id = '$1' AND kind = 'OPERATOR'"; }

# STP.12: audited, only from WAITING_FOR_TSQ, one request at a time.
test_retry_lets_a_process_go_on() {
    local id
    id=$(process WAITING_FOR_TSQ error_code="'DEADLINE_EXCEEDED'")
    exits 0 process retry "$id" --operator alice --reason 'gateway is back' --deadline +2h
    prints '^retried 1 process$'
    same "$(column "$id" "status || ' ' || (deadline_at - now() BETWEEN '1:59:00' AND '2:01:00')")" 'PENDING true'
    same "$(inbox "$id" operator)" 'RETRY alice'
    same "$(sql "SELECT event || ' ' || operator || ' ' || (details ->> 'reason') FROM commandbus.process_event
                 WHERE process_id = '$id' AND operator IS NOT NULL")" 'TSQ_RETRY alice gateway is back'
    exits 1 process retry "$id" --operator alice --json
    refused INVALID_OPERATION
    exits 1 process retry "$(new_id)" --json
    refused PROCESS_NOT_FOUND
    exits 0 process show "$id"
    prints 'what to do: An operator has decided'
}

test_cancel_needs_a_reason_and_undoes_unless_told_not_to() {
    local id
    id=$(process WAITING_FOR_TSQ)
    exits 2 process cancel "$id"
    says '--reason is missing'
    COMMANDBUS_OPERATOR=bob exits 0 process cancel "$id" --reason withdrawn --json
    json '[.action, .acted, .refused]' '["cancel",1,0]'
    same "$(inbox "$id" operator) $(inbox "$id" run_compensations)" 'CANCEL bob CANCEL true'
    id=$(process WAITING_FOR_TSQ)
    exits 0 process cancel "$id" --reason withdrawn --no-compensations
    prints '^canceled 1 process$'
    same "$(inbox "$id" run_compensations)" 'CANCEL false'
}

test_complete_sets_fields_of_the_state() {
    local id
    id=$(process WAITING_FOR_TSQ)
    exits 1 process complete "$id" --set refrence=K-17
    says "the state has no field 'refrence'"
    says 'hint: Did you mean reference\?'
    exits 2 process complete "$id" --set reference=1 --overrides '{}'
    exits 1 process complete "$id" --overrides '{"broken"'
    says 'reading --overrides'
    exits 1 process complete "$id" --set reference
    same "$(column "$id" status)" WAITING_FOR_TSQ
    # Text stays text; what holds none takes JSON, and text that is not JSON.
    exits 0 process complete "$id" --set amount=12.50 --set score=12345678901234567890 --set reference=K-17 --reason 'by hand'
    prints '^completed 1 process$'
    same "$(inbox "$id" overrides)" 'COMPLETE {"score": 12345678901234567890, "amount": "12.50", "reference": "K-17"}'
    id=$(process WAITING_FOR_TSQ)
    exits 0 process complete "$id" --overrides '{"new": [1, null]}'
    same "$(inbox "$id" overrides)" 'COMPLETE {"new": [1, null]}'
    exits 1 process complete "$(new_id)" --set a=1 --json
    refused PROCESS_NOT_FOUND
}

# STP.12, in bulk: shown first, asked about, counted.
test_bulk_shows_asks_and_acts() {

    for _ in 1 2 3; do process WAITING_FOR_TSQ error_code="'BULK_A'"; done >/dev/null
    process WAITING_FOR_TSQ error_code="'BULK_B'" >/dev/null
    process FAILED error_code="'BULK_A'" >/dev/null
    in_tsq() { sql "SELECT count(*) FROM commandbus.process WHERE status = 'WAITING_FOR_TSQ' AND error_code LIKE 'BULK_$1'"; }

    exits 0 process retry --error-code BULK_A --dry-run --json
    json length 3
    exits 0 process cancel --error-code BULK_B --reason x --dry-run
    says '^would cancel 1 process; nothing was changed$'
    exits 1 process retry --error-code BULK_A
    says 'this would retry 3 processes: nothing was changed'
    says 'hint: .*--yes'
    same "$(in_tsq A)" 3
    exits 0 process retry --type PaymentStep --error-code BULK_A --limit 2 --yes --operator alice
    prints '^retried 2 processes$'
    same "$(in_tsq A)" 1

    # A decision that no worker has acted on yet is somebody else's.
    exits 0 process cancel --error-code BULK_B --reason x --yes
    exits 0 process retry --error-code BULK_B --yes
    prints '^retried 0 processes, 1 refused: somebody else was faster$'
}

test_the_choice_of_processes_is_checked() {
    exits 2 process retry
    says 'say which: an ID, a filter such as --type, or --all'
    exits 2 process retry "$nobody" --type PaymentStep
    exits 2 process cancel --all --type PaymentStep --reason x
    exits 2 process complete
    says 'ID is missing'
    exits 2 process retry "$nobody" --deadline soon
}

# DESIGN 3, roles: operators see all and decide, monitoring sees no payloads.
test_operators_decide_and_monitoring_looks() {
    local id
    id=$(process WAITING_FOR_TSQ error_code="'ROLES'")
    (
        export PGOPTIONS='-c role=commandbus_operator'
        exits 0 process list --error-code ROLES
        exits 0 process show "$id"
        exits 0 process respond "$id" L1
        exits 0 process retry --error-code ROLES
        prints '^retried 1 process$'
        exits 0 process start PaymentStep --deadline +1h
        exits 0 fleet
    )
    export PGOPTIONS='-c role=commandbus_monitor'
    exits 0 process list --status PENDING
    prints "$id"
    exits 0 process list --counts
    exits 0 fleet
    exits 1 process show "$id" --json
    refused DENIED
    exits 1 process start PaymentStep --json
    refused DENIED
}

# STP.16: what is due and what is parked, beside the domains.
test_fleet_and_top_show_process_types() {
    sql "SELECT commandbus.register_process_type('Idle', 'idle', 3), commandbus.register_process_type('Busy', 'idle', 1)" >/dev/null
    process WAITING_FOR_TSQ >/dev/null
    sql "UPDATE commandbus.process SET process_type = 'Busy', domain = 'idle' WHERE process_id IN
             ('$(process WAITING_FOR_TSQ)', '$(process PENDING "wake_at=now() - interval '90 s'")',
              '$(process WAITING_FOR_RETRY "wake_at=now() + interval '90 s'")')"
    exits 0 fleet
    prints '^PROCESS TYPE +DOMAIN +VERSION +DUE +WAITING +IN TSQ$'
    prints '^Busy +idle +1 +1 +[0-9]+[sm] +1$'
    prints '^Idle +idle +3 +0 +- +0$'
    exits 0 fleet --json
    json '.processes[] | select(.process_type == "Busy") | [.due, .in_tsq]' '[1,1]'
    exits 0 top --once --interval 100ms --json
    json '.processes[] | select(.process_type == "Idle") | [.due, .waiting_seconds, .in_tsq]' '[0,null,0]'
}

run_tests
