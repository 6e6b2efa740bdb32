-- Settling: the outcomes of everything that finished, one transaction, an answer per item.
--
-- SETTLED  the transition was made
-- ALREADY  this fence has its outcome: a resend after a COMMIT whose answer was lost
-- BUSY     the command, its message or its place is locked by somebody: bring it again
-- STALE    the fence was lost: audited STALE_OUTCOME, nothing changed

-- The place of a holder whose fence is lost or has its outcome, whatever the limit is now. NULL: it
-- has none. False: somebody has it locked, a renewal most likely.
CREATE OR REPLACE FUNCTION commandbus.give_back_late(domain text, command_id uuid, lease_no bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    spot tid;
BEGIN
    SELECT p.ctid INTO spot FROM commandbus.fleet_place p
    WHERE p.command_id = give_back_late.command_id AND p.lease_no = give_back_late.lease_no
      AND p.domain = give_back_late.domain
    ORDER BY p.turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        -- In a statement of its own: it may have moved between the snapshot and the lock.
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = NULL, lease_no = NULL, worker = NULL,
            timeout_seconds = NULL, held_until = NULL
        WHERE p.ctid = spot;
        RETURN true;
    END IF;
    -- Likewise: a place that was laid anew meanwhile is found here.
    RETURN CASE WHEN EXISTS (SELECT FROM commandbus.fleet_place p
                             WHERE p.command_id = give_back_late.command_id
                               AND p.lease_no = give_back_late.lease_no
                               AND p.domain = give_back_late.domain) THEN false END;
END
$$;

-- The answers for items that were not settled, found out one by one: there are few of them. Whoever
-- brings an outcome has returned from its handler, whatever became of the fence: its place is free.
CREATE OR REPLACE FUNCTION commandbus.explain_unsettled(domain text, worker text,
    command_ids uuid[], lease_nos bigint[], outcomes text[], settled integer[],
    still_running boolean[], OUT verdicts text[], OUT places_back integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    i          integer;
    found_row  record;
    given_back boolean;
BEGIN
    verdicts := array_fill('SETTLED'::text, ARRAY[cardinality(command_ids)]);
    places_back := 0;
    FOR i IN SELECT o.i FROM generate_series(1, cardinality(command_ids)) o(i)
             EXCEPT SELECT unnest(settled) ORDER BY 1 LOOP
        SELECT c.lease_no, c.status, c.attempts INTO found_row FROM commandbus.command_metadata c
        WHERE c.command_id = command_ids[i] AND c.domain = explain_unsettled.domain;
        verdicts[i] := CASE WHEN found_row.lease_no IS DISTINCT FROM lease_nos[i] THEN 'STALE'
                            WHEN found_row.status = 'IN_PROGRESS' THEN 'BUSY'
                            ELSE 'ALREADY' END;
        IF verdicts[i] <> 'BUSY' AND still_running[i] IS NOT TRUE THEN
            given_back := commandbus.give_back_late(explain_unsettled.domain, command_ids[i],
                                                    lease_nos[i]);
            places_back := places_back + (given_back IS TRUE)::integer;
            -- Nobody would ask for it again, and it would stay taken until its time is over.
            IF NOT given_back THEN
                verdicts[i] := 'BUSY';
            END IF;
        END IF;
        -- A success after a timeout was settled under the same fence must not go unseen either.
        IF verdicts[i] = 'STALE' OR (verdicts[i] = 'ALREADY' AND outcomes[i] = 'SUCCESS'
                                     AND found_row.status <> 'COMPLETED') THEN
            INSERT INTO commandbus.audit (command_id, lease_no, domain, event_type, worker, details)
            VALUES (command_ids[i], lease_nos[i], explain_unsettled.domain, 'STALE_OUTCOME',
                    explain_unsettled.worker,
                    jsonb_build_object('outcome', outcomes[i],
                                       'current_lease_no', found_row.lease_no,
                                       'current_status', found_row.status));
        END IF;
    END LOOP;
END
$$;

-- Holds a command for the rest of the caller's transaction, which does things that must happen only
-- with its settling. Whoever lost the fence is refused, and so is all that follows in the
-- transaction. Waits for the row as long as lock_timeout allows.
CREATE OR REPLACE FUNCTION commandbus.hold_fence(domain text, command_id uuid, lease_no bigint)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM commandbus.command_metadata c
    WHERE c.command_id = hold_fence.command_id AND c.domain = hold_fence.domain
      AND c.lease_no = hold_fence.lease_no AND c.status = 'IN_PROGRESS'
    FOR UPDATE;
    IF NOT FOUND THEN
        -- Not by refuse(): the code says that it was the fence, and nothing that an effect called.
        RAISE EXCEPTION 'INVALID_OPERATION: command % is not in progress under lease %',
            command_id, lease_no
            USING ERRCODE = 'CBFNC',
            HINT = 'It was settled, or somebody else holds it now; nothing was changed.';
    END IF;
END
$$;

-- Settles outcomes of every kind, and those of which some are locked or lost. `ords` are the items
-- that were settled, NULL for none.
-- Stages:
--   1. item, held: rows under their fence are locked; those that somebody holds are skipped (BUSY)
--   2. settled, audited: row and audit records
--   3. messages are deleted, archived or put off; one that is locked undoes 1 to 3 for its command
--      alone
CREATE OR REPLACE FUNCTION commandbus.settle_each(domain text, worker text, command_ids uuid[],
    lease_nos bigint[], outcomes text[], results jsonb[], error_codes text[], error_messages text[],
    retry_seconds double precision[], OUT ords integer[], OUT longest_result integer,
    OUT batch_ids uuid[], OUT reply_queues text[], OUT process_ids uuid[], OUT replies jsonb[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    locked        bigint[] := '{}';
    more          bigint[];
    deletes       bigint[];
    archives      bigint[];
    puts_off      bigint[];
    put_off_until timestamptz[];
BEGIN
    -- Once, in nearly every case. A message that somebody has locked undoes the block (a
    -- subtransaction), which then runs again without it.
    LOOP
        BEGIN
            WITH item AS (
                SELECT *
                FROM unnest(command_ids, lease_nos, outcomes, results, error_codes, error_messages,
                            retry_seconds)
                    WITH ORDINALITY AS i(command_id, lease_no, outcome, result, error_code,
                                         error_message, retry_seconds, ord)
            ), held AS MATERIALIZED (
                SELECT c.place, i.ord, i.outcome,
                       CASE i.outcome WHEN 'SUCCESS' THEN i.result END AS result,
                       CASE i.outcome WHEN 'SUCCESS' THEN NULL WHEN 'INTERRUPTED' THEN NULL
                            ELSE i.outcome END AS error_type,
                       CASE i.outcome WHEN 'SUCCESS' THEN NULL WHEN 'INTERRUPTED' THEN NULL
                            ELSE left(coalesce(i.error_code, 'INTERNAL_ERROR'), 200)
                            END AS error_code,
                       CASE i.outcome WHEN 'SUCCESS' THEN NULL WHEN 'INTERRUPTED' THEN NULL
                            ELSE left(i.error_message, 4000) END AS error_message,
                       statement_timestamp() + make_interval(secs =>
                           greatest(coalesce(i.retry_seconds, 0), 0)) AS again_at,
                       CASE i.outcome
                            WHEN 'SUCCESS' THEN 'COMPLETED'::commandbus.command_status
                            WHEN 'BUSINESS_RULE' THEN 'FAILED'
                            WHEN 'INTERRUPTED' THEN 'PENDING'
                            WHEN 'TRANSIENT' THEN CASE WHEN c.attempts < c.max_attempts
                                THEN 'PENDING'::commandbus.command_status
                                ELSE 'IN_TROUBLESHOOTING_QUEUE' END
                            ELSE 'IN_TROUBLESHOOTING_QUEUE' END AS status
                FROM item i CROSS JOIN LATERAL (
                    SELECT c.ctid AS place, c.attempts, c.max_attempts
                    FROM commandbus.command_metadata c
                    WHERE c.command_id = i.command_id AND c.domain = settle_each.domain
                      AND c.lease_no = i.lease_no
                      AND c.status = 'IN_PROGRESS' AND c.msg_id <> ALL (locked)
                    FOR UPDATE OF c SKIP LOCKED
                ) c
            ), settled AS (
                UPDATE commandbus.command_metadata c
                SET status = h.status, result = h.result, error_type = h.error_type,
                    error_code = h.error_code, error_message = h.error_message, lease_owner = NULL,
                    lease_until = NULL,
                    attempts = c.attempts - (h.outcome = 'INTERRUPTED')::integer,
                    completed_at = CASE WHEN h.status IN ('COMPLETED', 'FAILED')
                                        THEN statement_timestamp() END,
                    tsq_at = CASE h.status WHEN 'IN_TROUBLESHOOTING_QUEUE'
                                  THEN statement_timestamp() END,
                    updated_at = statement_timestamp()
                FROM held h WHERE c.ctid = h.place
                RETURNING h.ord, h.status, h.again_at, c.command_id, c.lease_no, c.attempts,
                          c.msg_id, c.correlation_id, c.reply_to, c.batch_id, c.process_id,
                          c.result, c.error_type, c.error_code, c.error_message
            ), audited AS (
                INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type,
                                              worker, details)
                SELECT s.command_id, s.lease_no, s.attempts, settle_each.domain,
                       CASE s.status WHEN 'COMPLETED' THEN 'COMPLETED'
                            WHEN 'FAILED' THEN 'BUSINESS_RULE_FAILED'
                            WHEN 'PENDING' THEN CASE WHEN s.error_type IS NULL THEN 'RELEASED'
                                                     ELSE 'FAILED' END
                            ELSE 'MOVED_TO_TSQ' END,
                       settle_each.worker,
                       CASE WHEN s.status = 'COMPLETED' THEN s.result
                            WHEN s.error_type IS NOT NULL
                            THEN jsonb_strip_nulls(jsonb_build_object('error_type', s.error_type,
                                     'error_code', s.error_code,
                                     'error_message', s.error_message)) END
                FROM settled s
                UNION ALL
                SELECT s.command_id, s.lease_no, s.attempts, settle_each.domain, 'RETRY_SCHEDULED',
                       settle_each.worker, jsonb_build_object('visible_at', s.again_at)
                FROM settled s WHERE s.status = 'PENDING' AND s.error_type IS NOT NULL
            )
            SELECT array_agg(s.ord::integer),
                   array_agg(s.msg_id) FILTER (WHERE s.status = 'COMPLETED'),
                   array_agg(s.msg_id) FILTER (WHERE s.status IN ('FAILED',
                       'IN_TROUBLESHOOTING_QUEUE')),
                   array_agg(s.msg_id) FILTER (WHERE s.status = 'PENDING'),
                   array_agg(s.again_at) FILTER (WHERE s.status = 'PENDING'),
                   array_agg(DISTINCT s.batch_id)
                       FILTER (WHERE s.batch_id IS NOT NULL
                                 AND s.status IN ('COMPLETED', 'FAILED')),
                   array_agg(s.reply_to) FILTER (WHERE s.reply_to IS NOT NULL
                                                   AND s.status <> 'PENDING'),
                   array_agg(s.process_id) FILTER (WHERE s.reply_to IS NOT NULL
                                                     AND s.status <> 'PENDING'),
                   array_agg(commandbus.reply_message(s.command_id, s.correlation_id,
                             CASE s.status WHEN 'COMPLETED' THEN 'SUCCESS' ELSE 'FAILED' END,
                             s.result, s.error_type, s.error_code, s.error_message, NULL,
                             s.status <> 'IN_TROUBLESHOOTING_QUEUE'))
                       FILTER (WHERE s.reply_to IS NOT NULL AND s.status <> 'PENDING')
            INTO ords, deletes, archives, puts_off, put_off_until, batch_ids, reply_queues,
                 process_ids, replies
            FROM settled s;

            IF ords IS NOT NULL THEN
                more := commandbus.move_messages(settle_each.domain || '__commands', deletes,
                                                 archives, puts_off, put_off_until);
                IF more IS NOT NULL THEN
                    RAISE SQLSTATE 'CBLCK';
                END IF;
            END IF;
            EXIT;
        EXCEPTION
            WHEN SQLSTATE 'CBLCK' THEN locked := locked || more;
        END;
    END LOOP;

    IF statement_timestamp() >= ANY (put_off_until) THEN
        PERFORM commandbus.wake(settle_each.domain || '__commands',
                                cardinality(put_off_until));
    END IF;
    longest_result := (SELECT max(octet_length(r::text)) FROM unnest(results) r);
END
$$;

-- all_or_nothing: for a transaction that has done more than settling. An item that cannot be
-- settled now is then an error, for which everything is brought again.
-- still_running: true for a timeout, which is settled while its handler runs on. It keeps its place
-- until it brings its late outcome.
-- Stages:
--   1. rows, audit records and messages: of successes by "<queue>.finish", else by settle_each
--   2. replies are sent
--   3. places of the fleet limit come back
--   4. verdicts; those that were not settled are explained (ALREADY, BUSY, STALE)
CREATE OR REPLACE FUNCTION commandbus.settle(domain text, worker text, command_ids uuid[],
    lease_nos bigint[], outcomes text[], results jsonb[] DEFAULT NULL,
    error_codes text[] DEFAULT NULL, error_messages text[] DEFAULT NULL,
    retry_seconds double precision[] DEFAULT NULL, all_or_nothing boolean DEFAULT false,
    still_running boolean[] DEFAULT NULL, OUT verdicts text[], OUT batch_ids uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    known      commandbus.domain;
    queue_name text := settle.domain || '__commands';
    n          integer := cardinality(command_ids);
    done       record;
    back       integer := 0;
    late       integer;
    silent     timestamptz[];
BEGIN
    IF (worker <> '' AND n = cardinality(lease_nos) AND n = cardinality(outcomes)
        AND n = coalesce(cardinality(results), n) AND n = coalesce(cardinality(error_codes), n)
        AND n = coalesce(cardinality(error_messages), n)
        AND n = coalesce(cardinality(retry_seconds), n)
        AND n = coalesce(cardinality(still_running), n)
        AND array_position(command_ids, NULL) IS NULL AND array_position(lease_nos, NULL) IS NULL
        AND array_position(outcomes, NULL) IS NULL
        AND outcomes <@ ARRAY['SUCCESS', 'TRANSIENT', 'PERMANENT', 'BUSINESS_RULE', 'INTERRUPTED'])
       IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'settle takes a worker, arrays of equal length and outcomes SUCCESS, TRANSIENT, '
            'PERMANENT, BUSINESS_RULE or INTERRUPTED', 'Correct the call; nothing was settled.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('settle');
    END IF;
    IF true = ANY (still_running) THEN
        silent := ARRAY(SELECT c.lease_until
                        FROM unnest(command_ids, lease_nos)
                            WITH ORDINALITY i(command_id, lease_no, ord)
                        LEFT JOIN commandbus.command_metadata c ON c.command_id = i.command_id
                            AND c.domain = settle.domain AND c.lease_no = i.lease_no
                        ORDER BY i.ord);
    END IF;

    -- Nearly every call. A queue that somebody dropped, or made again as another user, must not
    -- stop other domains.
    IF 'SUCCESS' = ALL (outcomes) AND (true = ANY (still_running)) IS NOT TRUE
       AND has_table_privilege(to_regclass('pgmq.' || quote_ident('q_' || queue_name)), 'DELETE')
       AND to_regproc('commandbus.' || quote_ident(queue_name || '.finish')) IS NOT NULL THEN
        done := commandbus.finish_of(queue_name, worker, command_ids, lease_nos, results);
    ELSE
        SELECT NULL::integer[] AS ords INTO done;
    END IF;
    IF done.ords IS NULL THEN
        SELECT * INTO done
        FROM commandbus.settle_each(settle.domain, settle.worker, command_ids, lease_nos, outcomes,
                                    results, error_codes, error_messages, retry_seconds);
    END IF;

    -- Read only now that the commands are locked: who sets a limit counts what is in progress under
    -- the same locks, so that we either see the limit here or were not counted.
    SELECT * INTO known FROM commandbus.domain d WHERE d.domain = settle.domain;
    IF NOT FOUND THEN
        known := commandbus.known_domain(settle.domain);
    END IF;
    IF done.longest_result > known.payload_limit THEN
        PERFORM commandbus.refuse('PAYLOAD_TOO_LARGE',
            format('a result has more than %s bytes', known.payload_limit),
            'Keep the result elsewhere and return where; nothing was settled.');
    END IF;

    IF done.reply_queues IS NOT NULL THEN
        PERFORM commandbus.give_replies(settle.domain, done.reply_queues, done.replies,
                                        done.process_ids, settle.worker);
    END IF;
    IF known.fleet_limit > 0 AND done.ords IS NOT NULL THEN
        -- Nobody but us touches the place of a command that we hold, unless its time is over: what
        -- is skipped is free, or somebody else's.
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = NULL, lease_no = NULL, worker = NULL,
            timeout_seconds = NULL, held_until = NULL
        FROM (SELECT l.spot FROM unnest(done.ords) o(ord) CROSS JOIN LATERAL (
                  SELECT l.ctid AS spot FROM commandbus.fleet_place l
                  WHERE l.command_id = command_ids[o.ord] AND l.lease_no = lease_nos[o.ord]
                    AND l.domain = settle.domain
                  ORDER BY l.turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
              ) l
              WHERE still_running[o.ord] IS NOT TRUE) l
        WHERE p.ctid = l.spot;
        GET DIAGNOSTICS back = ROW_COUNT;
    ELSIF silent IS NOT NULL THEN
        PERFORM commandbus.remember_silent(settle.domain, command_ids[o.ord], lease_nos[o.ord],
                                           settle.worker, c.timeout_seconds, silent[o.ord])
        FROM unnest(done.ords) o(ord)
        JOIN commandbus.command_metadata c ON c.command_id = command_ids[o.ord]
            AND c.domain = settle.domain
        WHERE still_running[o.ord];
    END IF;

    batch_ids := done.batch_ids;
    IF all_or_nothing AND cardinality(done.ords) IS DISTINCT FROM n THEN
        RAISE EXCEPTION 'a command or its message is locked' USING ERRCODE = 'lock_not_available',
            HINT = 'Bring it again; nothing was changed.';
    END IF;
    IF cardinality(done.ords) = n THEN
        verdicts := array_fill('SETTLED'::text, ARRAY[n]);
    ELSE
        SELECT e.verdicts, e.places_back INTO verdicts, late
        FROM commandbus.explain_unsettled(settle.domain, settle.worker, command_ids, lease_nos,
                                          outcomes, coalesce(done.ords, '{}'),
                                          settle.still_running) e;
        back := back + late;
    END IF;
    IF back > 0 THEN
        PERFORM commandbus.wake_for_capacity(settle.domain, known.fleet_limit, back);
    END IF;
END
$$;
