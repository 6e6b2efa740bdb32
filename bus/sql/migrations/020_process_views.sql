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

-- S0's words for how a step is.
CREATE FUNCTION commandbus.step_status(status commandbus.record_status) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE status WHEN 'COMPLETED' THEN 'COMPLETED' WHEN 'RETRY' THEN 'WAITING_RETRY'
                       WHEN 'FAILED' THEN 'FAILED' WHEN 'ABANDONED' THEN 'FAILED' WHEN 'CAUGHT' THEN 'FAILED'
                       ELSE 'STARTED' END
$$;

-- What a command came to, in the words of replies: its own end if it is still there (an abandoned record does not tell
-- it), else the record's.
CREATE FUNCTION commandbus.reply_outcome(command commandbus.command_status, record commandbus.record_status) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(CASE command WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'CANCELED' THEN 'CANCELED'
                                 WHEN 'FAILED' THEN 'FAILED' END,
                    CASE record WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'FAILED' THEN 'FAILED' WHEN 'CAUGHT' THEN 'FAILED' END)
$$;

-- What happened to processes: their start; each record, as its last attempt or command left it; each attempt and each
-- command before that; each event. Data without what the type redacts; that of a command is there as long as the
-- command is. Attempts of a command are those of its handler, while the command is there.
--
-- By process_id or command_id: index scans. By anything else it reads all that retention has left.
CREATE VIEW commandbus.process_audit AS
SELECT p.process_id, p.domain, p.process_type, p.created_at AS at, NULL::text AS step_name, 'PROCESS_CREATED' AS event,
       NULL::text AS entry_type, NULL::text AS step_status, NULL::integer AS attempt_number, NULL::uuid AS command_id,
       NULL::text AS command_type, NULL::jsonb AS command_data, NULL::timestamptz AS sent_at, NULL::text AS reply_outcome,
       NULL::jsonb AS reply_data, NULL::timestamptz AS received_at, NULL::text AS operator, NULL::jsonb AS details,
       0 AS ordinal, e.worker, NULL::integer AS max_attempts, e.db_user
FROM commandbus.process p
LEFT JOIN commandbus.process_event e ON e.process_id = p.process_id AND e.event = 'PROCESS_CREATED'
UNION ALL
SELECT p.process_id, p.domain, p.process_type, coalesce(h.begun_at, h.at), h.name,
       CASE WHEN h.kind = 'RESPONSE' THEN 'ASYNC_RESPONSE'
            WHEN h.kind = 'OPERATOR' THEN 'OPERATOR_' || h.name
            WHEN h.kind = 'COMPENSATION' AND h.status = 'COMPLETED' THEN 'COMPENSATION_SUCCESS'
            ELSE h.kind || '_' || h.status END,
       CASE h.kind WHEN 'RESPONSE' THEN 'ASYNC_RESPONSE' ELSE h.kind::text END,
       commandbus.step_status(h.status), coalesce(c.attempts, h.attempts), h.command_id, h.command_type,
       commandbus.redacted(c.data, t.redact),
       CASE WHEN h.command_id IS NOT NULL THEN coalesce(h.begun_at, h.at) END,
       CASE WHEN h.command_id IS NOT NULL AND h.finished_at IS NOT NULL THEN commandbus.reply_outcome(c.status, h.status) END,
       CASE WHEN h.command_id IS NOT NULL OR h.kind = 'RESPONSE' THEN commandbus.redacted(h.result, t.redact) END,
       CASE WHEN h.kind = 'RESPONSE' THEN h.at WHEN h.command_id IS NOT NULL THEN h.finished_at END,
       CASE WHEN h.kind = 'OPERATOR' THEN h.result ->> 'operator' END,
       jsonb_strip_nulls(jsonb_build_object('error_code', h.error_code, 'error_message', h.error_message, 'took_ms', h.took_ms,
           'finished_at', h.finished_at, 'timeout_at', h.timeout_at, 'during', h.during)),
       h.ordinal, h.worker, coalesce(c.max_attempts, h.max_attempts), NULL
FROM commandbus.process_history h JOIN commandbus.process p ON p.process_id = h.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
LEFT JOIN commandbus.command_metadata c ON c.command_id = h.command_id AND c.domain = h.domain
UNION ALL
SELECT p.process_id, p.domain, p.process_type, a.at, a.name,
       a.kind || CASE a.status WHEN 'STARTED' THEN '_LOST' ELSE '_' || a.status END, a.kind::text,
       commandbus.step_status(a.status), coalesce(c.attempts, a.attempts), a.command_id, a.command_type,
       commandbus.redacted(c.data, t.redact), CASE WHEN a.command_id IS NOT NULL THEN a.at END,
       CASE WHEN a.command_id IS NOT NULL THEN commandbus.reply_outcome(c.status, a.status) END,
       CASE WHEN a.command_id IS NOT NULL THEN commandbus.redacted(a.result, t.redact) END,
       CASE WHEN a.command_id IS NOT NULL THEN a.ended_at END, NULL,
       jsonb_strip_nulls(jsonb_build_object('error_code', a.error_code, 'error_message', a.error_message, 'took_ms', a.took_ms,
           'finished_at', a.ended_at)),
       a.ordinal, a.worker, coalesce(c.max_attempts, a.max_attempts), NULL
