-- Settling processes: what runs came to, one transaction, an answer per item. SQL knows no step: it
-- writes what it is told, if the fence is right.
--
-- SETTLED  row, history, attempts, inbox, events, commands and cancels were written
-- ALREADY  this was written before: a resend after a COMMIT whose answer was lost
-- BUSY     the row is locked by somebody: bring it again
-- STALE    the fence was lost: event STALE_OUTCOME, nothing changed
--
-- Workers send process_outcome, process_record and new_command in binary, column by column: these
-- types never gain one. What a later release has to say comes in an argument of its own.

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
CREATE OR REPLACE FUNCTION commandbus.explain_unsettled_items(worker text,
    items commandbus.process_outcome[], settled integer[])
RETURNS text[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    verdicts  text[] := array_fill('SETTLED'::text, ARRAY[cardinality(items)]);
    i         integer;
    item      commandbus.process_outcome;
    found_row record;
BEGIN
    FOR i IN SELECT o.i FROM generate_series(1, cardinality(items)) o(i)
             EXCEPT SELECT unnest(settled) ORDER BY 1 LOOP
        item := items[i];
        SELECT p.lease_no, p.settle_no, p.lease_owner, p.status INTO found_row
        FROM commandbus.process p WHERE p.process_id = item.process_id;
        verdicts[i] := CASE WHEN found_row.lease_no IS DISTINCT FROM item.lease_no THEN 'STALE'
                            WHEN found_row.settle_no = item.settle_no + 1 THEN 'ALREADY'
                            WHEN found_row.settle_no = item.settle_no
                                 AND found_row.lease_owner = explain_unsettled_items.worker
                            THEN 'BUSY'
                            ELSE 'STALE' END;
        IF verdicts[i] = 'STALE' AND found_row.lease_no IS NOT NULL THEN
            INSERT INTO commandbus.process_event (process_id, event, step_name, worker, details)
            VALUES (item.process_id, 'STALE_OUTCOME', item.step, explain_unsettled_items.worker,
                    jsonb_build_object('status', item.status, 'lease_no', item.lease_no,
                        'settle_no', item.settle_no, 'current_status', found_row.status,
                        'current_lease_no', found_row.lease_no,
                        'current_settle_no', found_row.settle_no));
        END IF;
    END LOOP;
    RETURN verdicts;
END
$$;

-- Whether the record `before` tells of another attempt or command than what is written over it.
CREATE OR REPLACE FUNCTION commandbus.is_repeated(command_id uuid, command_before uuid,
    status commandbus.record_status, status_before commandbus.record_status, attempts integer,
    attempts_before integer, error_code text, code_before text, error_message text,
    message_before text, took_before double precision)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (command_id <> command_before
            OR (status_before = 'STARTED' AND status = 'STARTED')
            OR (status_before IN ('RETRY', 'FAILED')
                AND coalesce(code_before, took_before::text) IS NOT NULL
                AND (status <> status_before OR attempts > attempts_before
                     OR left(error_code, 200) IS DISTINCT FROM code_before
                     OR left(error_message, 4000) IS DISTINCT FROM message_before))) IS TRUE
$$;

-- Settles items[i] with what the other arrays say of it: the k-th of `opened` is a new record of
-- item opened_of[k], the k-th of `rewritten` takes the place of one that is there, and so on. NULL
-- for an array that says nothing; of an item its own records, commands and consumed are not read.
--   grown     by how many bytes of text a claim reads more of items[i], at most
--   repeats   one of `rewritten` may be another attempt, or have another command, than its record
--             tells of; false: none is
-- Whatever settles processes ends here: the C library with its arrays as they are, others by
-- settle_processes. batch_ids: of those that ended, whose batch may be complete now: close_batches,
-- after the commit.
--
-- What is said of an item is written if it was settled: by item, and not by process, for a run that
-- lost its fence may be in the call beside the one that has it. Stages, each but the first only if
-- there is something for it:
--   1. rows under their fence are locked, one by one, and written: status, state, timers, wake_at
--      (at once when the inbox has grown since the claim). A row that moved meanwhile is BUSY
--   2. records become history; what they were before, attempts
--   3. events: what was noteworthy
--   4. what was consumed leaves the inbox, which 2 and 3 have read
--   5. commands are sent, left behind or ended; replies that got lost are asked for
--   6. whoever waits for processes that are due is woken; verdicts as settle has them
CREATE OR REPLACE FUNCTION commandbus.settle_process_arrays(worker text,
    items commandbus.process_outcome[], grown bigint[],
    opened commandbus.process_record[] DEFAULT NULL, opened_of integer[] DEFAULT NULL,
    rewritten commandbus.process_record[] DEFAULT NULL, rewritten_of integer[] DEFAULT NULL,
    repeats boolean DEFAULT true, commands commandbus.new_command[] DEFAULT NULL,
    commands_of integer[] DEFAULT NULL, consumed integer[] DEFAULT NULL,
    consumed_of integer[] DEFAULT NULL, OUT verdicts text[], OUT batch_ids uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Rows are found one by one, by their key (LATERAL) or their place, however many the planner takes
-- an array for: a join by key, planned while the table was small, read all of it at each settle.
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    n      integer := cardinality(items);
    now_at timestamptz := commandbus.now();
    done   record; -- what was settled, column by column
    owners uuid[]; -- whose item i is; NULL: it was not settled
    queues text[]; -- and where replies to it go
    found  bigint;
BEGIN
    IF (worker <> '' AND n = cardinality(grown)
        AND cardinality(opened) IS NOT DISTINCT FROM cardinality(opened_of)
        AND cardinality(rewritten) IS NOT DISTINCT FROM cardinality(rewritten_of)
        AND cardinality(commands) IS NOT DISTINCT FROM cardinality(commands_of)
        AND cardinality(consumed) IS NOT DISTINCT FROM cardinality(consumed_of)
        -- What is said of an item that is not there would be lost without a word.
        AND NOT EXISTS (SELECT FROM unnest(opened_of || rewritten_of || commands_of || consumed_of)
                            o(item)
                        WHERE (o.item BETWEEN 1 AND n) IS NOT TRUE)) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'settle_process_arrays takes a worker, and arrays of equal length that belong together '
            'and name items of the call',
            'Correct the call; nothing was settled.');
    END IF;

    WITH held AS MATERIALIZED (
        SELECT i.ordinality::integer AS ord, i.checkpoint IS TRUE AS goes_on, i.vt_seconds,
               i.version, i.status, i.phase, i.step, i.wait, i.state, i.error_code, i.error_message,
               i.leaving, i.deadline_spent, i.seen, i.wake, i.refused, i.awaits_reply,
               i.cancels IS NOT NULL AS cancels, i.events IS NOT NULL AS tells,
               commandbus.moment(now_at, i.retry_ms, i.retry_at_ms) AS retry_at,
               commandbus.moment(now_at, i.timeout_ms, i.timeout_at_ms) AS timeout_at,
               p.place, p.tsq_at, p.error_code AS code_before, p.error_message AS message_before
        FROM unnest(items) WITH ORDINALITY i CROSS JOIN LATERAL (
            SELECT p.ctid AS place, p.tsq_at, p.error_code, p.error_message
            FROM commandbus.process p
            WHERE p.process_id = i.process_id AND p.lease_no = i.lease_no
              AND p.settle_no = i.settle_no AND p.lease_owner = settle_process_arrays.worker
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
            content_bytes = p.content_bytes + grown[h.ord],
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
        RETURNING h.ord, p.process_id, p.domain, p.reply_queue, h.cancels, h.tells,
                  NOT h.goes_on AND p.wake_at = now_at AS is_due,
                  CASE WHEN p.completed_at IS NOT NULL THEN p.batch_id END AS ended_of,
                  h.status = 'WAITING_FOR_TSQ' AS is_parked,
                  -- Once each time: a run that only looked leaves it as it was.
                  h.tsq_at IS NULL OR h.code_before IS DISTINCT FROM p.error_code
                      OR h.message_before IS DISTINCT FROM p.error_message AS is_news
    )
    SELECT array_agg(s.ord) AS ords, array_agg(s.process_id) AS process_ids,
           array_agg(s.reply_queue) AS reply_queues,
           array_agg(s.domain) FILTER (WHERE s.is_due) AS due_domains,
           array_agg(s.ended_of) FILTER (WHERE s.ended_of IS NOT NULL) AS ended_of,
           array_agg(s.ord) FILTER (WHERE s.is_parked) AS parked,
           array_agg(s.is_news) FILTER (WHERE s.is_parked) AS news,
           array_agg(s.ord) FILTER (WHERE s.cancels) AS cancelers, bool_or(s.tells) AS tells
    INTO done FROM (SELECT * FROM settled s ORDER BY s.ord) s;

    IF done.ords IS NULL THEN
        verdicts := commandbus.explain_unsettled_items(settle_process_arrays.worker, items, '{}');
        RETURN;
    ELSIF cardinality(done.ords) = n THEN
        owners := done.process_ids;
        queues := done.reply_queues;
        verdicts := array_fill('SETTLED'::text, ARRAY[n]);
    ELSE
        SELECT array_agg(s.process_id ORDER BY o.ord), array_agg(s.reply_queue ORDER BY o.ord)
        INTO owners, queues
        FROM generate_series(1, n) o(ord)
        LEFT JOIN unnest(done.ords, done.process_ids, done.reply_queues)
            s(ord, process_id, reply_queue) ON s.ord = o.ord;
        verdicts := commandbus.explain_unsettled_items(settle_process_arrays.worker, items,
                                                       done.ords);
    END IF;

    IF opened IS NOT NULL THEN
        INSERT INTO commandbus.process_history (process_id, command_id, response_id, at,
            finished_at, timeout_at, took_ms, ordinal, attempts, max_attempts, send_no, during,
            kind, status, name, domain, command_type, worker, error_code, error_message, result,
            opening, patch, owes, in_doubt)
        SELECT owners[opened_of[r.ordinality::integer]], r.command_id, r.response_id, now_at,
               CASE WHEN r.finished THEN now_at END,
               commandbus.moment(now_at, nullif(r.timeout_ms, 0), r.timeout_at_ms), r.took_ms,
               r.ordinal, coalesce(r.attempts, 0), r.max_attempts, r.send_no, r.during, r.kind,
               r.status, r.name, r.domain, r.command_type, settle_process_arrays.worker,
               left(r.error_code, 200), left(r.error_message, 4000), r.result, r.opening, r.patch,
               r.owes, r.in_doubt
        FROM unnest(opened) WITH ORDINALITY r
        WHERE owners[opened_of[r.ordinality::integer]] IS NOT NULL;
    END IF;
    IF rewritten IS NOT NULL AND repeats IS NOT FALSE THEN
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
        FROM unnest(rewritten) WITH ORDINALITY r
        CROSS JOIN LATERAL (
            SELECT h.* FROM commandbus.process_history h
            WHERE h.process_id = owners[rewritten_of[r.ordinality::integer]]
              AND h.ordinal = r.ordinal
            LIMIT 1
        ) h
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
        -- What only gave itself back was not an attempt, and may do so for ever.
        WHERE commandbus.is_repeated(r.command_id, h.command_id, r.status, h.status, r.attempts,
                  h.attempts, r.error_code, h.error_code, r.error_message, h.error_message,
                  h.took_ms)
          AND (h.status <> 'RETRY' OR h.error_code IS NOT NULL);
    END IF;
    IF rewritten IS NOT NULL THEN
        -- What is not given stays, but for the error and the doubt: those go with the status.
        UPDATE commandbus.process_history h
        SET status = coalesce(r.status, h.status), attempts = coalesce(r.attempts, h.attempts),
            error_code = left(r.error_code, 200), error_message = left(r.error_message, 4000),
            in_doubt = r.in_doubt,
            -- 0: without end from now on, whatever it had before.
            timeout_at = CASE WHEN r.timeout_ms = 0 THEN NULL
                              ELSE coalesce(commandbus.moment(now_at, r.timeout_ms,
                                                              r.timeout_at_ms), h.timeout_at) END,
            opening = coalesce(r.opening, h.opening),
            command_id = coalesce(r.command_id, h.command_id),
            response_id = coalesce(r.response_id, h.response_id),
            send_no = coalesce(r.send_no, h.send_no),
            during = coalesce(r.during, h.during),
            domain = coalesce(r.domain, h.domain),
            command_type = coalesce(r.command_type, h.command_type),
            max_attempts = coalesce(r.max_attempts, h.max_attempts),
            worker = settle_process_arrays.worker,
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
        FROM (SELECT r.*, o.place,
                     commandbus.is_repeated(r.command_id, o.command_id, r.status, o.status,
                         r.attempts, o.attempts, r.error_code, o.error_code, r.error_message,
                         o.error_message, o.took_ms) AS again
              FROM unnest(rewritten) WITH ORDINALITY r
              CROSS JOIN LATERAL (
                  SELECT o.ctid AS place, o.status, o.attempts, o.command_id, o.took_ms,
                         o.error_code, o.error_message
                  FROM commandbus.process_history o
                  WHERE o.process_id = owners[rewritten_of[r.ordinality::integer]]
                    AND o.ordinal = r.ordinal
                  LIMIT 1
              ) o) r
        WHERE h.ctid = r.place;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found <> (SELECT count(*) FROM unnest(rewritten_of) o(item)
                     WHERE owners[o.item] IS NOT NULL) THEN
            PERFORM commandbus.refuse('INVALID_DATA',
                'there is no record that one of the rewritten ones could take the place of',
                'Correct the call; nothing was settled.');
        END IF;
    END IF;

    IF done.tells THEN
        INSERT INTO commandbus.process_event (at, process_id, command_id, event, step_name, worker,
                                              details)
        SELECT now_at, owners[i.ordinality::integer],
               CASE WHEN commandbus.is_uuid(e #>> '{details,command_id}')
                    THEN (e #>> '{details,command_id}')::uuid END,
               e ->> 'event', e ->> 'name', settle_process_arrays.worker,
               -- Of a reply in the inbox, which goes with this, all that it said.
               coalesce((SELECT b.payload - 'correlation_id' FROM commandbus.process_inbox b
                         WHERE b.process_id = owners[i.ordinality::integer]
                           AND b.seq = (e #>> '{details,seq}')::integer),
                        nullif(e -> 'details', 'null'))
        FROM unnest(items) WITH ORDINALITY i CROSS JOIN LATERAL jsonb_array_elements(i.events) e
        WHERE owners[i.ordinality::integer] IS NOT NULL;
    END IF;
    IF done.parked IS NOT NULL THEN
        INSERT INTO commandbus.process_event (at, process_id, event, step_name, worker, details)
        SELECT now_at, p.process_id, 'PARKED', p.current_step, settle_process_arrays.worker,
               jsonb_build_object('error_code', p.error_code, 'error_message', p.error_message)
        FROM unnest(done.parked, done.news) d(ord, is_news)
        CROSS JOIN LATERAL (SELECT * FROM commandbus.process p
                            WHERE p.process_id = owners[d.ord] LIMIT 1) p
        WHERE d.is_news OR EXISTS (SELECT FROM unnest(opened) WITH ORDINALITY r
                                   WHERE r.kind = 'OPERATOR'
                                     AND opened_of[r.ordinality::integer] = d.ord);
    END IF;

    IF consumed IS NOT NULL THEN
        DELETE FROM commandbus.process_inbox b WHERE b.ctid = ANY (ARRAY(
            SELECT b.place FROM unnest(consumed, consumed_of) c(seq, item) CROSS JOIN LATERAL (
                SELECT b.ctid AS place FROM commandbus.process_inbox b
                WHERE b.process_id = owners[c.item] AND b.seq = c.seq
                  AND ((items[c.item]).refused IS NOT TRUE OR b.kind = 'OPERATOR')
                LIMIT 1
            ) b));
    END IF;

    IF commands IS NOT NULL THEN
        PERFORM commandbus.send_for_processes(commands, commands_of, owners, queues);
    END IF;
    IF done.cancelers IS NOT NULL THEN
        PERFORM commandbus.leave_commands(settle_process_arrays.worker,
                    array_agg(i.cancels ORDER BY i.ordinality),
                    array_agg(i.process_id ORDER BY i.ordinality))
        FROM unnest(items) WITH ORDINALITY i
        WHERE i.ordinality = ANY (done.cancelers) AND jsonb_array_length(i.cancels) > 0
        HAVING count(*) > 0;
    END IF;
    IF done.due_domains IS NOT NULL THEN
        PERFORM commandbus.wake(d || '__processes', count(*))
        FROM unnest(done.due_domains) d GROUP BY d;
    END IF;
    IF done.ended_of IS NOT NULL THEN
        batch_ids := ARRAY(SELECT DISTINCT unnest(done.ended_of));
    END IF;
END
$$;

-- The same with all of it in JSON, each item with its own records, commands and consumed.
CREATE OR REPLACE FUNCTION commandbus.settle_processes(worker text, items jsonb,
    OUT verdicts text[], OUT batch_ids uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    i record; -- of items, records, commands and consumed the arrays
    r record;
    c record;
    b record;
BEGIN
    IF (worker <> '' AND jsonb_typeof(items) = 'array'
        AND NOT jsonb_path_exists(items, 'strict $[*] ? (@.type() != "object")')) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'settle_processes takes a worker and a JSON array of objects',
                                  'Correct the call; nothing was settled.');
    END IF;
    SELECT array_agg(jsonb_populate_record(NULL::commandbus.process_outcome, e.item)
                     ORDER BY e.ord) AS items,
           array_agg(commandbus.json_bytes(e.item -> 'records')
                     + commandbus.json_bytes(e.item -> 'state') ORDER BY e.ord) AS grown
    INTO i FROM jsonb_array_elements(items) WITH ORDINALITY e(item, ord);
    -- A record that is there stays there, unless the fence is lost: nobody else writes it.
    SELECT array_agg(l.record) FILTER (WHERE l.is_new) AS opened,
           array_agg(l.item) FILTER (WHERE l.is_new) AS opened_of,
           array_agg(l.record) FILTER (WHERE NOT l.is_new) AS rewritten,
           array_agg(l.item) FILTER (WHERE NOT l.is_new) AS rewritten_of
    INTO r
    FROM (SELECT n AS record, e.ord::integer AS item,
                 NOT EXISTS (SELECT FROM commandbus.process_history h
                             WHERE h.process_id = (e.item ->> 'process_id')::uuid
                               AND h.ordinal = n.ordinal) AS is_new
          FROM jsonb_array_elements(items) WITH ORDINALITY e(item, ord)
          CROSS JOIN LATERAL jsonb_populate_recordset(NULL::commandbus.process_record,
                                                      e.item -> 'records') n) l;
    SELECT array_agg(n) AS commands, array_agg(e.ord::integer) AS commands_of INTO c
    FROM jsonb_array_elements(items) WITH ORDINALITY e(item, ord)
    CROSS JOIN LATERAL jsonb_populate_recordset(NULL::commandbus.new_command,
                                                e.item -> 'commands') n;
    SELECT array_agg(s.seq::integer) AS consumed, array_agg(e.ord::integer) AS consumed_of INTO b
    FROM jsonb_array_elements(items) WITH ORDINALITY e(item, ord)
    CROSS JOIN LATERAL jsonb_array_elements_text(e.item -> 'consumed') s(seq);
    SELECT s.verdicts, s.batch_ids INTO verdicts, batch_ids
    FROM commandbus.settle_process_arrays(settle_processes.worker, coalesce(i.items, '{}'),
        coalesce(i.grown, '{}'), r.opened, r.opened_of, r.rewritten, r.rewritten_of, true,
        c.commands, c.commands_of, b.consumed, b.consumed_of) s;
END
$$;
