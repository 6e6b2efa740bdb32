-- $1 process_id. Everything about it in one statement, and so as of one moment; data without what its type redacts.
-- `attempts`: what records were before they were written over, in the form of records. `owed`: completed records that a
-- compensation would undo and none has yet, the last first.
WITH one AS (
    SELECT p.*, t.redact, t.version AS registered_version
    FROM commandbus.process p LEFT JOIN commandbus.process_type t USING (process_type) WHERE p.process_id = $1::uuid
), record AS (
    SELECT false AS former, 0::bigint AS id, h.ordinal, h.kind, h.name, h.status, h.at, h.begun_at, h.finished_at,
           h.timeout_at, h.took_ms, h.attempts, h.max_attempts, h.send_no, h.during, h.response_id, h.worker, h.error_code,
           h.error_message, h.result, h.opening, h.patch, h.owes, h.domain, h.command_type, h.command_id
    FROM commandbus.process_history h WHERE h.process_id = $1::uuid
    UNION ALL
    SELECT true, a.id, a.ordinal, a.kind, a.name, a.status, a.at, NULL, a.ended_at, NULL, a.took_ms, a.attempts,
           a.max_attempts, a.send_no, NULL, NULL, a.worker, a.error_code, a.error_message, a.result, NULL, NULL, NULL,
           a.domain, a.command_type, a.command_id
    FROM commandbus.process_attempt a WHERE a.process_id = $1::uuid
), told AS (
    SELECT r.former, r.ordinal, r.id, json_build_object('ordinal', r.ordinal, 'kind', r.kind, 'name', r.name,
               'status', r.status, 'at', r.at, 'begun_at', r.begun_at, 'finished_at', r.finished_at,
               'timeout_at', r.timeout_at, 'took_ms', r.took_ms, 'attempts', r.attempts, 'max_attempts', r.max_attempts,
               'send_no', r.send_no, 'during', r.during, 'response_id', r.response_id, 'worker', r.worker,
               'error_code', r.error_code, 'error_message', r.error_message,
               'result', commandbus.redacted(r.result, p.redact), 'opening', commandbus.redacted(r.opening, p.redact),
               'patch', commandbus.redacted(r.patch, p.redact), 'owes', commandbus.redacted(r.owes, p.redact),
               'command', CASE WHEN r.command_id IS NOT NULL THEN
                   json_build_object('domain', r.domain, 'command_type', r.command_type, 'command_id', r.command_id,
                       'status', c.status, 'attempts', c.attempts, 'max_attempts', c.max_attempts, 'worker', c.lease_owner,
                       'error_code', c.error_code, 'error_message', c.error_message, 'created_at', c.created_at,
                       'completed_at', c.completed_at, 'data', commandbus.redacted(c.data, p.redact),
                       'trail', (SELECT coalesce(json_agg(json_build_object('at', a.at, 'event_type', a.event_type,
                                     'attempt', a.attempt, 'worker', a.worker, 'operator', a.operator, 'db_user', a.db_user,
                                     'details', commandbus.redacted(a.details, p.redact)) ORDER BY a.at, a.id), '[]')
                                 FROM commandbus.audit a WHERE a.command_id = r.command_id AND a.domain = r.domain))
               END) AS record
    FROM record r CROSS JOIN one p
    LEFT JOIN commandbus.command_metadata c ON c.command_id = r.command_id AND c.domain = r.domain
)
SELECT p.process_id, p.domain, p.process_type, p.version, p.execution_model, p.status, p.phase, p.current_step,
       p.current_wait, p.error_code, p.error_message, p.leaving, p.batch_id, p.reply_queue, p.wake_at, p.next_retry_at,
       p.next_wait_timeout_at, p.deadline_at, p.deadline_spent, p.tsq_at, p.lease_no, p.lease_owner, p.lease_until,
       p.lease_owner IS NOT NULL AND p.lease_until > statement_timestamp() AS running,
       p.registered_version, commandbus.now() AS now, p.created_at, p.updated_at, p.completed_at,
       commandbus.redacted(p.initial_state, p.redact) AS initial_state, commandbus.redacted(p.state, p.redact) AS state,
       (SELECT coalesce(json_agg(t.record ORDER BY t.ordinal) FILTER (WHERE NOT t.former), '[]') FROM told t) AS records,
       (SELECT coalesce(json_agg(t.record ORDER BY t.ordinal, t.id) FILTER (WHERE t.former), '[]') FROM told t) AS attempts,
       (SELECT coalesce(json_agg(json_build_object('seq', i.seq, 'at', i.at, 'kind', i.kind, 'name', i.name,
               'response_id', i.response_id, 'payload', commandbus.redacted(i.payload, p.redact)) ORDER BY i.seq), '[]')
        FROM commandbus.process_inbox i WHERE i.process_id = p.process_id) AS inbox,
       (SELECT coalesce(json_agg(json_build_object('at', v.at, 'event', v.event, 'step_name', v.step_name,
               'command_id', v.command_id, 'worker', v.worker, 'operator', v.operator, 'db_user', v.db_user,
               'details', commandbus.redacted(v.details, p.redact)) ORDER BY v.at, v.id), '[]')
        FROM commandbus.process_event v WHERE v.process_id = p.process_id) AS events,
       (SELECT coalesce(json_agg(json_build_object('ordinal', h.ordinal, 'name', h.name, 'owes', commandbus.redacted(h.owes, p.redact))
               ORDER BY h.ordinal DESC), '[]')
        FROM commandbus.process_history h
        WHERE h.process_id = p.process_id AND h.owes IS NOT NULL AND h.status = 'COMPLETED' AND h.kind <> 'COMPENSATION'
          AND NOT EXISTS (SELECT FROM commandbus.process_history paid
                          WHERE paid.process_id = h.process_id AND paid.kind = 'COMPENSATION'
                            AND paid.during = h.ordinal AND paid.status = 'COMPLETED')) AS owed
FROM one p
