-- Processes, for those who start, answer, watch and decide.

--: register_process_type
-- $1 process_type, $2 domain, $3 version, $4 execution model, $5 reply queue or NULL, $6 names of
-- redacted fields, $7 responses or NULL
SELECT commandbus.register_process_type($1::text, $2::text, $3::integer, $4::text, $5::text,
                                        $6::text[], $7::jsonb)

--: start_process
-- $1 process_type, $2 state, $3 process_id, $4 deadline, $5 batch_id, $6 leased_by,
-- $7 lease_seconds
SELECT commandbus.start_process($1::text, $2::jsonb, $3::uuid, $4::timestamptz, $5::uuid, $6::text,
                                $7::double precision)

--: start_processes
-- $1 process_type, $2 states (a JSON array), $3 deadline, $4 batch_id, $5 what refusals call the
-- states, $6 ids and $7 deadlines of them, $8 leased_by, $9 lease_seconds
SELECT count(*)
FROM commandbus.start_processes($1::text, $2::jsonb, $3::timestamptz, $4::uuid, $5::text[],
                                $6::text[]::uuid[], $7::text[]::timestamptz[], $8::text,
                                $9::double precision)

--: start_batch
-- $1 process_type, $2 states (a JSON array), $3 name, $4 reply_to, $5 custom_data, $6 batch_id,
-- $7 deadline, $8 what refusals call the states, $9 ids and $10 deadlines of them, $11 leased_by,
-- $12 lease_seconds
SELECT commandbus.start_batch($1::text, $2::jsonb, $3::text, $4::text, $5::jsonb, $6::uuid,
                              $7::timestamptz, $8::text[], $9::text[]::uuid[],
                              $10::text[]::timestamptz[], $11::text, $12::double precision)

--: respond
-- $1 process_id, $2 name, $3 payload, $4 response_id
SELECT commandbus.respond($1::uuid, $2::text, $3::jsonb, $4::uuid)

--: process_retry
-- $1 process_id, $2 operator, $3 reason, $4 new deadline or NULL
SELECT commandbus.process_retry($1::uuid, $2::text, $3::text, $4::timestamptz)

--: process_cancel
-- $1 process_id, $2 operator, $3 reason, $4 whether to run compensations
SELECT commandbus.process_cancel($1::uuid, $2::text, $3::text, $4::boolean)

--: process_complete
-- $1 process_id, $2 operator, $3 reason, $4 overrides or NULL
SELECT commandbus.process_complete($1::uuid, $2::text, $3::text, $4::jsonb)

--: part process_filter
-- $1 domain, $2 process_type, $3 statuses (array), $4 error_code, $5 batch_id, $6 created_from,
-- $7 created_to; NULL does not filter. A time is ISO 8601, or an interval before now.
($1::text IS NULL OR p.domain = $1::text)
  AND ($2::text IS NULL OR p.process_type = $2::text)
  AND ($3::text IS NULL OR p.status = ANY ($3::text::commandbus.process_status[]))
  AND ($4::text IS NULL OR p.error_code = $4::text)
  AND ($5::uuid IS NULL OR p.batch_id = $5::uuid)
  AND ($6::text IS NULL OR p.created_at >= CASE WHEN $6::text ~ '^\d{4}-\d\d'
                                                THEN $6::text::timestamptz
                                                ELSE commandbus.now() - $6::text::interval END)
  AND ($7::text IS NULL OR p.created_at < CASE WHEN $7::text ~ '^\d{4}-\d\d'
                                               THEN $7::text::timestamptz
                                               ELSE commandbus.now() - $7::text::interval END)

--: process_list
-- $1 to $7 as process_filter, $8 older_than, $9 limit, $10 offset.
-- Newest first, without states. older_than: since anything about it changed.
SELECT p.process_id, p.domain, p.process_type, p.status, p.phase,
       coalesce(p.current_wait, p.current_step) AS current, p.error_code, p.version,
       p.execution_model, p.current_step, p.current_wait, p.batch_id, p.lease_owner, p.wake_at,
       p.next_retry_at, p.next_wait_timeout_at, p.deadline_at, p.tsq_at, p.created_at, p.updated_at,
       p.completed_at
FROM commandbus.process p
WHERE
  --+ process_filter
  AND ($8::text IS NULL
       OR coalesce(p.tsq_at, p.updated_at) <= commandbus.now() - $8::text::interval)
ORDER BY p.created_at DESC, p.process_id DESC
LIMIT $9::bigint OFFSET $10::bigint

