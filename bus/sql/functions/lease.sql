-- Leases while work runs, and sleepers.

-- Moves the end of each lease that the caller still holds. EXTENDED, BUSY (locked: being settled,
-- most likely) or GONE per item. Never waits. Under a fleet limit a lease is GONE with its place:
-- what runs without one is over the limit, and its command is for somebody else. Who is past its
-- timeout is GONE too, but keeps its place for as long as it comes here.
CREATE OR REPLACE FUNCTION commandbus.extend(domain text, worker text, command_ids uuid[],
    lease_nos bigint[], vt_seconds double precision)
RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    known     commandbus.domain;
    lease_end timestamptz := statement_timestamp() + make_interval(secs => extend.vt_seconds);
    done      record;
    states    text[];
    renewed   integer[];
    item      record;
BEGIN
    IF cardinality(command_ids) IS DISTINCT FROM cardinality(lease_nos)
       OR (vt_seconds > 0 AND vt_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'extend takes arrays of equal length and a positive vt_seconds',
                                  'Correct the call; nothing was extended.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('extend');
    END IF;

    WITH held AS MATERIALIZED (
        SELECT c.place, c.lease_until, i.ord
        FROM unnest(command_ids, lease_nos) WITH ORDINALITY i(command_id, lease_no, ord)
        CROSS JOIN LATERAL (
            SELECT c.ctid AS place, c.lease_until FROM commandbus.command_metadata c
            WHERE c.command_id = i.command_id AND c.domain = extend.domain
              AND c.lease_no = i.lease_no AND c.status = 'IN_PROGRESS'
            FOR UPDATE OF c SKIP LOCKED
        ) c
    ), extended AS (
        UPDATE commandbus.command_metadata c
        SET lease_until = lease_end, updated_at = statement_timestamp()
        FROM held h WHERE c.ctid = h.place
        RETURNING h.ord, c.msg_id, h.lease_until
    )
    SELECT array_agg(e.ord::integer) AS ords, array_agg(e.msg_id) AS msg_ids,
           array_agg(e.lease_until) AS before
    INTO done FROM extended e;

    -- After the commands are locked, as in settle: a limit that was set meanwhile is seen here.
    known := commandbus.known_domain(extend.domain);
    states := ARRAY(
        SELECT CASE WHEN i.ord = ANY (done.ords) THEN 'EXTENDED'
                    WHEN c.lease_no = i.lease_no AND c.status = 'IN_PROGRESS' THEN 'BUSY'
                    ELSE 'GONE' END
        FROM unnest(command_ids, lease_nos) WITH ORDINALITY i(command_id, lease_no, ord)
        LEFT JOIN LATERAL (
            SELECT c.lease_no, c.status FROM commandbus.command_metadata c
            WHERE c.command_id = i.command_id AND c.domain = extend.domain LIMIT 1
        ) c ON true
        ORDER BY i.ord);
    IF known.fleet_limit > 0 OR 'GONE' = ANY (states) THEN
        -- What is being settled just now gives its place back: not ours to hold, or the settle
        -- skips it.
        WITH held AS MATERIALIZED (
            SELECT l.spot, i.ord
            FROM unnest(command_ids, lease_nos, states)
                WITH ORDINALITY i(command_id, lease_no, state, ord)
            CROSS JOIN LATERAL (
                SELECT l.ctid AS spot FROM commandbus.fleet_place l
                WHERE l.command_id = i.command_id AND l.lease_no = i.lease_no
                  AND l.domain = extend.domain
                ORDER BY l.turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
            ) l
            WHERE i.state <> 'BUSY'
        ), renewed AS (
            UPDATE commandbus.fleet_place p
            SET turn = p.turn + 1, held_until = lease_end + make_interval(secs => p.timeout_seconds)
            FROM held h WHERE p.ctid = h.spot
            RETURNING h.ord
        )
        SELECT array_agg(r.ord::integer) INTO renewed FROM renewed r;
    END IF;
    IF known.fleet_limit > 0 THEN
        FOR item IN SELECT d.*
                    FROM unnest(done.ords, done.msg_ids, done.before) d(ord, msg_id, lease_until)
                    WHERE renewed IS NULL OR d.ord <> ALL (renewed) LOOP
            UPDATE commandbus.command_metadata c SET lease_until = item.lease_until
            WHERE c.command_id = command_ids[item.ord] AND c.domain = extend.domain;
            states[item.ord] := CASE WHEN EXISTS (
                SELECT FROM commandbus.fleet_place p
                WHERE p.command_id = command_ids[item.ord] AND p.lease_no = lease_nos[item.ord]
                  AND p.domain = extend.domain) THEN 'BUSY' ELSE 'GONE' END;
            done.msg_ids := array_remove(done.msg_ids, item.msg_id);
        END LOOP;
    END IF;
    -- A message that a claim holds just now keeps its vt: the claim finds the lease on the row
    -- renewed and puts the message off itself.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || extend.domain || '__commands')),
                           'UPDATE') THEN
        EXECUTE format('UPDATE pgmq.%1$I SET vt = $2 WHERE ctid = ANY (ARRAY('
                       '    SELECT ctid FROM pgmq.%1$I WHERE msg_id = ANY ($1) '
                       'FOR UPDATE SKIP LOCKED))', 'q_' || extend.domain || '__commands')
        USING done.msg_ids, lease_end;
    END IF;
    RETURN states;