FROM commandbus.process_attempt a JOIN commandbus.process p ON p.process_id = a.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
LEFT JOIN commandbus.command_metadata c ON c.command_id = a.command_id AND c.domain = a.domain
UNION ALL
SELECT p.process_id, p.domain, p.process_type, e.at, e.step_name, e.event,
       CASE WHEN e.command_id IS NOT NULL THEN 'COMMAND' END, NULL, c.attempts, e.command_id, c.command_type,
       commandbus.redacted(c.data, t.redact), CASE e.event WHEN 'COMMAND_SENT' THEN e.at END,
       CASE WHEN e.command_id IS NOT NULL THEN e.details ->> 'outcome' END,
       CASE WHEN e.command_id IS NOT NULL THEN commandbus.redacted(nullif(e.details -> 'result', 'null'), t.redact) END,
       CASE WHEN e.command_id IS NOT NULL AND e.event <> 'COMMAND_SENT' THEN e.at END,
       e.operator, commandbus.redacted(e.details, t.redact), NULL, e.worker, c.max_attempts, e.db_user
FROM commandbus.process_event e JOIN commandbus.process p ON p.process_id = e.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
-- Of a hook, which no record has; other events are about commands that records have.
LEFT JOIN commandbus.command_metadata c ON e.event = 'COMMAND_SENT' AND c.command_id = e.command_id
     AND c.domain = e.details ->> 'domain'
WHERE e.event <> 'PROCESS_CREATED';

-- A moment as S0's documents have it.
CREATE FUNCTION commandbus.instant(at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- Changes of a state, one after the other.
CREATE AGGREGATE commandbus.changes(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb, INITCOND = '{}');

-- S0's state JSON: the fields of the state, and what has happened, as one document. The request of a step is the state
-- that it saw, that of a command its data.
CREATE VIEW commandbus.process_state_document AS
SELECT p.process_id, p.domain, p.process_type,
       commandbus.redacted(p.state, t.redact) || jsonb_build_object('stepHistory', h.steps, 'waitHistory', h.waits, 'sideEffects', h.side_effects,
           'errorCode', p.error_code, 'errorMessage', p.error_message,
           'processDeadline', commandbus.instant(p.deadline_at)) AS document
FROM commandbus.process p
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', h.name,
               'status', commandbus.step_status(h.status), 'attemptCount', coalesce(c.attempts, h.attempts),
               'maxRetries', coalesce(c.max_attempts, h.max_attempts), 'startedAt', commandbus.instant(h.at),
               'completedAt', commandbus.instant(h.finished_at),
               'requestJson', commandbus.redacted(CASE WHEN h.command_id IS NULL THEN p.initial_state || coalesce(h.changed, '{}')
                                                           || coalesce(h.opening, '{}') ELSE c.data END, t.redact)::text,
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
    FROM (SELECT h.*, commandbus.changes(coalesce(h.opening, '{}') || coalesce(h.patch, '{}'))
                     OVER (ORDER BY h.ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS changed
          FROM commandbus.process_history h WHERE h.process_id = p.process_id) h
    LEFT JOIN commandbus.command_metadata c ON c.command_id = h.command_id AND c.domain = h.domain
) h;

-- For a reply to a command: of a manager, of a command step or of a compensation, which may all wait without a timer.
CREATE FUNCTION commandbus.awaits_reply(status commandbus.process_status, current_wait text, awaits_reply boolean)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT status = 'WAITING_FOR_REPLY' OR (status = 'COMPENSATING' AND current_wait IS NOT NULL)
        OR (status = 'WAITING_FOR_ASYNC' AND awaits_reply)
$$;

-- For metrics: those that have not ended, for how long the first due one that nobody runs has been due, for how long
-- the oldest that waits for a reply has been waiting, and for how long the oldest has been as it is.
CREATE FUNCTION commandbus.process_figures()
RETURNS TABLE (process_type text, status text, error_code text, current_wait text, processes bigint,
               oldest_due_seconds double precision, oldest_reply_seconds double precision, oldest_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT p.process_type, p.status::text, p.error_code, p.current_wait, count(*),
           coalesce(max(extract(epoch FROM t.now_at - p.wake_at)) FILTER (WHERE p.wake_at <= t.now_at
               AND (p.lease_until IS NULL OR p.lease_until <= statement_timestamp())), 0)::double precision,
           coalesce(max(extract(epoch FROM t.now_at - p.updated_at))
               FILTER (WHERE commandbus.awaits_reply(p.status, p.current_wait, p.awaits_reply)), 0)::double precision,
           greatest(max(extract(epoch FROM t.now_at - coalesce(p.tsq_at, p.updated_at))), 0)::double precision
    -- OFFSET: asked once, and not for each row.
    FROM commandbus.live_process p CROSS JOIN (SELECT commandbus.now() AS now_at OFFSET 0) t
    GROUP BY p.process_type, p.status, p.error_code, p.current_wait
    ORDER BY 1, 2, 3, 4
$$;

-- For doctor: what is wrong with processes. `seconds` is for how long, of the worst one. A live instance
-- may say in its heartbeat which types it runs: "processes": {"<type>": <version>}.
CREATE FUNCTION commandbus.process_problems()
RETURNS TABLE (problem text, process_type text, about text, processes bigint, seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH live AS MATERIALIZED (
        SELECT p.process_id, p.process_type, p.domain, p.status, p.error_code, p.version, p.wake_at, p.lease_until, p.tsq_at,
               p.updated_at, p.lease_owner, p.current_wait, p.awaits_reply, t.now_at
        FROM commandbus.live_process p CROSS JOIN (SELECT commandbus.now() AS now_at OFFSET 0) t
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
    SELECT 'LATE_SUCCESS', p.process_type, coalesce(e.details ->> 'command_id', e.step_name), count(*),
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
    FROM live l
    WHERE commandbus.awaits_reply(l.status, l.current_wait, l.awaits_reply) AND l.updated_at < l.now_at - interval '1 hour' GROUP BY 2, 3
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
