-- Leases while work runs, and sleepers.

-- Moves the end of each lease that the caller still holds. EXTENDED, BUSY (locked: being settled,
-- most likely) or GONE per item. Never waits.
CREATE FUNCTION commandbus.extend(domain text, worker text, command_ids uuid[], lease_nos bigint[],
    vt_seconds double precision)
RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    known     commandbus.domain;
    lease_end timestamptz := statement_timestamp() + make_interval(secs => extend.vt_seconds);
    done      record;
    states    text[];
BEGIN
    IF cardinality(command_ids) IS DISTINCT FROM cardinality(lease_nos) OR (vt_seconds > 0 AND vt_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'extend takes arrays of equal length and a positive vt_seconds',
                                  'Correct the call; nothing was extended.');
    END IF;

    WITH held AS MATERIALIZED (
        SELECT c.place, i.ord
        FROM unnest(command_ids, lease_nos) WITH ORDINALITY i(command_id, lease_no, ord)
        CROSS JOIN LATERAL (
            SELECT c.ctid AS place FROM commandbus.command_metadata c
            WHERE c.command_id = i.command_id AND c.domain = extend.domain AND c.lease_no = i.lease_no
              AND c.status = 'IN_PROGRESS'
            FOR UPDATE OF c SKIP LOCKED
        ) c
    ), extended AS (
        UPDATE commandbus.command_metadata c SET lease_until = lease_end, updated_at = statement_timestamp()
        FROM held h WHERE c.ctid = h.place
        RETURNING h.ord, c.msg_id
    )
    SELECT array_agg(e.ord::integer) AS ords, array_agg(e.msg_id) AS msg_ids INTO done FROM extended e;

    -- After the commands are locked, as in settle: a limit that was set meanwhile is seen here.
    known := commandbus.known_domain(extend.domain);
    -- A message that a claim holds just now keeps its vt: the claim finds the lease on the row
    -- renewed and puts the message off itself.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || extend.domain || '__commands')), 'UPDATE') THEN
        EXECUTE format('UPDATE pgmq.%1$I SET vt = $2 WHERE ctid = ANY (ARRAY('
                       '    SELECT ctid FROM pgmq.%1$I WHERE msg_id = ANY ($1) FOR UPDATE SKIP LOCKED))',
                       'q_' || extend.domain || '__commands')
        USING done.msg_ids, lease_end;
    END IF;
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
    IF known.fleet_limit > 0 THEN
        UPDATE commandbus.fleet_lease f SET held_until = lease_end + make_interval(secs => held.timeout_seconds)
        FROM (SELECT l.command_id, l.lease_no, l.timeout_seconds
              FROM unnest(command_ids, lease_nos, states) i(command_id, lease_no, state)
              CROSS JOIN LATERAL (
                  SELECT l.command_id, l.lease_no, l.timeout_seconds FROM commandbus.fleet_lease l
                  WHERE l.domain = extend.domain AND l.command_id = i.command_id AND l.lease_no = i.lease_no
                  FOR UPDATE OF l SKIP LOCKED
              ) l
              -- What is being settled just now gives its place back: not ours to hold, or the settle skips it.
              WHERE i.state <> 'BUSY') held
        WHERE f.domain = extend.domain AND f.command_id = held.command_id AND f.lease_no = held.lease_no;
    END IF;
    RETURN states;
END
$$;

-- Frees, uncharged, what `worker` holds here and does not know of: a claim whose answer was lost. The
-- fence moves on, so that nothing can be settled under it any more.
CREATE FUNCTION commandbus.release_unknown(domain text, worker text, command_ids uuid[], lease_nos bigint[])
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue_name text := (commandbus.known_domain(release_unknown.domain)).domain || '__commands';
    candidates bigint[];
    released   bigint[];
BEGIN
    IF (cardinality(command_ids) = cardinality(lease_nos) AND array_position(command_ids, NULL) IS NULL
        AND array_position(lease_nos, NULL) IS NULL) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'release_unknown takes arrays of equal length',
                                  'Name what the worker holds, {} for nothing; nothing was released.');
    END IF;
    -- By way of the queue: what is in progress has a message that was read, and there are few.
    EXECUTE format('SELECT array_agg(msg_id) FROM pgmq.%I WHERE read_ct > 0', 'q_' || queue_name) INTO candidates;

    RETURN QUERY
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
        SET status = 'PENDING', attempts = c.attempts - 1, lease_no = c.lease_no + 1, lease_owner = NULL,
            lease_until = NULL, updated_at = statement_timestamp()
        FROM unknown u WHERE c.ctid = u.place
        RETURNING c.command_id, c.lease_no, c.attempts
    ), unleased AS (
        DELETE FROM commandbus.fleet_lease f USING freed
        WHERE f.domain = release_unknown.domain AND f.command_id = freed.command_id AND f.lease_no = freed.lease_no - 1
    ), audited AS (
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker, details)
        SELECT freed.command_id, freed.lease_no, freed.attempts, release_unknown.domain, 'RELEASED', release_unknown.worker,
               '{"reason": "claimed, but the answer never reached the worker"}'
        FROM freed
    )
    SELECT freed.command_id FROM freed;

    IF FOUND THEN
        SELECT array_agg(c.msg_id) INTO released
        FROM unnest(candidates) m(msg_id)
        JOIN commandbus.command_metadata c ON c.msg_id = m.msg_id AND c.domain = release_unknown.domain
        WHERE c.status = 'PENDING' AND c.updated_at = statement_timestamp();
        EXECUTE format('UPDATE pgmq.%I SET vt = statement_timestamp() WHERE msg_id = ANY ($1)', 'q_' || queue_name)
        USING released;
        PERFORM commandbus.wake_sleepers(queue_name);
    END IF;