END
$$;

-- Frees, uncharged, what `worker` holds here and does not know of: a claim whose answer was lost.
-- The fence moves on, so that nothing can be settled under it any more.
CREATE OR REPLACE FUNCTION commandbus.release_unknown(domain text, worker text, command_ids uuid[],
    lease_nos bigint[])
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue_name text := (commandbus.known_domain(release_unknown.domain)).domain || '__commands';
    candidates bigint[];
    released   record;
BEGIN
    IF (cardinality(command_ids) = cardinality(lease_nos)
        AND array_position(command_ids, NULL) IS NULL
        AND array_position(lease_nos, NULL) IS NULL) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'release_unknown takes arrays of equal length',
                                  'Name what the worker holds, {} for nothing; nothing was '
                                  'released.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('release_unknown');
    END IF;
    -- By way of the queue: what is in progress has a message that was read, and there are few.
    EXECUTE format('SELECT array_agg(msg_id) FROM pgmq.%I WHERE read_ct > 0', 'q_' || queue_name)
    INTO candidates;

    WITH unknown AS MATERIALIZED (
        SELECT c.place
        FROM unnest(candidates) m(msg_id)
        CROSS JOIN LATERAL (
            SELECT c.ctid AS place FROM commandbus.command_metadata c
            WHERE c.msg_id = m.msg_id AND c.domain = release_unknown.domain
              AND c.status = 'IN_PROGRESS' AND c.lease_owner = release_unknown.worker
              AND NOT EXISTS (SELECT FROM unnest(command_ids, lease_nos) i(command_id, lease_no)
                              WHERE i.command_id = c.command_id AND i.lease_no = c.lease_no)
            FOR UPDATE OF c SKIP LOCKED
        ) c
    ), freed AS (
        UPDATE commandbus.command_metadata c
        SET status = 'PENDING', attempts = c.attempts - 1, lease_no = c.lease_no + 1,
            lease_owner = NULL, lease_until = NULL, updated_at = statement_timestamp()
        FROM unknown u WHERE c.ctid = u.place
        RETURNING c.command_id, c.lease_no, c.attempts, c.msg_id
    ), audited AS (
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker,
                                      details)
        SELECT freed.command_id, freed.lease_no, freed.attempts, release_unknown.domain, 'RELEASED',
               release_unknown.worker,
               '{"reason": "claimed, but the answer never reached the worker"}'
        FROM freed
    )
    SELECT array_agg(freed.command_id) AS ids, array_agg(freed.lease_no - 1) AS leases,
           array_agg(freed.msg_id) AS msg_ids
    INTO released FROM freed;

    IF released.ids IS NOT NULL THEN
        -- In a statement that began after the locks: a limit that was set meanwhile gave each its
        -- place.
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = NULL, lease_no = NULL, worker = NULL,
            timeout_seconds = NULL, held_until = NULL
        WHERE p.ctid = ANY (ARRAY(
            SELECT l.spot FROM unnest(released.ids, released.leases) r(command_id, lease_no)
            CROSS JOIN LATERAL (
                SELECT l.ctid AS spot FROM commandbus.fleet_place l
                WHERE l.command_id = r.command_id AND l.lease_no = r.lease_no
                  AND l.domain = release_unknown.domain
                ORDER BY l.turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
            ) l));
        EXECUTE format('UPDATE pgmq.%I SET vt = statement_timestamp() WHERE msg_id = ANY ($1)',
                       'q_' || queue_name)
        USING released.msg_ids;
        PERFORM commandbus.wake(queue_name, cardinality(released.ids));
    END IF;
    RETURN QUERY SELECT unnest(released.ids);
END
$$;