--: process_show
-- $1 process_id. Everything about it in one statement, and so as of one moment; data without what
-- its type redacts. `attempts`: what records were before they were written over, in the form of
-- records. `owed`: completed records that a compensation would undo and none has yet, the last
-- first.
WITH one AS (
    SELECT p.*, t.redact, t.version AS registered_version
    FROM commandbus.process p LEFT JOIN commandbus.process_type t USING (process_type)
    WHERE p.process_id = $1::uuid
), record AS (
    SELECT false AS former, 0::bigint AS id, h.ordinal, h.kind, h.name, h.status, h.at, h.begun_at,
           h.finished_at, h.timeout_at, h.took_ms, h.attempts, h.max_attempts, h.send_no, h.during,
           h.response_id, h.worker, h.error_code, h.error_message, h.result, h.opening, h.patch,
           h.owes, h.domain, h.command_type, h.command_id
    FROM commandbus.process_history h WHERE h.process_id = $1::uuid
    UNION ALL
    SELECT true, a.id, a.ordinal, a.kind, a.name, a.status, a.at, NULL, a.ended_at, NULL, a.took_ms,
           a.attempts, a.max_attempts, a.send_no, NULL, NULL, a.worker, a.error_code,
           a.error_message, a.result, NULL, NULL, NULL, a.domain, a.command_type, a.command_id
    FROM commandbus.process_attempt a WHERE a.process_id = $1::uuid
), told AS (
    SELECT r.former, r.ordinal, r.id,
           json_build_object('ordinal', r.ordinal, 'kind', r.kind, 'name', r.name,
               'status', r.status, 'at', r.at, 'begun_at', r.begun_at,
               'finished_at', r.finished_at, 'timeout_at', r.timeout_at, 'took_ms', r.took_ms,
               'attempts', r.attempts, 'max_attempts', r.max_attempts, 'send_no', r.send_no,
               'during', r.during, 'response_id', r.response_id, 'worker', r.worker,
               'error_code', r.error_code, 'error_message', r.error_message,
               'result', commandbus.redacted(r.result, p.redact),
               'opening', commandbus.redacted(r.opening, p.redact),
               'patch', commandbus.redacted(r.patch, p.redact),
               'owes', commandbus.redacted(r.owes, p.redact),
               'command', CASE WHEN r.command_id IS NOT NULL THEN
                   json_build_object('domain', r.domain, 'command_type', r.command_type,
                       'command_id', r.command_id, 'status', c.status, 'attempts', c.attempts,
                       'max_attempts', c.max_attempts, 'worker', c.lease_owner,
                       'error_code', c.error_code, 'error_message', c.error_message,
                       'created_at', c.created_at, 'completed_at', c.completed_at,
                       'data', commandbus.redacted(c.data, p.redact),
                       'trail', (SELECT coalesce(json_agg(json_build_object('at', a.at,
                                     'event_type', a.event_type, 'attempt', a.attempt,
                                     'worker', a.worker, 'operator', a.operator,
                                     'db_user', a.db_user,
                                     'details', commandbus.redacted(a.details, p.redact))
                                     ORDER BY a.at, a.id), '[]')
                                 FROM commandbus.audit a
                                 WHERE a.command_id = r.command_id AND a.domain = r.domain))
               END) AS record
    FROM record r CROSS JOIN one p
    LEFT JOIN commandbus.command_metadata c ON c.command_id = r.command_id AND c.domain = r.domain
)
SELECT p.process_id, p.domain, p.process_type, p.version, p.execution_model, p.status, p.phase,
       p.current_step, p.current_wait, p.error_code, p.error_message, p.leaving, p.batch_id,
       p.reply_queue, p.wake_at, p.next_retry_at, p.next_wait_timeout_at, p.deadline_at,
       p.deadline_spent, p.tsq_at, p.lease_no, p.lease_owner, p.lease_until,
       p.lease_owner IS NOT NULL AND p.lease_until > statement_timestamp() AS running,
       p.registered_version, commandbus.now() AS now, p.created_at, p.updated_at, p.completed_at,
       commandbus.redacted(p.initial_state, p.redact) AS initial_state,
       commandbus.redacted(p.state, p.redact) AS state,
       (SELECT coalesce(json_agg(t.record ORDER BY t.ordinal) FILTER (WHERE NOT t.former), '[]')
        FROM told t) AS records,
       (SELECT coalesce(json_agg(t.record ORDER BY t.ordinal, t.id) FILTER (WHERE t.former), '[]')
        FROM told t) AS attempts,
       (SELECT coalesce(json_agg(json_build_object('seq', i.seq, 'at', i.at, 'kind', i.kind,
               'name', i.name, 'response_id', i.response_id,
               'payload', commandbus.redacted(i.payload, p.redact)) ORDER BY i.seq), '[]')
        FROM commandbus.process_inbox i WHERE i.process_id = p.process_id) AS inbox,
       (SELECT coalesce(json_agg(json_build_object('at', v.at, 'event', v.event,
               'step_name', v.step_name, 'command_id', v.command_id, 'worker', v.worker,
               'operator', v.operator, 'db_user', v.db_user,
               'details', commandbus.redacted(v.details, p.redact)) ORDER BY v.at, v.id), '[]')
        FROM commandbus.process_event v WHERE v.process_id = p.process_id) AS events,
       (SELECT coalesce(json_agg(json_build_object('ordinal', h.ordinal, 'name', h.name,
               'owes', commandbus.redacted(h.owes, p.redact)) ORDER BY h.ordinal DESC), '[]')
        FROM commandbus.process_history h
        WHERE h.process_id = p.process_id AND h.owes IS NOT NULL AND h.status = 'COMPLETED'
          AND h.kind <> 'COMPENSATION'
          AND NOT EXISTS (SELECT FROM commandbus.process_history paid
                          WHERE paid.process_id = h.process_id AND paid.kind = 'COMPENSATION'
                            AND paid.during = h.ordinal AND paid.status = 'COMPLETED')) AS owed