END
$$;

-- Commands that wait for a message nobody will ever read: somebody emptied or dropped the queue. Gives
-- each a new message, or with dry_run only names them. Walks the whole table: for housekeeping.
CREATE FUNCTION commandbus.restore_messages(domain text, max_commands integer DEFAULT 1000, dry_run boolean DEFAULT false)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue_name text := (commandbus.known_domain(restore_messages.domain)).domain || '__commands';
    lost_ones  text := format('FROM commandbus.command_metadata c WHERE c.domain = $1 AND c.completed_at IS NULL '
                              'AND c.tsq_at IS NULL AND NOT EXISTS (SELECT FROM pgmq.%I q WHERE q.msg_id = c.msg_id)',
                              'q_' || queue_name);
    held       uuid[];
    lost       record;
    new_msg_id bigint;
BEGIN
    IF dry_run IS NOT FALSE THEN
        RETURN QUERY EXECUTE 'SELECT c.command_id ' || lost_ones || ' LIMIT $2' USING restore_messages.domain, max_commands;
        RETURN;
    END IF;
    EXECUTE 'SELECT array_agg(h.command_id) FROM (SELECT c.command_id ' || lost_ones || ' LIMIT $2 FOR UPDATE OF c SKIP LOCKED) h'
    INTO held USING restore_messages.domain, max_commands;

    -- In a statement that began after the lock: whoever moves a message holds its command's row.
    FOR lost IN EXECUTE 'SELECT c.* ' || lost_ones || ' AND c.command_id = ANY ($2)' USING restore_messages.domain, held LOOP
        EXECUTE format('INSERT INTO pgmq.%I (vt, message, headers) VALUES ($1, $2, $3) RETURNING msg_id', 'q_' || queue_name)
        INTO new_msg_id
        USING greatest(lost.lease_until, statement_timestamp()),
              commandbus.command_message(lost.domain, lost.command_type, lost.command_id, lost.correlation_id, lost.data,
                                         lost.reply_to), lost.headers;
        UPDATE commandbus.command_metadata c SET msg_id = new_msg_id
        WHERE c.command_id = lost.command_id AND c.domain = lost.domain;
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, db_user, details)
        VALUES (lost.command_id, lost.lease_no, lost.attempts, lost.domain, 'RELEASED', session_user,
                jsonb_build_object('reason', 'its message had vanished from the queue', 'lost_msg_id', lost.msg_id));
        RETURN NEXT lost.command_id;
    END LOOP;
    PERFORM commandbus.wake_sleepers(queue_name);
END
$$;

-- How many commands of each domain have lost their message, up to 1000: for doctor.
CREATE FUNCTION commandbus.lost_messages() RETURNS TABLE (domain text, commands bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.domain, count(*)
    FROM commandbus.domain d CROSS JOIN LATERAL commandbus.restore_messages(d.domain, 1000, true)
    WHERE has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || d.domain || '__commands')), 'SELECT')
    GROUP BY d.domain
$$;

-- `worker` sleeps on these queues for at most so long; senders notify commandbus_<queue> only then.
CREATE FUNCTION commandbus.sleep_announce(worker text, queue_names text[], seconds double precision) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.sleeper (queue_name, worker, expires_at)
    SELECT DISTINCT q, sleep_announce.worker, statement_timestamp()
               + CASE WHEN seconds > 86400 AND seconds <= 1e9 THEN interval '1 day' ELSE make_interval(secs => seconds) END
    FROM unnest(queue_names) q ORDER BY q
    ON CONFLICT (queue_name, worker) DO UPDATE SET expires_at = excluded.expires_at
$$;

-- It woke up: for all of its queues, or only these.
CREATE FUNCTION commandbus.sleep_end(worker text, queue_names text[] DEFAULT NULL) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM commandbus.sleeper s
    WHERE s.worker = sleep_end.worker AND (sleep_end.queue_names IS NULL OR s.queue_name = ANY (sleep_end.queue_names))
$$;
