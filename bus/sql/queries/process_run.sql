-- Processes, for workers: deliver, claim, renew, settle, replay.

--: deliver_replies
-- $1 reply queue, $2 worker, $3 quantity, $4 grace_seconds. The columns are numbered in
-- process_rows.c.
SELECT delivered, late, dead_lettered, taken, locked
FROM commandbus.deliver_replies($1::text, $2::text, $3::integer, $4::double precision)

--: deliver_former_replies
-- $1 worker, $2 process types, $3 grace_seconds
SELECT commandbus.deliver_former_replies($1::text, $2::text[], $3::double precision)

--: claim_processes
-- $1 worker, $2 process types, $3 their versions, $4 quantity, $5 vt_seconds, $6 claim_bytes. The
-- columns are numbered in process_rows.c.
SELECT process_id, domain, process_type, reply_queue, status, phase, error_code, error_message,
       current_step, current_wait, version, lease_no, settle_no, unsettled, inbox_seq, now_ms,
       created_ms, deadline_ms, retry_ms, wait_timeout_ms, deadline_spent, leaving, initial_state,
       state, history, inbox, waited_us, content_limit, too_large, more
FROM commandbus.claim_processes($1::text, $2::text[], $3::bigint[]::integer[], $4::integer,
                                $5::double precision, $6::bigint)

--: next_process_wake
-- $1 process types, $2 their versions, $3 vt_seconds
SELECT commandbus.next_process_wake($1::text[], $2::bigint[]::integer[], $3::double precision)

--: extend_processes
-- $1 worker, $2 process ids, $3 lease numbers, $4 vt_seconds. One row an id, in their order.
SELECT held
FROM unnest(commandbus.extend_processes($1::text, $2::uuid[], $3::bigint[], $4::double precision))
    WITH ORDINALITY e(held, ord) ORDER BY ord

--: release_unknown_processes
-- $1 worker, $2 process types, $3 and $4 the process ids and lease numbers that the worker knows
SELECT commandbus.release_unknown_processes($1::text, $2::text[], $3::uuid[], $4::bigint[])

--: settle_process_arrays
-- $1 worker, then as the function has them: $2 items, $3 by how much they grow, $4 $5 new records,
-- $6 $7 those that are written over, $8 $9 commands, $10 $11 what was consumed; $12 whether a
-- record may be repeated
SELECT verdicts, batch_ids
FROM commandbus.settle_process_arrays($1::text, $2::commandbus.process_outcome[], $3::bigint[],
    $4::commandbus.process_record[], $5::integer[], $6::commandbus.process_record[],
    $7::integer[], $12::boolean, $8::commandbus.new_command[], $9::integer[], $10::integer[],
    $11::integer[])

--: read_process
-- $1 process_id. The columns are numbered in process_rows.c.
SELECT process_id, domain, process_type, reply_queue, status, phase, error_code, error_message,
       current_step, current_wait, version, lease_no, settle_no, unsettled, inbox_seq, now_ms,
       created_ms, deadline_ms, retry_ms, wait_timeout_ms, deadline_spent, leaving, initial_state,
       state, history, inbox, waited_us, content_limit, too_large, more
FROM commandbus.read_processes(ARRAY[$1::uuid])

--: running_processes
-- $1 process_type or NULL, $2 id to start after or NULL, $3 how many
SELECT commandbus.running_processes($1::text, $2::uuid, $3::integer)
