-- Settling processes: what runs came to, one transaction, an answer per item. SQL knows no step: it
-- writes what it is told, if the fence is right.
--
-- SETTLED  row, history, attempts, inbox, events, commands and cancels were written
-- ALREADY  this was written before: a resend after a COMMIT whose answer was lost
-- BUSY     the row is locked by somebody: bring it again
-- STALE    the fence was lost: event STALE_OUTCOME, nothing changed

-- A duration from `since`, or a moment, or NULL.
CREATE OR REPLACE FUNCTION commandbus.moment(since timestamptz, in_ms double precision,
    at_ms double precision)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce(since + make_interval(secs => in_ms / 1000), to_timestamp(at_ms / 1000))
$$;

CREATE OR REPLACE FUNCTION commandbus.is_terminal(status commandbus.process_status) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT status IN ('COMPLETED', 'CANCELED', 'COMPENSATED', 'FAILED')
$$;

-- The answers for items that were not settled, found out one by one: there are few of them.
CREATE OR REPLACE FUNCTION commandbus.explain_unsettled_processes(worker text, items jsonb,
    settled integer[])
RETURNS text[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    verdicts  text[] := array_fill('SETTLED'::text, ARRAY[jsonb_array_length(items)]);
    i         integer;
    item      commandbus.process_outcome;
    found_row record;
BEGIN
    FOR i IN SELECT o.i FROM generate_series(1, jsonb_array_length(items)) o(i)
             EXCEPT SELECT unnest(settled) ORDER BY 1 LOOP
        item := jsonb_populate_record(NULL::commandbus.process_outcome, items -> (i - 1));
        SELECT p.lease_no, p.settle_no, p.lease_owner, p.status INTO found_row
        FROM commandbus.process p WHERE p.process_id = item.process_id;
        verdicts[i] := CASE WHEN found_row.lease_no IS DISTINCT FROM item.lease_no THEN 'STALE'
                            WHEN found_row.settle_no = item.settle_no + 1 THEN 'ALREADY'
                            WHEN found_row.settle_no = item.settle_no
                                 AND found_row.lease_owner = explain_unsettled_processes.worker
                            THEN 'BUSY'
                            ELSE 'STALE' END;
        IF verdicts[i] = 'STALE' AND found_row.lease_no IS NOT NULL THEN
            INSERT INTO commandbus.process_event (process_id, event, step_name, worker, details)
            VALUES (item.process_id, 'STALE_OUTCOME', item.step, explain_unsettled_processes.worker,
                    jsonb_build_object('status', item.status, 'lease_no', item.lease_no,
                        'settle_no', item.settle_no, 'current_status', found_row.status,
                        'current_lease_no', found_row.lease_no,
                        'current_settle_no', found_row.settle_no));
        END IF;
    END LOOP;
    RETURN verdicts;
END
$$;

-- batch_ids: of those that ended, whose batch may be complete now: close_batches, after the commit.
-- Stages, 2 to 5 in one statement:
--   1. whose each record and command is, for the arrays that follow
--   2. item, held: rows under their fence are locked, one by one; a row that moved meanwhile is
--      BUSY
--   3. records become history and attempts; what was consumed leaves the inbox
--   4. the row: status, state, timers, wake_at (at once when the inbox has grown since the claim)
--   5. events: what was noteworthy
--   6. commands are sent, left behind or ended; replies that got lost are asked for
--   7. whoever waits for processes that are due is woken; verdicts as settle has them
CREATE OR REPLACE FUNCTION commandbus.settle_processes(worker text, items jsonb,
    OUT verdicts text[], OUT batch_ids uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Rows are found one by one, by their key (LATERAL) or their place, however many the planner takes
-- a JSON array for: a join by key, planned while the table was small, read all of it at each
-- settle.
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    n       integer;
    owners  uuid[]; -- whose each record is, in the order of all of them
    keepers integer[]; -- and of which item
    senders integer[]; -- of which item each command is
    now_at  timestamptz := commandbus.now();
    done    record;
BEGIN
    IF (worker <> '' AND jsonb_typeof(items) = 'array'
        AND NOT jsonb_path_exists(items, 'strict $[*] ? (@.type() != "object")')) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'settle_processes takes a worker and a JSON array of objects',
                                  'Correct the call; nothing was settled.');
    END IF;
    n := jsonb_array_length(items);
    WITH item AS MATERIALIZED (
        SELECT i.ord::integer, (i.e ->> 'process_id')::uuid AS process_id,
               jsonb_array_length(i.e -> 'records') AS records,
               jsonb_array_length(i.e -> 'commands') AS commands
        FROM jsonb_array_elements(items) WITH ORDINALITY i(e, ord)
    )
    SELECT ARRAY(SELECT i.process_id FROM item i CROSS JOIN LATERAL generate_series(1, i.records)
                 ORDER BY i.ord),
           ARRAY(SELECT i.ord FROM item i CROSS JOIN LATERAL generate_series(1, i.records)
                 ORDER BY i.ord),
           ARRAY(SELECT i.ord FROM item i CROSS JOIN LATERAL generate_series(1, i.commands)
                 ORDER BY i.ord)
    INTO owners, keepers, senders;

    WITH item AS MATERIALIZED (
        SELECT i.*
        FROM jsonb_populate_recordset(NULL::commandbus.process_outcome, items) WITH ORDINALITY
            AS i(process_id, lease_no, settle_no, checkpoint, vt_seconds, version, status, phase,
                 step, wait, state, error_code, error_message, leaving, deadline_spent, seen,
                 consumed, retry_ms, retry_at_ms, timeout_ms, timeout_at_ms, wake, records,
                 commands, cancels, events, refused, awaits_reply, ord)
    ), held AS MATERIALIZED (
        SELECT i.*, p.place, coalesce(i.checkpoint, false) AS goes_on,
               -- Once each time: a run that only looked leaves it as it was.
               i.status = 'WAITING_FOR_TSQ'
                   AND (p.tsq_at IS NULL OR p.error_code IS DISTINCT FROM left(i.error_code, 200)
                        OR p.error_message IS DISTINCT FROM left(i.error_message, 4000)
                        OR jsonb_path_exists(i.records, '$[*] ? (@.kind == "OPERATOR")')) AS parks,
               commandbus.moment(now_at, i.retry_ms, i.retry_at_ms) AS retry_at,
               commandbus.moment(now_at, i.timeout_ms, i.timeout_at_ms) AS timeout_at
        FROM item i CROSS JOIN LATERAL (
            SELECT p.ctid AS place, p.tsq_at, p.error_code, p.error_message
            FROM commandbus.process p
            WHERE p.process_id = i.process_id AND p.lease_no = i.lease_no
              AND p.settle_no = i.settle_no AND p.lease_owner = settle_processes.worker
            FOR UPDATE OF p SKIP LOCKED
        ) p
    ), settled AS (
        -- A reply that was delivered between our snapshot and our lock has moved the row: BUSY, it
        -- is brought again.
        UPDATE commandbus.process p
        SET settle_no = p.settle_no + 1, unsettled = 0, version = greatest(p.version, h.version),
            status = coalesce(h.status, p.status), phase = coalesce(h.phase, p.phase),
            current_step = CASE WHEN h.refused THEN p.current_step ELSE h.step END,
            current_wait = CASE WHEN h.refused THEN p.current_wait ELSE h.wait END,
            awaits_reply = CASE WHEN h.refused THEN p.awaits_reply
                                ELSE coalesce(h.awaits_reply, false) END,
            state = coalesce(h.state, p.state), error_code = left(h.error_code, 200),
            error_message = left(h.error_message, 4000),
            leaving = CASE WHEN h.refused THEN p.leaving ELSE h.leaving END,
            deadline_spent = p.deadline_spent OR coalesce(h.deadline_spent, false),
            -- What is replaced or consumed by this still counts, until somebody measures.
            content_bytes = p.content_bytes + commandbus.json_bytes(h.records)
                            + commandbus.json_bytes(h.state),
            next_retry_at = h.retry_at, next_wait_timeout_at = h.timeout_at,
            lease_owner = CASE WHEN h.goes_on THEN p.lease_owner END,
            lease_until = CASE WHEN h.goes_on
                THEN coalesce(statement_timestamp() + make_interval(secs => h.vt_seconds),
                              p.lease_until) END,
            wake_at = CASE
                WHEN h.goes_on
                THEN coalesce(now_at + make_interval(secs => h.vt_seconds), p.wake_at)
                WHEN p.inbox_seq > h.seen OR h.wake = 'NOW' THEN now_at
                WHEN h.wake = 'TIMERS' THEN least(h.retry_at, h.timeout_at,
                    CASE WHEN NOT (p.deadline_spent OR coalesce(h.deadline_spent, false))
                              AND NOT h.status IN ('WAITING_FOR_TSQ', 'COMPENSATING')
                              AND NOT commandbus.is_terminal(h.status)
                         THEN p.deadline_at END)
                END,
            completed_at = CASE WHEN commandbus.is_terminal(coalesce(h.status, p.status))
                                THEN coalesce(p.completed_at, now_at) END,
            tsq_at = CASE coalesce(h.status, p.status) WHEN 'WAITING_FOR_TSQ'
                          THEN coalesce(p.tsq_at, now_at) END,
            updated_at = now_at
        FROM held h WHERE p.ctid = h.place
        RETURNING h.ord, p.process_id, p.domain, p.reply_queue,
                  NOT h.goes_on AND p.wake_at = now_at AS is_due, h.consumed, h.refused, h.cancels,
                  h.events, h.parks, p.current_step, p.error_code, p.error_message,
                  CASE WHEN p.completed_at IS NOT NULL THEN p.batch_id END AS ended_of
    ), record AS MATERIALIZED (
        -- All records in one go: reading them one by one took 19 us each, a third of the settle.
        SELECT r.*,
               commandbus.moment(now_at, nullif(r.timeout_ms, 0), r.timeout_at_ms) AS timeout_at,
               h.place,
               -- Its attempt or its command is not the one that the row tells of.
               (r.command_id <> h.command_id
                OR (h.status = 'STARTED' AND r.status = 'STARTED')
                OR (h.status IN ('RETRY', 'FAILED')
                    AND coalesce(h.error_code, h.took_ms::text) IS NOT NULL
                    AND (r.status <> h.status OR r.attempts > h.attempts
                         OR left(r.error_code, 200) IS DISTINCT FROM h.error_code
                         OR left(r.error_message, 4000) IS DISTINCT FROM h.error_message)))
                   IS TRUE AS again
        FROM ROWS FROM (
            jsonb_populate_recordset(NULL::commandbus.process_record,
                                     jsonb_path_query_array(items, 'lax $[*].records[*]')),
            unnest(owners, keepers)
        ) AS r(ordinal, kind, status, name, attempts, send_no, during, command_id, response_id,
               domain, command_type, timeout_ms, timeout_at_ms, took_ms, error_code, error_message,
               result, opening, patch, owes, finished, max_attempts, in_doubt, process_id, item)
        LEFT JOIN LATERAL (
            SELECT h.ctid AS place, h.status, h.attempts, h.command_id, h.took_ms, h.error_code,
                   h.error_message
            FROM commandbus.process_history h
            WHERE h.process_id = r.process_id AND h.ordinal = r.ordinal
            LIMIT 1
        ) h ON true
        WHERE r.item IN (SELECT s.ord FROM settled s)
    ), replaced AS (
        INSERT INTO commandbus.process_attempt (process_id, command_id, at, ended_at, took_ms,
            ordinal, attempts, max_attempts, send_no, kind, status, name, domain, command_type,
            worker, error_code, error_message, result)
        SELECT h.process_id, h.command_id, coalesce(h.begun_at, h.at),
               coalesce(h.finished_at, b.at,
                        coalesce(h.begun_at, h.at) + make_interval(secs => h.took_ms / 1000)),
               h.took_ms, h.ordinal, h.attempts, h.max_attempts, h.send_no, h.kind,
               CASE WHEN b.at IS NULL THEN h.status ELSE 'FAILED' END, h.name, h.domain,
               h.command_type, h.worker, coalesce(h.error_code, b.error_code),
               coalesce(h.error_message, b.error_message), h.result
        FROM record r JOIN commandbus.process_history h ON h.ctid = r.place
        LEFT JOIN LATERAL (
            -- The end of the command before, which this very run has read.
            SELECT b.at, coalesce(b.payload ->> 'error_code', b.name) AS error_code,
                   coalesce(b.payload ->> 'error_message', b.payload ->> 'reason') AS error_message
            FROM commandbus.process_inbox b
            WHERE b.process_id = h.process_id AND b.kind = 'REPLY'
              AND b.payload -> 'final' IS DISTINCT FROM 'false'
              AND h.status = 'WAITING' AND lower(b.payload ->> 'command_id') = h.command_id::text
            LIMIT 1
        ) b ON true
        -- What only gave itself back was no attempt, and may do so for ever.
        WHERE r.again AND (h.status <> 'RETRY' OR h.error_code IS NOT NULL)
    ), opened AS (
        INSERT INTO commandbus.process_history (process_id, command_id, response_id, at,
            finished_at, timeout_at, took_ms, ordinal, attempts, max_attempts, send_no, during,
            kind, status, name, domain, command_type, worker, error_code, error_message, result,
            opening, patch, owes, in_doubt)
        SELECT r.process_id, r.command_id, r.response_id, now_at,
               CASE WHEN r.finished THEN now_at END, r.timeout_at, r.took_ms, r.ordinal,
               coalesce(r.attempts, 0), r.max_attempts, r.send_no, r.during, r.kind, r.status,
               r.name, r.domain, r.command_type, settle_processes.worker, left(r.error_code, 200),
               left(r.error_message, 4000), r.result, r.opening, r.patch, r.owes, r.in_doubt
        FROM record r WHERE r.place IS NULL
    ), rewritten AS (
        -- What is not given stays, but for the error and the doubt: those go with the status.
        UPDATE commandbus.process_history h
        SET status = coalesce(r.status, h.status), attempts = coalesce(r.attempts, h.attempts),
            error_code = left(r.error_code, 200), error_message = left(r.error_message, 4000),
            in_doubt = r.in_doubt,
            -- 0: without end from now on, whatever it had before.
            timeout_at = CASE WHEN r.timeout_ms = 0 THEN NULL
                              ELSE coalesce(r.timeout_at, h.timeout_at) END,
            opening = coalesce(r.opening, h.opening),
            command_id = coalesce(r.command_id, h.command_id),
            response_id = coalesce(r.response_id, h.response_id),
            send_no = coalesce(r.send_no, h.send_no),
            during = coalesce(r.during, h.during),
            domain = coalesce(r.domain, h.domain),
            command_type = coalesce(r.command_type, h.command_type),
            max_attempts = coalesce(r.max_attempts, h.max_attempts),
            worker = settle_processes.worker,
            begun_at = CASE WHEN r.again THEN now_at ELSE h.begun_at END,
            took_ms = CASE WHEN r.again THEN r.took_ms ELSE coalesce(r.took_ms, h.took_ms) END,
            result = coalesce(r.result, h.result),
            patch = coalesce(r.patch, h.patch),
            owes = coalesce(r.owes, h.owes),
            finished_at = CASE WHEN r.finished AND NOT r.again
                                    AND h.status = coalesce(r.status, h.status)
                               THEN coalesce(h.finished_at, now_at)
                               WHEN r.finished THEN now_at
                               WHEN r.finished IS NULL AND NOT r.again THEN h.finished_at END
        -- Nobody else writes the history of a process whose fence we hold, so its place is right.
        FROM record r WHERE h.ctid = r.place
    ), consumed AS (
        DELETE FROM commandbus.process_inbox b WHERE b.ctid = ANY (ARRAY(
            SELECT b.place FROM settled s CROSS JOIN LATERAL unnest(s.consumed) c(seq)
            CROSS JOIN LATERAL (
                SELECT b.ctid AS place FROM commandbus.process_inbox b
                WHERE b.process_id = s.process_id AND b.seq = c.seq
                  AND (s.refused IS NOT TRUE OR b.kind = 'OPERATOR')
                LIMIT 1
            ) b))
    ), told AS (
        INSERT INTO commandbus.process_event (at, process_id, command_id, event, step_name, worker,
                                              details)
        SELECT now_at, s.process_id,
               CASE WHEN commandbus.is_uuid(e #>> '{details,command_id}')
                    THEN (e #>> '{details,command_id}')::uuid END,
               e ->> 'event', e ->> 'name', settle_processes.worker,
               -- Of a reply in the inbox, which goes with this, all that it said.
               coalesce((SELECT b.payload - 'correlation_id' FROM commandbus.process_inbox b
                         WHERE b.process_id = s.process_id
                           AND b.seq = (e #>> '{details,seq}')::integer),
                        nullif(e -> 'details', 'null'))
        FROM settled s CROSS JOIN LATERAL jsonb_array_elements(s.events) e
        UNION ALL
        SELECT now_at, s.process_id, NULL, 'PARKED', s.current_step, settle_processes.worker,
               jsonb_build_object('error_code', s.error_code, 'error_message', s.error_message)
        FROM settled s WHERE s.parks
    )
    SELECT array_agg(s.ord::integer) AS ords,
           array_agg(DISTINCT s.domain) FILTER (WHERE s.is_due) AS due_domains,
           array_agg(s.process_id) AS process_ids, array_agg(s.reply_queue) AS reply_queues,
           array_agg(s.cancels ORDER BY s.ord)
               FILTER (WHERE jsonb_array_length(s.cancels) > 0) AS cancels,
           array_agg(s.process_id) FILTER (WHERE jsonb_array_length(s.cancels) > 0) AS cancelers,
           array_agg(DISTINCT s.ended_of) FILTER (WHERE s.ended_of IS NOT NULL) AS batch_ids
    INTO done FROM settled s;

    IF cardinality(senders) > 0 AND done.process_ids IS NOT NULL THEN
        PERFORM commandbus.send_of_processes(items, senders, done.ords, done.process_ids,
                                             done.reply_queues);
    END IF;
    IF done.cancels IS NOT NULL THEN
        PERFORM commandbus.cancel_unreceived(settle_processes.worker, done.cancels);
        PERFORM commandbus.end_failed(settle_processes.worker, done.cancels);
        -- One that has ended cannot be canceled: who asks has not got its reply.
        PERFORM commandbus.restore_replies(done.cancelers);
    END IF;
    IF done.due_domains IS NOT NULL THEN
        PERFORM commandbus.wake_sleepers(d || '__processes') FROM unnest(done.due_domains) d;
    END IF;

    batch_ids := done.batch_ids;
    IF coalesce(cardinality(done.ords), 0) = n THEN
        verdicts := array_fill('SETTLED'::text, ARRAY[n]);
    ELSE
        verdicts := commandbus.explain_unsettled_processes(settle_processes.worker, items,
                                                           coalesce(done.ords, '{}'));
    END IF;
END
$$;
