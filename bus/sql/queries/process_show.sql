-- $1 process_id. Everything about it in one statement, and so as of one moment; data without what its type redacts.
-- `owed`: completed records that a compensation would undo and none has yet, the last first.
SELECT p.process_id, p.domain, p.process_type, p.version, p.execution_model, p.status, p.phase, p.current_step,
       p.current_wait, p.error_code, p.error_message, p.leaving, p.batch_id, p.reply_queue, p.wake_at, p.next_retry_at,
       p.next_wait_timeout_at, p.deadline_at, p.deadline_spent, p.tsq_at, p.lease_no, p.lease_owner, p.lease_until,
       p.lease_owner IS NOT NULL AND p.lease_until > statement_timestamp() AS running,
       t.version AS registered_version, commandbus.now() AS now, p.created_at, p.updated_at, p.completed_at,
       commandbus.redacted(p.initial_state, t.redact) AS initial_state, commandbus.redacted(p.state, t.redact) AS state,
       (SELECT coalesce(json_agg(json_build_object('ordinal', h.ordinal, 'kind', h.kind, 'name', h.name, 'status', h.status,
               'at', h.at, 'finished_at', h.finished_at, 'timeout_at', h.timeout_at, 'took_ms', h.took_ms,
               'attempts', h.attempts, 'send_no', h.send_no, 'during', h.during, 'response_id', h.response_id,
               'error_code', h.error_code, 'error_message', h.error_message,
               'result', commandbus.redacted(h.result, t.redact), 'opening', commandbus.redacted(h.opening, t.redact),
               'patch', commandbus.redacted(h.patch, t.redact), 'owes', commandbus.redacted(h.owes, t.redact),
               'command', CASE WHEN h.command_id IS NOT NULL THEN
                   json_build_object('domain', h.domain, 'command_type', h.command_type, 'command_id', h.command_id,
                       'status', c.status, 'attempts', c.attempts, 'max_attempts', c.max_attempts, 'worker', c.lease_owner,
                       'error_code', c.error_code, 'error_message', c.error_message, 'created_at', c.created_at,
                       'completed_at', c.completed_at,
                       'trail', (SELECT coalesce(json_agg(json_build_object('at', a.at, 'event_type', a.event_type,
                                     'attempt', a.attempt, 'worker', a.worker, 'operator', a.operator, 'db_user', a.db_user,
                                     'details', commandbus.redacted(a.details, t.redact)) ORDER BY a.at, a.id), '[]')
                                 FROM commandbus.audit a WHERE a.command_id = h.command_id AND a.domain = h.domain))
               END) ORDER BY h.ordinal), '[]')
        FROM commandbus.process_history h
        LEFT JOIN commandbus.command_metadata c ON c.command_id = h.command_id AND c.domain = h.domain
        WHERE h.process_id = p.process_id) AS records,
       (SELECT coalesce(json_agg(json_build_object('seq', i.seq, 'at', i.at, 'kind', i.kind, 'name', i.name,
               'response_id', i.response_id, 'payload', commandbus.redacted(i.payload, t.redact)) ORDER BY i.seq), '[]')
        FROM commandbus.process_inbox i WHERE i.process_id = p.process_id) AS inbox,
       (SELECT coalesce(json_agg(json_build_object('at', v.at, 'event', v.event, 'step_name', v.step_name,
               'worker', v.worker, 'operator', v.operator, 'db_user', v.db_user, 'details', commandbus.redacted(v.details, t.redact))
               ORDER BY v.at, v.id), '[]')
        FROM commandbus.process_event v WHERE v.process_id = p.process_id) AS events,
       (SELECT coalesce(json_agg(json_build_object('ordinal', h.ordinal, 'name', h.name, 'owes', commandbus.redacted(h.owes, t.redact))
               ORDER BY h.ordinal DESC), '[]')
        FROM commandbus.process_history h
        WHERE h.process_id = p.process_id AND h.owes IS NOT NULL AND h.status = 'COMPLETED' AND h.kind <> 'COMPENSATION'
          AND NOT EXISTS (SELECT FROM commandbus.process_history paid
                          WHERE paid.process_id = h.process_id AND paid.kind = 'COMPENSATION'
                            AND paid.during = h.ordinal AND paid.status = 'COMPLETED')) AS owed
FROM commandbus.process p
LEFT JOIN commandbus.process_type t USING (process_type)
WHERE p.process_id = $1::uuid
