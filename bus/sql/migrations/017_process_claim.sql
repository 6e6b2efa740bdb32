-- Claiming processes: what is due, with a lease and a fence; and keeping that lease.

-- A process as a worker reads it. The columns are numbered in process_rows.c. Moments are milliseconds since
-- 1970 on the clock commandbus.now().
CREATE TYPE commandbus.process_row AS (
    process_id uuid, domain text, process_type text, reply_queue text, status text, phase text, error_code text,
    error_message text, current_step text, current_wait text, version integer, lease_no bigint, settle_no bigint,
    unsettled integer, inbox_seq integer, now_ms bigint, created_ms bigint, deadline_ms bigint, retry_ms bigint, wait_timeout_ms bigint,
    deadline_spent boolean, leaving jsonb, initial_state jsonb, state jsonb, history text, inbox text, waited_us bigint);

-- NULL also for a moment that never comes: one such row must not fail the claim of all others. What was before
-- 1970 is past all the same, and 0 is no moment in C.
CREATE FUNCTION commandbus.to_ms(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN moment < 'infinity' THEN floor(date_part('epoch', greatest(moment, '1970-01-01 00:00:01Z')) * 1000)::bigint END
$$;

-- A string as JSON, null for NULL. STABLE as to_json is, or it would not be inlined.
CREATE FUNCTION commandbus.quoted(value text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT coalesce(to_json(value)::text, 'null')
$$;

-- What happened and what has arrived: JSON arrays of arrays, in the order of cb_record_column and
-- cb_inbox_column. Put together as text: with json_build_array this was most of a claim. Without SET,
-- so that it becomes part of its callers' plans. A history beyond half of what a value can have is null, which
-- no worker can read: it is parked, and does not fail the claim of all others.
CREATE FUNCTION commandbus.process_content(process_id uuid, content_bytes bigint) RETURNS TABLE (history text, inbox text)
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN content_bytes > 536870912 THEN 'null' ELSE coalesce((
               SELECT '[' || string_agg('[' || concat_ws(',', h.ordinal, '"' || h.kind || '"', '"' || h.status || '"',
                          commandbus.quoted(h.name), h.attempts, coalesce(h.send_no, 0), coalesce(h.during, 0),
                          coalesce('"' || h.command_id || '"', 'null'),
                          CASE WHEN h.command_id IS NULL THEN 'null,null'
                               ELSE commandbus.quoted(h.domain) || ',' || commandbus.quoted(h.command_type) END,
                          coalesce(commandbus.to_ms(h.timeout_at), 0),
                          CASE WHEN h.error_code IS NULL THEN 'null,null'
                               ELSE commandbus.quoted(h.error_code) || ',' || commandbus.quoted(h.error_message) END,
                          coalesce(h.result::text, 'null'), coalesce(h.opening::text, 'null'),
                          coalesce(h.patch::text, 'null'), coalesce(h.owes::text, 'null'),
                          CASE WHEN h.status = 'WAITING' AND h.command_id IS NOT NULL THEN
                              coalesce((SELECT '"' || c.status || '"' FROM commandbus.command_metadata c
                                        WHERE c.command_id = h.command_id AND c.domain = h.domain), 'null')
                          ELSE 'null' END) || ']', ',' ORDER BY h.ordinal) || ']'
               FROM commandbus.process_history h WHERE h.process_id = process_content.process_id), '[]') END,
           coalesce((
               SELECT '[' || string_agg('[' || concat_ws(',', i.seq, '"' || i.kind || '"', commandbus.quoted(i.name),
                          coalesce('"' || i.response_id || '"', 'null'), i.payload::text) || ']', ',' ORDER BY i.seq) || ']'
               FROM commandbus.process_inbox i WHERE i.process_id = process_content.process_id), '[]')
$$;

-- Up to `quantity` processes of these types whose rows were written by no newer version than the caller's.
-- The types take turns by chance, so that none with an endless backlog starves the others.
CREATE FUNCTION commandbus.claim_processes(worker text, process_types text[], versions integer[], quantity integer,
    vt_seconds double precision DEFAULT 30)
RETURNS SETOF commandbus.process_row LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- One plan for all calls, by index whatever the statistics of an empty table said when it was made.
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment  timestamptz := commandbus.now();
    lease   interval;
    -- What expired while the server was away: its holder gets one VT to come back.
    expires boolean;
BEGIN
    IF (quantity > 0 AND vt_seconds > 0 AND vt_seconds <= 86400 AND worker <> ''
        AND cardinality(process_types) = cardinality(versions)) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'quantity must be positive, vt_seconds at most a day, worker a name, and '
            'there is one version for each process type', 'Correct the call; nothing was claimed.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', 'claims are made in READ COMMITTED only: an older snapshot does not '
            'know the leases of others', 'Call claim_processes in a transaction of its own with the default isolation.');
    END IF;
    lease := make_interval(secs => vt_seconds);
    expires := statement_timestamp() >= commandbus.reclaims_from(vt_seconds);

    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT p.place, p.status, p.wake_at
        FROM (SELECT * FROM unnest(process_types, versions) u(process_type, version) ORDER BY random()) t
        CROSS JOIN LATERAL (
            SELECT p.ctid AS place, p.status, p.wake_at FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at <= moment AND p.version <= t.version
              AND (p.lease_owner IS NULL OR (expires AND p.lease_until <= statement_timestamp()))
            ORDER BY p.wake_at LIMIT claim_processes.quantity FOR UPDATE OF p SKIP LOCKED
        ) p
        LIMIT claim_processes.quantity
    ), claimed AS (
        -- By place: who moved the row between our snapshot and our lock is found out, for it has another.
        UPDATE commandbus.process p
        SET lease_no = p.lease_no + 1, unsettled = p.unsettled + 1, lease_owner = claim_processes.worker, lease_until = statement_timestamp() + lease,
            wake_at = moment + lease, updated_at = moment,
            status = CASE WHEN p.status IN ('PENDING', 'WAITING_FOR_ASYNC', 'WAITING_FOR_REPLY', 'WAITING_FOR_RETRY')
                          THEN 'EXECUTING' ELSE p.status END
        FROM due WHERE p.ctid = due.place
        RETURNING p.*, due.status AS status_before, due.wake_at AS due_at
    ), batch AS MATERIALIZED (
        -- The first member claimed starts its batch; one that is locked is started by the next.
        SELECT b.batch_id
        FROM (SELECT DISTINCT c.batch_id FROM claimed c WHERE c.batch_id IS NOT NULL ORDER BY c.batch_id) m
        CROSS JOIN LATERAL (
            SELECT b.batch_id FROM commandbus.batch b WHERE b.batch_id = m.batch_id AND b.status = 'PENDING'
            FOR UPDATE OF b SKIP LOCKED
        ) b
    ), started AS (
        UPDATE commandbus.batch b SET status = 'IN_PROGRESS', started_at = statement_timestamp()
        FROM batch WHERE b.batch_id = batch.batch_id
        RETURNING b.batch_id, b.domain
    ), audited AS (
        INSERT INTO commandbus.audit (domain, event_type, details)
        SELECT s.domain, 'BATCH_STARTED', jsonb_build_object('batch_id', s.batch_id) FROM started s
    )
    SELECT c.process_id, c.domain, c.process_type, c.reply_queue, c.status_before::text, c.phase::text, c.error_code,
           c.error_message, c.current_step, c.current_wait, c.version, c.lease_no, c.settle_no, c.unsettled - 1, c.inbox_seq,
           commandbus.to_ms(moment), commandbus.to_ms(c.created_at), commandbus.to_ms(c.deadline_at),
           commandbus.to_ms(c.next_retry_at), commandbus.to_ms(c.next_wait_timeout_at), c.deadline_spent, c.leaving,
           c.initial_state, c.state, t.history, t.inbox,
           CASE WHEN isfinite(c.due_at) THEN (date_part('epoch', moment - c.due_at) * 1000000)::bigint ELSE 0 END
    FROM claimed c CROSS JOIN LATERAL commandbus.process_content(c.process_id, c.content_bytes) t;