FROM one p

--: process_moment
-- $1 interval. So much after now, by the clock of process timers.
SELECT commandbus.now() + $1::interval AS moment

--: process_counts
-- $1 to $7 as process_filter, $8 older_than, $9 limit, $10 offset.
-- How many, by type, status and error code.
SELECT p.domain, p.process_type, p.status, p.error_code, count(*) AS processes,
       min(p.created_at) AS oldest_at
FROM commandbus.process p
WHERE
  --+ process_filter
  AND ($8::text IS NULL
       OR coalesce(p.tsq_at, p.updated_at) <= commandbus.now() - $8::text::interval)
GROUP BY p.domain, p.process_type, p.status, p.error_code
ORDER BY p.domain, p.process_type, p.status, p.error_code
LIMIT $9::bigint OFFSET $10::bigint

--: process_tsq_list
-- $1 to $7 as process_filter, $8 older_than, $9 limit, $10 offset.
-- Those that wait for an operator, oldest first.
SELECT p.process_id, p.domain, p.process_type, p.phase,
       coalesce(p.current_wait, p.current_step) AS current, p.error_code, p.error_message, p.tsq_at,
       p.batch_id, p.deadline_at, p.created_at
FROM commandbus.process p
WHERE p.tsq_at IS NOT NULL AND p.status = 'WAITING_FOR_TSQ'
  AND
  --+ process_filter
  AND ($8::text IS NULL OR p.tsq_at <= commandbus.now() - $8::text::interval)
ORDER BY p.tsq_at, p.process_id
LIMIT $9::bigint OFFSET $10::bigint

--: process_figures
-- No parameters. Processes that have not ended, by type, status, error code and what they wait for.
SELECT process_type, status, error_code, current_wait, processes, oldest_due_seconds,
       oldest_reply_seconds, oldest_seconds
FROM commandbus.process_figures()

--: process_load
-- No parameters. Each type with what is due and what waits for an operator, from the indexes alone.
-- A running process is not due: its wake_at is the end of its lease.
SELECT t.domain, t.process_type, t.version, t.execution_model, due.processes AS due,
       round(extract(epoch FROM clock.now - due.oldest), 3) AS waiting_seconds,
       parked.processes AS in_tsq
FROM (SELECT commandbus.now() AS now) clock
CROSS JOIN commandbus.process_type t
CROSS JOIN LATERAL (SELECT sum(f.processes) AS processes, min(f.oldest) AS oldest
                    FROM (SELECT count(*) AS processes, min(p.wake_at) AS oldest
                          FROM commandbus.process p
                          WHERE p.process_type = t.process_type AND p.wake_at <= clock.now
                            AND p.lease_owner IS NULL
                          UNION ALL
                          SELECT count(*), min(p.wake_at) FROM commandbus.process p
                          WHERE p.process_type = t.process_type AND p.wake_at <= clock.now
                            AND p.lease_owner IS NOT NULL) f) due
CROSS JOIN LATERAL (SELECT count(*) AS processes FROM commandbus.process p
                    WHERE p.domain = t.domain AND p.tsq_at IS NOT NULL
                      AND p.process_type = t.process_type) parked
ORDER BY t.domain, t.process_type
