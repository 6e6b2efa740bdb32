-- Processes as people and monitoring look at them.

-- Those that have not ended: each has a timer, leased or not, waits for an operator or is idle, so that four small
-- indexes find them, however many have ended. One index for all of them would cost every move of every process.
CREATE VIEW commandbus.live_process AS
SELECT p.* FROM commandbus.process p WHERE p.wake_at IS NOT NULL AND p.lease_owner IS NULL AND p.completed_at IS NULL
UNION ALL
SELECT p.* FROM commandbus.process p WHERE p.wake_at IS NOT NULL AND p.lease_owner IS NOT NULL AND p.completed_at IS NULL
UNION ALL
SELECT p.* FROM commandbus.process p WHERE p.tsq_at IS NOT NULL AND p.wake_at IS NULL AND p.completed_at IS NULL
UNION ALL
SELECT p.* FROM commandbus.process p WHERE p.wake_at IS NULL AND p.tsq_at IS NULL AND p.completed_at IS NULL;

-- The data with "***" for the values of these fields, however deep they are.
CREATE FUNCTION commandbus.redacted(data jsonb, names text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF cardinality(names) > 0 AND jsonb_typeof(data) = 'object' THEN
        RETURN coalesce((SELECT jsonb_object_agg(f.key, CASE WHEN f.key = ANY (names) THEN '"***"'
                                                             ELSE commandbus.redacted(f.value, names) END)
                         FROM jsonb_each(data) f), '{}');
    ELSIF cardinality(names) > 0 AND jsonb_typeof(data) = 'array' THEN
        RETURN coalesce((SELECT jsonb_agg(commandbus.redacted(e.value, names) ORDER BY e.ord)
                         FROM jsonb_array_elements(data) WITH ORDINALITY e(value, ord)), '[]');
    END IF;
    RETURN data;
END
$$;

-- What happened to processes, one row a record or event. Data without what the type redacts; that of a command is
-- there as long as the command is.
CREATE VIEW commandbus.process_audit AS
SELECT p.process_id, p.domain, p.process_type, p.created_at AS at, NULL::text AS step_name, 'PROCESS_CREATED' AS event,
       NULL::text AS entry_type, NULL::text AS step_status, NULL::integer AS attempt_number, NULL::uuid AS command_id,
       NULL::text AS command_type, NULL::jsonb AS command_data, NULL::timestamptz AS sent_at, NULL::text AS reply_outcome,
       NULL::jsonb AS reply_data, NULL::timestamptz AS received_at, NULL::text AS operator, NULL::jsonb AS details,
       0 AS ordinal, NULL::text AS worker
FROM commandbus.process p
UNION ALL
SELECT p.process_id, p.domain, p.process_type, h.at, h.name,
       CASE WHEN h.kind = 'RESPONSE' THEN 'ASYNC_RESPONSE'
            WHEN h.kind = 'OPERATOR' THEN 'OPERATOR_' || h.name
            WHEN h.kind = 'COMPENSATION' AND h.status = 'COMPLETED' THEN 'COMPENSATION_SUCCESS'
            ELSE h.kind || '_' || h.status END,
       CASE h.kind WHEN 'RESPONSE' THEN 'ASYNC_RESPONSE' ELSE h.kind::text END,
       h.status::text, h.attempts, h.command_id, h.command_type, commandbus.redacted(c.data, t.redact),
       CASE WHEN h.command_id IS NOT NULL THEN h.at END,
       -- The command's own end if it is still there: an abandoned record does not tell it.
       CASE WHEN h.command_id IS NULL OR h.finished_at IS NULL THEN NULL
            ELSE coalesce(CASE c.status WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'CANCELED' THEN 'CANCELED'
                                        WHEN 'FAILED' THEN 'FAILED' END,
                          CASE h.status WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'FAILED' THEN 'FAILED' WHEN 'CAUGHT' THEN 'FAILED' END) END,
       CASE WHEN h.command_id IS NOT NULL OR h.kind = 'RESPONSE' THEN commandbus.redacted(h.result, t.redact) END,
       CASE WHEN h.kind = 'RESPONSE' THEN h.at WHEN h.command_id IS NOT NULL THEN h.finished_at END,
       CASE WHEN h.kind = 'OPERATOR' THEN h.result ->> 'operator' END,
       jsonb_strip_nulls(jsonb_build_object('error_code', h.error_code, 'error_message', h.error_message, 'took_ms', h.took_ms,
           'finished_at', h.finished_at, 'timeout_at', h.timeout_at, 'during', h.during)),
       h.ordinal, NULL
FROM commandbus.process_history h JOIN commandbus.process p ON p.process_id = h.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
LEFT JOIN commandbus.command_metadata c ON c.command_id = h.command_id AND c.domain = h.domain
UNION ALL
SELECT p.process_id, p.domain, p.process_type, e.at, e.step_name, e.event, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, e.operator, commandbus.redacted(e.details, t.redact), NULL, e.worker
FROM commandbus.process_event e JOIN commandbus.process p ON p.process_id = e.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type;

-- A moment as S0's documents have it.
CREATE FUNCTION commandbus.instant(at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- S0's state JSON: the fields of the state, and what has happened, as one document.
CREATE VIEW commandbus.process_state_document AS
SELECT p.process_id, p.domain, p.process_type,
       commandbus.redacted(p.state, t.redact) || jsonb_build_object('stepHistory', h.steps, 'waitHistory', h.waits, 'sideEffects', h.side_effects,
           'errorCode', p.error_code, 'errorMessage', p.error_message,
           'processDeadline', commandbus.instant(p.deadline_at)) AS document
FROM commandbus.process p
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', h.name,
               'status', CASE h.status WHEN 'RETRY' THEN 'WAITING_RETRY' WHEN 'WAITING' THEN 'STARTED'
                                       WHEN 'ABANDONED' THEN 'FAILED' WHEN 'CAUGHT' THEN 'FAILED' ELSE h.status::text END,
               'attemptCount', h.attempts, 'maxRetries', NULL, 'startedAt', commandbus.instant(h.at),
               'completedAt', commandbus.instant(h.finished_at), 'requestJson', NULL,
               'responseJson', commandbus.redacted(coalesce(h.result, h.patch), t.redact)::text, 'errorCode', h.error_code, 'errorMessage', h.error_message,
               'nextRetryAt', CASE h.status WHEN 'RETRY' THEN commandbus.instant(p.next_retry_at) END)
               ORDER BY h.ordinal) FILTER (WHERE h.kind IN ('STEP', 'COMMAND')), '[]') AS steps,
           coalesce(jsonb_agg(jsonb_build_object('name', h.name, 'satisfied', h.status = 'COMPLETED',
               'recordedAt', commandbus.instant(h.at),
               'timeout', 'PT' || trim_scale(round(extract(epoch FROM h.timeout_at - h.at), 3)) || 'S',
               'timeoutAt', commandbus.instant(h.timeout_at))
               ORDER BY h.ordinal) FILTER (WHERE h.kind = 'WAIT'), '[]') AS waits,
           coalesce(jsonb_agg(jsonb_build_object('name', h.name, 'valueJson', commandbus.redacted(h.result, t.redact)::text,
               'recordedAt', commandbus.instant(h.at))
               ORDER BY h.ordinal) FILTER (WHERE h.kind = 'SIDE_EFFECT'), '[]') AS side_effects
    FROM commandbus.process_history h WHERE h.process_id = p.process_id
) h;