END
$$;

-- Seconds until the next of these can be claimed: 0 when one is due, NULL when none has a timer. A due one that
-- is leased counts from the end of its lease, one that a newer version wrote not at all, or who asks would
-- come again at once and for ever.
CREATE FUNCTION commandbus.next_process_wake(process_types text[], versions integer[] DEFAULT NULL,
    vt_seconds double precision DEFAULT 30)
RETURNS double precision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz := commandbus.now();
    reclaims timestamptz := greatest(statement_timestamp(), commandbus.reclaims_from(vt_seconds));
    expires  boolean := reclaims = statement_timestamp();
BEGIN
    IF EXISTS (
        SELECT FROM unnest(process_types, versions) t(process_type, version)
        CROSS JOIN LATERAL (
            SELECT FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at <= moment AND (t.version IS NULL OR p.version <= t.version)
              AND (p.lease_owner IS NULL OR (expires AND p.lease_until <= statement_timestamp()))
            ORDER BY p.wake_at LIMIT 1
        ) p) THEN
        RETURN 0;
    END IF;
    RETURN (
        SELECT date_part('epoch', least(min(timer.wait), min(leased.wait)))
        FROM unnest(process_types, versions) t(process_type, version)
        LEFT JOIN LATERAL (
            SELECT p.wake_at - moment AS wait FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at > moment AND p.wake_at < 'infinity'
              AND (t.version IS NULL OR p.version <= t.version)
            ORDER BY p.wake_at LIMIT 1
        ) timer ON true
        -- All that is due here is leased: there are as many as run.
        LEFT JOIN LATERAL (
            SELECT min(greatest(p.lease_until, reclaims)) - statement_timestamp() AS wait FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at <= moment AND p.lease_owner IS NOT NULL
              AND (t.version IS NULL OR p.version <= t.version)
        ) leased ON true);
