-- Processes as people and monitoring look at them.

-- The data with "***" for the values of these fields, however deep they are.
CREATE OR REPLACE FUNCTION commandbus.redacted(data jsonb, names text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF cardinality(names) > 0 AND jsonb_typeof(data) = 'object' THEN
        RETURN coalesce((SELECT jsonb_object_agg(f.key,
                                    CASE WHEN f.key = ANY (names) THEN '"***"'
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
CREATE OR REPLACE FUNCTION commandbus.step_status(status commandbus.record_status) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE status WHEN 'COMPLETED' THEN 'COMPLETED' WHEN 'RETRY' THEN 'WAITING_RETRY'
                       WHEN 'FAILED' THEN 'FAILED' WHEN 'ABANDONED' THEN 'FAILED'
                       WHEN 'CAUGHT' THEN 'FAILED' ELSE 'STARTED' END
$$;

-- What a command came to, in the words of replies: its own end if it is still there (an abandoned
-- record does not tell it), else the record's.
CREATE OR REPLACE FUNCTION commandbus.reply_outcome(command commandbus.command_status,
    record commandbus.record_status)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(CASE command WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'CANCELED' THEN 'CANCELED'
                                 WHEN 'FAILED' THEN 'FAILED' END,
                    CASE record WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'FAILED' THEN 'FAILED'
                                WHEN 'CAUGHT' THEN 'FAILED' END)
$$;

-- What happened to processes: their start; each record, as its last attempt or command left it;
-- each attempt and each command before that; each event. Data without what the type redacts; that
-- of a command is there as long as the command is. Attempts of a command are those of its handler,
-- while the command is there.
--
-- By process_id or command_id: index scans. By anything else it reads all that retention has left.
CREATE OR REPLACE VIEW commandbus.process_audit AS
SELECT p.process_id, p.domain, p.process_type, p.created_at AS at, NULL::text AS step_name,
       'PROCESS_CREATED' AS event, NULL::text AS entry_type, NULL::text AS step_status,
       NULL::integer AS attempt_number, NULL::uuid AS command_id, NULL::text AS command_type,
       NULL::jsonb AS command_data, NULL::timestamptz AS sent_at, NULL::text AS reply_outcome,
       NULL::jsonb AS reply_data, NULL::timestamptz AS received_at, NULL::text AS operator,
       NULL::jsonb AS details, 0 AS ordinal, e.worker, NULL::integer AS max_attempts, e.db_user
FROM commandbus.process p
LEFT JOIN commandbus.process_event e ON e.process_id = p.process_id AND e.event = 'PROCESS_CREATED'
UNION ALL
SELECT p.process_id, p.domain, p.process_type, coalesce(h.begun_at, h.at), h.name,
       CASE WHEN h.kind = 'RESPONSE' THEN 'ASYNC_RESPONSE'
            WHEN h.kind = 'OPERATOR' THEN 'OPERATOR_' || h.name
            WHEN h.kind = 'COMPENSATION' AND h.status = 'COMPLETED' THEN 'COMPENSATION_SUCCESS'
            ELSE h.kind || '_' || h.status END,
       CASE h.kind WHEN 'RESPONSE' THEN 'ASYNC_RESPONSE' ELSE h.kind::text END,
       commandbus.step_status(h.status), coalesce(c.attempts, h.attempts), h.command_id,
       h.command_type, commandbus.redacted(c.data, t.redact),
       CASE WHEN h.command_id IS NOT NULL THEN coalesce(h.begun_at, h.at) END,
       CASE WHEN h.command_id IS NOT NULL AND h.finished_at IS NOT NULL
            THEN commandbus.reply_outcome(c.status, h.status) END,
       CASE WHEN h.command_id IS NOT NULL OR h.kind = 'RESPONSE'
            THEN commandbus.redacted(h.result, t.redact) END,
       CASE WHEN h.kind = 'RESPONSE' THEN h.at WHEN h.command_id IS NOT NULL THEN h.finished_at END,
       CASE WHEN h.kind = 'OPERATOR' THEN h.result ->> 'operator' END,
       jsonb_strip_nulls(jsonb_build_object('error_code', h.error_code,
           'error_message', h.error_message, 'took_ms', h.took_ms, 'finished_at', h.finished_at,
           'timeout_at', h.timeout_at, 'during', h.during)),
       h.ordinal, h.worker, coalesce(c.max_attempts, h.max_attempts), NULL
FROM commandbus.process_history h JOIN commandbus.process p ON p.process_id = h.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
LEFT JOIN commandbus.command_metadata c ON c.command_id = h.command_id AND c.domain = h.domain
UNION ALL
SELECT p.process_id, p.domain, p.process_type, a.at, a.name,
       a.kind || CASE a.status WHEN 'STARTED' THEN '_LOST' ELSE '_' || a.status END, a.kind::text,
       commandbus.step_status(a.status), coalesce(c.attempts, a.attempts), a.command_id,
       a.command_type, commandbus.redacted(c.data, t.redact),
       CASE WHEN a.command_id IS NOT NULL THEN a.at END,
       CASE WHEN a.command_id IS NOT NULL THEN commandbus.reply_outcome(c.status, a.status) END,
       CASE WHEN a.command_id IS NOT NULL THEN commandbus.redacted(a.result, t.redact) END,
       CASE WHEN a.command_id IS NOT NULL THEN a.ended_at END, NULL,
       jsonb_strip_nulls(jsonb_build_object('error_code', a.error_code,
           'error_message', a.error_message, 'took_ms', a.took_ms, 'finished_at', a.ended_at)),
       a.ordinal, a.worker, coalesce(c.max_attempts, a.max_attempts), NULL
FROM commandbus.process_attempt a JOIN commandbus.process p ON p.process_id = a.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
LEFT JOIN commandbus.command_metadata c ON c.command_id = a.command_id AND c.domain = a.domain
UNION ALL
SELECT p.process_id, p.domain, p.process_type, e.at, e.step_name, e.event,
       CASE WHEN e.command_id IS NOT NULL THEN 'COMMAND' END, NULL, c.attempts, e.command_id,
       c.command_type, commandbus.redacted(c.data, t.redact),
       CASE e.event WHEN 'COMMAND_SENT' THEN e.at END,
       CASE WHEN e.command_id IS NOT NULL THEN e.details ->> 'outcome' END,
       CASE WHEN e.command_id IS NOT NULL
            THEN commandbus.redacted(nullif(e.details -> 'result', 'null'), t.redact) END,
       CASE WHEN e.command_id IS NOT NULL AND e.event <> 'COMMAND_SENT' THEN e.at END,
       e.operator, commandbus.redacted(e.details, t.redact), NULL, e.worker, c.max_attempts,
       e.db_user
FROM commandbus.process_event e JOIN commandbus.process p ON p.process_id = e.process_id
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
-- Of a hook, which no record has; other events are about commands that records have.
LEFT JOIN commandbus.command_metadata c ON e.event = 'COMMAND_SENT' AND c.command_id = e.command_id
     AND c.domain = e.details ->> 'domain'
WHERE e.event <> 'PROCESS_CREATED';

-- A moment as S0's documents have it.
CREATE OR REPLACE FUNCTION commandbus.instant(at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- Changes of a state, one after the other.
CREATE OR REPLACE AGGREGATE commandbus.changes(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb,
                                                       INITCOND = '{}');

-- S0's state JSON: the fields of the state, and what has happened, as one document. The request of
-- a step is the state that it saw, that of a command its data.
CREATE OR REPLACE VIEW commandbus.process_state_document AS
SELECT p.process_id, p.domain, p.process_type,
       commandbus.redacted(p.state, t.redact)
           || jsonb_build_object('stepHistory', h.steps, 'waitHistory', h.waits,
               'sideEffects', h.side_effects, 'errorCode', p.error_code,
               'errorMessage', p.error_message,
               'processDeadline', commandbus.instant(p.deadline_at)) AS document
FROM commandbus.process p
LEFT JOIN commandbus.process_type t ON t.process_type = p.process_type
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', h.name,
               'status', commandbus.step_status(h.status),
               'attemptCount', coalesce(c.attempts, h.attempts),
               'maxRetries', coalesce(c.max_attempts, h.max_attempts),
               'startedAt', commandbus.instant(h.at),
               'completedAt', commandbus.instant(h.finished_at),
               'requestJson', commandbus.redacted(CASE WHEN h.command_id IS NULL
                   THEN p.initial_state || coalesce(h.changed, '{}') || coalesce(h.opening, '{}')
                   ELSE c.data END, t.redact)::text,
               'responseJson', commandbus.redacted(coalesce(h.result, h.patch), t.redact)::text,
               'errorCode', h.error_code, 'errorMessage', h.error_message,
               'nextRetryAt', CASE h.status WHEN 'RETRY'
                                   THEN commandbus.instant(p.next_retry_at) END)
               ORDER BY h.ordinal) FILTER (WHERE h.kind IN ('STEP', 'COMMAND')), '[]') AS steps,
           coalesce(jsonb_agg(jsonb_build_object('name', h.name,
               'satisfied', h.status = 'COMPLETED', 'recordedAt', commandbus.instant(h.at),
               'timeout',
               'PT' || trim_scale(round(extract(epoch FROM h.timeout_at - h.at), 3)) || 'S',
               'timeoutAt', commandbus.instant(h.timeout_at))
               ORDER BY h.ordinal) FILTER (WHERE h.kind = 'WAIT'), '[]') AS waits,
           coalesce(jsonb_agg(jsonb_build_object('name', h.name,
               'valueJson', commandbus.redacted(h.result, t.redact)::text,
               'recordedAt', commandbus.instant(h.at))
               ORDER BY h.ordinal) FILTER (WHERE h.kind = 'SIDE_EFFECT'), '[]') AS side_effects
    FROM (SELECT h.*, commandbus.changes(coalesce(h.opening, '{}') || coalesce(h.patch, '{}'))
                     OVER (ORDER BY h.ordinal
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS changed
          FROM commandbus.process_history h WHERE h.process_id = p.process_id) h
    LEFT JOIN commandbus.command_metadata c ON c.command_id = h.command_id AND c.domain = h.domain
) h;
