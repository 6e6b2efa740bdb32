-- $1 worker, $2 process types, $3 their versions, $4 quantity, $5 vt_seconds, $6 claim_bytes. The
-- columns are numbered in process_rows.c.
SELECT process_id, domain, process_type, reply_queue, status, phase, error_code, error_message, current_step,
       current_wait, version, lease_no, settle_no, unsettled, inbox_seq, now_ms, created_ms, deadline_ms, retry_ms,
       wait_timeout_ms, deadline_spent, leaving, initial_state, state, history, inbox, waited_us, content_limit, too_large,
       more
FROM commandbus.claim_processes($1::text, $2::text[], $3::bigint[]::integer[], $4::integer, $5::double precision,
                                $6::bigint)