-- For a reply to a command: of a manager, or of a compensation, which may both wait without a timer.
CREATE FUNCTION commandbus.awaits_reply(status commandbus.process_status, current_wait text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT status = 'WAITING_FOR_REPLY' OR (status = 'COMPENSATING' AND current_wait IS NOT NULL)
$$;

-- For metrics: those that have not ended, for how long the first due one that nobody runs has been due, and for how
-- long the oldest that waits for a reply has been waiting.
CREATE FUNCTION commandbus.process_figures()
RETURNS TABLE (process_type text, status text, error_code text, processes bigint, oldest_due_seconds double precision,
               oldest_reply_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT p.process_type, p.status::text, p.error_code, count(*),
           coalesce(max(extract(epoch FROM t.now_at - p.wake_at)) FILTER (WHERE p.wake_at <= t.now_at
               AND (p.lease_until IS NULL OR p.lease_until <= statement_timestamp())), 0)::double precision,
           coalesce(max(extract(epoch FROM t.now_at - p.updated_at)) FILTER (WHERE commandbus.awaits_reply(p.status, p.current_wait)),
                    0)::double precision
    FROM commandbus.live_process p CROSS JOIN (SELECT commandbus.now() AS now_at) t
    GROUP BY p.process_type, p.status, p.error_code
    ORDER BY 1, 2, 3
$$;

-- For doctor: what is wrong with processes. `seconds` is for how long, of the worst one. A live instance
-- may say in its heartbeat which types it runs: "processes": {"<type>": <version>}.
CREATE FUNCTION commandbus.process_problems()
RETURNS TABLE (problem text, process_type text, about text, processes bigint, seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH live AS MATERIALIZED (
        SELECT p.process_id, p.process_type, p.domain, p.status, p.error_code, p.version, p.wake_at, p.lease_until, p.tsq_at,
               p.updated_at, p.lease_owner, p.current_wait, t.now_at
        FROM commandbus.live_process p CROSS JOIN (SELECT commandbus.now() AS now_at) t
    ), said AS MATERIALIZED (
        SELECT d.key AS process_type, max(commandbus.figure(w.details -> 'processes', d.key)) AS version
        FROM commandbus.worker w
        CROSS JOIN LATERAL jsonb_object_keys(CASE jsonb_typeof(w.details -> 'processes') WHEN 'object'
                                             THEN w.details -> 'processes' ELSE '{}' END) d(key)
        WHERE w.heartbeat_at >= statement_timestamp() - interval '60 seconds'
        GROUP BY d.key
    )
    SELECT 'PARKED', l.process_type, coalesce(l.error_code, 'no code'), count(*),
           extract(epoch FROM max(l.now_at - l.tsq_at))::double precision
    FROM live l WHERE l.status = 'WAITING_FOR_TSQ' GROUP BY 2, 3
    UNION ALL
    SELECT 'NOT_SERVED', l.process_type, l.domain, count(*), extract(epoch FROM max(l.now_at - l.wake_at))
    FROM live l WHERE l.wake_at < l.now_at - interval '60 seconds' AND l.lease_owner IS NULL GROUP BY 2, 3
    UNION ALL
    SELECT 'LEASE_OVER', l.process_type, l.lease_owner, count(*), extract(epoch FROM max(statement_timestamp() - l.lease_until))
    FROM live l WHERE l.lease_owner IS NOT NULL AND l.lease_until < statement_timestamp() - interval '60 seconds' GROUP BY 2, 3
    UNION ALL
    -- One in the troubleshooting queue keeps its responses until an operator has decided.
    SELECT 'UNKNOWN_RESPONSE', l.process_type, r.name, count(DISTINCT l.process_id), extract(epoch FROM max(l.now_at - r.at))
    FROM live l CROSS JOIN LATERAL (
        SELECT i.name, i.at FROM commandbus.process_inbox i
        WHERE i.process_id = l.process_id AND i.kind = 'RESPONSE' AND i.at < statement_timestamp() - interval '1 hour'
          AND l.status <> 'WAITING_FOR_TSQ'
        UNION ALL
        SELECT h.name, h.at FROM commandbus.process_history h
        WHERE h.process_id = l.process_id AND h.kind = 'RESPONSE' AND h.status = 'FAILED'
    ) r GROUP BY 2, 3
    UNION ALL
    SELECT 'LATE_SUCCESS', p.process_type, coalesce(e.step_name, e.details ->> 'command_id'), count(*),
           extract(epoch FROM statement_timestamp() - min(e.at))
    FROM commandbus.process_event e JOIN commandbus.process p ON p.process_id = e.process_id
    WHERE e.event = 'LATE_REPLY' AND e.details ->> 'outcome' = 'SUCCESS' AND e.at > statement_timestamp() - interval '1 day'
      -- The second reply of a command whose first one was taken is nothing to undo.
      AND NOT EXISTS (SELECT FROM commandbus.process_history h
                      WHERE h.process_id = e.process_id AND h.status = 'COMPLETED'
                        AND h.command_id::text = e.details ->> 'command_id')
    GROUP BY 2, 3
    UNION ALL
    SELECT 'LOST_REPLY', r.process_type, (array_agg(format('process %s, command %s %s',
               r.process_id, r.command_id, r.outcome) ORDER BY r.ended_at))[1], count(*),
           extract(epoch FROM max(statement_timestamp() - r.ended_at))
    FROM commandbus.restore_replies(grace_seconds => 5, dry_run => true) r GROUP BY 2
    UNION ALL
    SELECT 'UNKNOWN_TYPE', l.process_type, l.domain, count(*), NULL
    FROM live l WHERE NOT EXISTS (SELECT FROM commandbus.process_type t WHERE t.process_type = l.process_type) GROUP BY 2, 3
    UNION ALL
    SELECT 'NO_WORKER', l.process_type, l.domain, count(*), NULL
    FROM live l
    WHERE EXISTS (SELECT FROM said) AND NOT EXISTS (SELECT FROM said s WHERE s.process_type = l.process_type) GROUP BY 2, 3
    UNION ALL
    SELECT 'VERSION_TOO_NEW', l.process_type, 'version ' || max(l.version), count(*), NULL
    FROM live l
    LEFT JOIN commandbus.process_type t ON t.process_type = l.process_type
    LEFT JOIN said s ON s.process_type = l.process_type
    WHERE l.version > coalesce(s.version, t.version) GROUP BY 2
    UNION ALL
    SELECT 'LONG_REPLY', l.process_type, l.domain, count(*), extract(epoch FROM max(l.now_at - l.updated_at))
    FROM live l WHERE commandbus.awaits_reply(l.status, l.current_wait) AND l.updated_at < l.now_at - interval '1 hour' GROUP BY 2, 3
$$;

-- Counts follow the rows until the batch closes; from then on the frozen ones count, so that retention of
-- members does not change them. A process counts in the words of commands: one that the business or an
-- operator undid has not succeeded.
CREATE VIEW commandbus.batch_status AS
SELECT b.batch_id, b.domain, b.name, b.batch_type, b.status, b.custom_data, b.reply_to,
       coalesce(b.total, c.total) AS total,
       coalesce(b.completed, c.completed) AS completed,
       coalesce(b.failed, c.failed) AS failed,
       coalesce(b.canceled, c.canceled) AS canceled,
       CASE WHEN b.completed_at IS NULL THEN c.in_tsq ELSE 0 END AS in_troubleshooting,
       CASE WHEN b.completed_at IS NULL THEN c.in_progress ELSE 0 END AS in_progress,
       CASE WHEN b.completed_at IS NULL THEN c.pending ELSE 0 END AS pending,
       b.created_at, b.started_at, b.completed_at
FROM commandbus.batch b
CROSS JOIN LATERAL (
    SELECT count(*)::integer AS total,
           (count(*) FILTER (WHERE m.status = 'COMPLETED'))::integer AS completed,
           (count(*) FILTER (WHERE m.status = 'FAILED'))::integer AS failed,
           (count(*) FILTER (WHERE m.status = 'CANCELED'))::integer AS canceled,
           (count(*) FILTER (WHERE m.status = 'IN_TROUBLESHOOTING_QUEUE'))::integer AS in_tsq,
           (count(*) FILTER (WHERE m.status = 'IN_PROGRESS'))::integer AS in_progress,
           (count(*) FILTER (WHERE m.status = 'PENDING'))::integer AS pending
    FROM (
        SELECT m.status FROM commandbus.command_metadata m
        WHERE m.batch_id = b.batch_id AND b.completed_at IS NULL AND b.batch_type = 'COMMAND'
        UNION ALL
        SELECT CASE p.status WHEN 'COMPLETED' THEN 'COMPLETED'::commandbus.command_status
                             WHEN 'FAILED' THEN 'FAILED'
                             WHEN 'COMPENSATED' THEN 'FAILED'
                             WHEN 'CANCELED' THEN 'CANCELED'
                             WHEN 'WAITING_FOR_TSQ' THEN 'IN_TROUBLESHOOTING_QUEUE'
                             WHEN 'PENDING' THEN 'PENDING'
                             ELSE 'IN_PROGRESS' END
        FROM commandbus.process p
        WHERE p.batch_id = b.batch_id AND b.completed_at IS NULL AND b.batch_type = 'PROCESS'
    ) m
) c;
