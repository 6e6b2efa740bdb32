#!/usr/bin/env bash
# The process ledger finds what it is there for: each thing is done to a good one and found.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

process=commandbus.process history=commandbus.process_history command=commandbus.command_metadata
completed="(SELECT process_id FROM $process WHERE status = 'COMPLETED')"
undone="(SELECT process_id FROM $process WHERE status = 'COMPENSATED')"
copy="INSERT INTO $history (process_id, at, kind, status, name, ordinal, during, response_id)
      SELECT process_id, at, kind, status, name"

# What is done | what is said of it.
deeds=(
    "SELECT|^$"
    "UPDATE $process SET status = 'FAILED' WHERE process_id = $completed|statuses: COMPENSATED 1, FAILED 1"
    "UPDATE $process SET lease_owner = 'x'|and leased by x"
    "UPDATE $process SET status = 'EXECUTING' WHERE process_id = $completed|but nobody executes it"
    "UPDATE $process SET completed_at = NULL|completed_at , tsq_at"
    "UPDATE $process SET wake_at = now() WHERE process_id = $completed|is COMPLETED, error , completed_at .* wake_at 2"
    "UPDATE $process SET error_code = NULL WHERE status = 'WAITING_FOR_TSQ'|is WAITING_FOR_TSQ, error , completed_at"
    "UPDATE $process SET phase = 'FORWARD' WHERE process_id = $undone|is COMPENSATED in phase FORWARD"
    "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) VALUES ($completed, 9, 'REPLY', 'SUCCESS', '{}')|and REPLY SUCCESS is still in its inbox"
    "DELETE FROM $history WHERE ordinal = 2|records up to ordinal"
    "UPDATE $history SET ordinal = ordinal + 100|records up to ordinal"
    "$copy, 90, during, NULL FROM $history WHERE name = 'bookFx' AND kind = 'COMMAND'|has COMMAND bookFx 2 times"
    "$copy, 90, during, NULL FROM $history WHERE name = 'bookFx' AND kind = 'COMPENSATION'|has COMPENSATION bookFx 2 times"
    "INSERT INTO $history (process_id, at, kind, status, name, ordinal, response_id)
     SELECT $completed, now(), 'RESPONSE', 'COMPLETED', 'go', 90 + i, '7e57ab1e-0000-4000-8000-000000000000' FROM generate_series(1, 2) i|took response 7e57ab1e-0000-4000-8000-000000000000 twice"
    "UPDATE $history SET status = 'STARTED' WHERE name = 'enrich'|STEP enrich, is STARTED"
    "UPDATE $history SET status = 'WAITING' WHERE name LIKE 'book%'|has open records book"
    "UPDATE $process SET next_wait_timeout_at = NULL WHERE status = 'WAITING_FOR_ASYNC'|waits at awaitGo without a timer"
    "UPDATE $history SET timeout_at = NULL WHERE name = 'awaitGo'|waits at awaitGo without a timer"
    "DELETE FROM $process WHERE status = 'COMPLETED'|belongs to nobody"
    "UPDATE $history SET status = 'FAILED' WHERE kind = 'COMPENSATION' AND name = 'execute'|is COMPENSATED, and execute is not undone"
    "UPDATE $history SET owes = NULL WHERE name = 'execute'|has undone execute, which is no record"
    "UPDATE $history SET during = 100 - during WHERE kind = 'COMPENSATION'|has undone .* out of order"
    "UPDATE $process SET status = 'COMPLETED' WHERE status = 'COMPENSATED'|is COMPLETED, and has undone"
    "UPDATE $command SET status = 'IN_PROGRESS' WHERE command_type = 'ReleaseFx'|ReleaseFx of .* has not ended: IN_PROGRESS"
    "UPDATE $command SET status = 'IN_TROUBLESHOOTING_QUEUE' WHERE command_type = 'ReleaseFx'|has not ended: IN_TROUBLESHOOTING_QUEUE"
    "UPDATE $command SET command_id = gen_random_uuid() WHERE command_type = 'BookFx'|BookFx of .* has no record"
    "UPDATE $command SET status = 'CANCELED' WHERE command_type = 'BookFx'|is COMPLETED, but its command .* is CANCELED"
    "UPDATE $history SET status = 'ABANDONED' WHERE name = 'bookFx' AND kind = 'COMMAND'|is ABANDONED, but its command .* is COMPLETED"
    "UPDATE $command SET command_type = 'BookFx' WHERE command_type = 'BookRisk'|BookFx of .* was sent 2 times"
    "SELECT pgmq.send('payments__replies', '{}')|is still in payments__replies"
    "SELECT pgmq.send('risk__commands', '{}')|is still in risk__commands"
    "UPDATE commandbus.audit SET event_type = 'REPLY_DEAD_LETTERED' WHERE event_type = 'SENT'|REPLY_DEAD_LETTERED"
    "INSERT INTO commandbus.process_event (process_id, event) VALUES ($completed, 'LATE_REPLY')|LATE_REPLY for"
    "UPDATE effect SET key = process_id::text WHERE ctid = (SELECT ctid FROM effect WHERE name = 'execute' LIMIT 1);
     INSERT INTO effect SELECT process_id, name, attempt, 'another' FROM effect WHERE name = 'execute'|made 2 times with 2 keys"
    "INSERT INTO effect SELECT * FROM effect WHERE name = 'BookFx'|BookFx of .* was made 2 times in 1 attempts"
    "INSERT INTO effect SELECT * FROM effect WHERE name = 'undoExecute'|undoExecute of .* was made 2 times in 1 attempts"
    "INSERT INTO effect VALUES ($completed, 'ReleaseFx', 1, 'k')|ReleaseFx of .* was made 1 times in 0 attempts"
    "DELETE FROM effect WHERE name = 'execute'|execute of .* is recorded, but was never made"
    "DELETE FROM effect WHERE name = 'ReleaseRisk'|ReleaseRisk of .* is recorded, but was never made"
    "UPDATE $process SET state = state || '{\"executed\": false}'|its state says executed false"
    "UPDATE $process SET state = state || '{\"undone\": false}'|its state says executed true, undone false"
)

test_the_process_ledger_says_what_is_wrong() {
    local deed said all='COMPENSATED 1, COMPLETED 1, WAITING_FOR_ASYNC 1, WAITING_FOR_TSQ 1'
    stage_flows
    start_ready a
    one=$(start Five "$(noted)")
    two=$(start Five "$(noted '"decline": true')")
    three=$(start Five "$(noted '"waitFor": true')")
    four=$(start Five "$(noted '"fails": {"execute": "PERMANENT"}')")
    status_is "$one" COMPLETED
    status_is "$two" COMPENSATED
    waits_at "$three" awaitGo
    status_is "$four" WAITING_FOR_TSQ
    stop_worker a
    check_processes "$all"

    for deed in "${deeds[@]}"; do
        said=$(process_ledger "$all" "${deed%|*}")
        grep -Eq -- "${deed##*|}" <<<"$said" || fail "after ${deed%|*} it says: $said"
    done
}

run_tests "$@"