END
$$;

-- Moves the end of each lease that the caller still holds; true where it does. A row that is locked (settled just
-- now, most likely) counts as held. Never waits.
CREATE FUNCTION commandbus.extend_processes(worker text, process_ids uuid[], lease_nos bigint[],
    vt_seconds double precision)
RETURNS boolean[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := commandbus.now();
    lease  interval;
    held   uuid[];
BEGIN
    IF (cardinality(process_ids) = cardinality(lease_nos) AND vt_seconds > 0 AND vt_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'extend_processes takes arrays of equal length and a positive vt_seconds',
                                  'Correct the call; nothing was extended.');
    END IF;
    lease := make_interval(secs => vt_seconds);

    held := ARRAY(
        SELECT p.process_id
        FROM (SELECT * FROM unnest(process_ids, lease_nos) u(process_id, lease_no) ORDER BY u.process_id) i
        CROSS JOIN LATERAL (
            SELECT p.process_id FROM commandbus.process p
            WHERE p.process_id = i.process_id AND p.lease_no = i.lease_no AND p.lease_owner = extend_processes.worker
            FOR UPDATE OF p SKIP LOCKED
        ) p);
    -- In a statement that began after the locks: a response may have moved a row before.
    UPDATE commandbus.process p SET lease_until = statement_timestamp() + lease, wake_at = moment + lease
    WHERE p.ctid = ANY (ARRAY(
        SELECT p.place FROM unnest(held) i(process_id)
        CROSS JOIN LATERAL (SELECT p.ctid AS place FROM commandbus.process p WHERE p.process_id = i.process_id LIMIT 1) p));

    -- What was extended is as it was in this respect, and so is what somebody has locked.
    RETURN ARRAY(
        SELECT EXISTS (SELECT FROM commandbus.process p
                       WHERE p.process_id = i.process_id AND p.lease_no = i.lease_no AND p.lease_owner = extend_processes.worker)
        FROM unnest(process_ids, lease_nos) WITH ORDINALITY i(process_id, lease_no, ord) ORDER BY i.ord);
END
$$;

-- Frees what `worker` holds of these types and does not know of: a claim whose answer was lost. The fence moves
-- on, so that nothing can be settled under it any more.
CREATE FUNCTION commandbus.release_unknown_processes(worker text, process_types text[], process_ids uuid[],
    lease_nos bigint[])
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := commandbus.now();
BEGIN
    IF (cardinality(process_ids) = cardinality(lease_nos) AND array_position(process_ids, NULL) IS NULL
        AND array_position(lease_nos, NULL) IS NULL AND process_types IS NOT NULL) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'release_unknown_processes takes arrays of equal length',
                                  'Name what the worker holds, {} for nothing; nothing was released.');
    END IF;
    RETURN QUERY
    WITH unknown AS MATERIALIZED (
        -- By way of the timers: while it is leased a process wakes at the lease's end, a day off at most.
        SELECT p.process_id FROM commandbus.process p
        WHERE p.process_type = ANY (process_types) AND p.wake_at <= moment + interval '1 day'
          AND p.lease_owner = release_unknown_processes.worker
          AND NOT EXISTS (SELECT FROM unnest(process_ids, lease_nos) i(process_id, lease_no)
                          WHERE i.process_id = p.process_id AND i.lease_no = p.lease_no)
        ORDER BY p.process_id FOR UPDATE OF p SKIP LOCKED
    ), freed AS (
        UPDATE commandbus.process p
        SET lease_no = p.lease_no + 1, unsettled = greatest(p.unsettled - 1, 0), lease_owner = NULL, lease_until = NULL, wake_at = moment, updated_at = moment
        FROM unknown u WHERE p.process_id = u.process_id
        RETURNING p.process_id
    ), audited AS (
        INSERT INTO commandbus.process_event (process_id, event, worker, details)
        SELECT f.process_id, 'RELEASED', release_unknown_processes.worker,
               '{"reason": "claimed, but the answer never reached the worker"}' FROM freed f
    )
    SELECT f.process_id FROM freed f;

    IF FOUND THEN
        PERFORM commandbus.wake_sleepers(d.domain || '__processes')
        FROM (SELECT DISTINCT t.domain FROM commandbus.process_type t WHERE t.process_type = ANY (process_types)) d;
    END IF;
END
$$;

-- Processes as they are, unclaimed, for reading only.
CREATE FUNCTION commandbus.read_processes(process_ids uuid[])
RETURNS SETOF commandbus.process_row LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := commandbus.now();
BEGIN
    RETURN QUERY
    SELECT p.process_id, p.domain, p.process_type, p.reply_queue, p.status::text, p.phase::text, p.error_code,
           p.error_message, p.current_step, p.current_wait, p.version, p.lease_no, p.settle_no, p.unsettled, p.inbox_seq,
           commandbus.to_ms(moment), commandbus.to_ms(p.created_at), commandbus.to_ms(p.deadline_at),
           commandbus.to_ms(p.next_retry_at), commandbus.to_ms(p.next_wait_timeout_at), p.deadline_spent, p.leaving,
           p.initial_state, p.state, t.history, t.inbox, 0::bigint
    FROM commandbus.process p CROSS JOIN LATERAL commandbus.process_content(p.process_id, p.content_bytes) t
    WHERE p.process_id = ANY (process_ids) ORDER BY p.process_id;
END
$$;

-- Ids of processes that have not ended, of one type or all, in order after a given one.
CREATE FUNCTION commandbus.running_processes(process_type text DEFAULT NULL, after uuid DEFAULT NULL,
    max_processes integer DEFAULT 1000)
RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.process_id FROM commandbus.process p
    WHERE p.process_id > coalesce(running_processes.after, '00000000-0000-0000-0000-000000000000')
      AND (running_processes.process_type IS NULL OR p.process_type = running_processes.process_type)
      AND p.status NOT IN ('COMPLETED', 'CANCELED', 'COMPENSATED', 'FAILED')
    ORDER BY p.process_id LIMIT running_processes.max_processes
$$;
