-- Leases while work runs, and sleepers.

-- Moves the end of each lease that the caller still holds. EXTENDED, BUSY (locked: being settled,
-- most likely) or GONE per item. Never waits. Under a fleet limit a lease is GONE with its place: what
-- runs without one is over the limit, and its command is for somebody else. Who is past its timeout is
-- GONE too, but keeps its place for as long as it comes here.
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
    renewed   integer[];
    item      record;
BEGIN
    IF cardinality(command_ids) IS DISTINCT FROM cardinality(lease_nos) OR (vt_seconds > 0 AND vt_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'extend takes arrays of equal length and a positive vt_seconds',
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
            WHERE c.command_id = i.command_id AND c.domain = extend.domain AND c.lease_no = i.lease_no
              AND c.status = 'IN_PROGRESS'
            FOR UPDATE OF c SKIP LOCKED
        ) c
    ), extended AS (
        UPDATE commandbus.command_metadata c SET lease_until = lease_end, updated_at = statement_timestamp()
        FROM held h WHERE c.ctid = h.place
        RETURNING h.ord, c.msg_id, h.lease_until
    )
    SELECT array_agg(e.ord::integer) AS ords, array_agg(e.msg_id) AS msg_ids, array_agg(e.lease_until) AS before
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
        -- What is being settled just now gives its place back: not ours to hold, or the settle skips it.
        WITH held AS MATERIALIZED (
            SELECT l.spot, i.ord
            FROM unnest(command_ids, lease_nos, states) WITH ORDINALITY i(command_id, lease_no, state, ord)
            CROSS JOIN LATERAL (
                SELECT l.ctid AS spot FROM commandbus.fleet_place l
                WHERE l.command_id = i.command_id AND l.lease_no = i.lease_no AND l.domain = extend.domain
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
        FOR item IN SELECT d.* FROM unnest(done.ords, done.msg_ids, done.before) d(ord, msg_id, lease_until)
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
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || extend.domain || '__commands')), 'UPDATE') THEN
        EXECUTE format('UPDATE pgmq.%1$I SET vt = $2 WHERE ctid = ANY (ARRAY('
                       '    SELECT ctid FROM pgmq.%1$I WHERE msg_id = ANY ($1) FOR UPDATE SKIP LOCKED))',
                       'q_' || extend.domain || '__commands')
        USING done.msg_ids, lease_end;
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
    released   record;
BEGIN
    IF (cardinality(command_ids) = cardinality(lease_nos) AND array_position(command_ids, NULL) IS NULL
        AND array_position(lease_nos, NULL) IS NULL) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'release_unknown takes arrays of equal length',
                                  'Name what the worker holds, {} for nothing; nothing was released.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('release_unknown');
    END IF;
    -- By way of the queue: what is in progress has a message that was read, and there are few.
    EXECUTE format('SELECT array_agg(msg_id) FROM pgmq.%I WHERE read_ct > 0', 'q_' || queue_name) INTO candidates;

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
        RETURNING c.command_id, c.lease_no, c.attempts, c.msg_id
    ), audited AS (
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker, details)
        SELECT freed.command_id, freed.lease_no, freed.attempts, release_unknown.domain, 'RELEASED', release_unknown.worker,
               '{"reason": "claimed, but the answer never reached the worker"}'
        FROM freed
    )
    SELECT array_agg(freed.command_id) AS ids, array_agg(freed.lease_no - 1) AS leases, array_agg(freed.msg_id) AS msg_ids
    INTO released FROM freed;

    IF released.ids IS NOT NULL THEN
        -- In a statement that began after the locks: a limit that was set meanwhile gave each its place.
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = NULL, lease_no = NULL, worker = NULL, timeout_seconds = NULL, held_until = NULL
        WHERE p.ctid = ANY (ARRAY(
            SELECT l.spot FROM unnest(released.ids, released.leases) r(command_id, lease_no)
            CROSS JOIN LATERAL (
                SELECT l.ctid AS spot FROM commandbus.fleet_place l
                WHERE l.command_id = r.command_id AND l.lease_no = r.lease_no AND l.domain = release_unknown.domain
                ORDER BY l.turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
            ) l));
        EXECUTE format('UPDATE pgmq.%I SET vt = statement_timestamp() WHERE msg_id = ANY ($1)', 'q_' || queue_name)
        USING released.msg_ids;
        PERFORM commandbus.wake_sleepers(queue_name);
    END IF;
    RETURN QUERY SELECT unnest(released.ids);
END
$$;

-- Makes messages visible that nobody would see for longer than anything of ours asks for: somebody
-- wrote such a vt by hand. The claim sorts out what each of them is. A command may be put off for a
-- year, a reply never for longer than a lease; that is one look at the index on vt. past_lease: also
-- messages of running commands that would outlast their lease, which takes a look at each. Returns
-- how many there are, or with dry_run would be.
CREATE FUNCTION commandbus.reveal_messages(queue_name text, past_lease boolean DEFAULT false,
    dry_run boolean DEFAULT false)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue_table text := format('pgmq.%I', 'q_' || queue_name);
    is_commands boolean := queue_name LIKE '%\_\_commands';
    hidden      text := format('FROM %s q WHERE q.vt > statement_timestamp() + $1', queue_table);
    revealed    bigint := 0;
BEGIN
    IF has_table_privilege(to_regclass(queue_table), 'UPDATE') IS NOT TRUE THEN
        RETURN 0;
    END IF;
    IF past_lease AND is_commands THEN
        hidden := hidden || format(' OR (q.vt > statement_timestamp() AND EXISTS ('
            'SELECT FROM commandbus.command_metadata c WHERE c.msg_id = q.msg_id AND c.domain = %L '
            'AND c.status = ''IN_PROGRESS'' AND c.lease_until + interval ''1 minute'' < q.vt))',
            left(queue_name, -10));
    END IF;
    EXECUTE CASE WHEN dry_run THEN 'SELECT count(*) ' || hidden
        ELSE format('WITH hidden AS MATERIALIZED ('
            '    SELECT q.ctid AS place %2$s FOR UPDATE OF q SKIP LOCKED'
            '), revealed AS ('
            '    UPDATE %1$s q SET vt = statement_timestamp() FROM hidden h WHERE q.ctid = h.place '
            '    RETURNING 1'
            ') SELECT count(*) FROM revealed', queue_table, hidden) END
    INTO revealed USING CASE WHEN is_commands THEN interval '366 days' ELSE interval '1 day' END;
    IF revealed > 0 AND NOT dry_run THEN
        PERFORM commandbus.wake_sleepers(queue_name);
    END IF;
    RETURN revealed;
END
$$;

-- Commands that wait for a message nobody will ever read: somebody emptied or dropped the queue. Gives
-- each a new message, or with dry_run only names them. Walks the whole table: see keep_messages().
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
    PERFORM commandbus.reveal_messages(queue_name, past_lease => true);
    EXECUTE 'SELECT array_agg(h.command_id) FROM (SELECT c.command_id ' || lost_ones || ' LIMIT $2 FOR UPDATE OF c SKIP LOCKED) h'
    INTO held USING restore_messages.domain, max_commands;

    -- In a statement that began after the lock: whoever moves a message holds its command's row.
    FOR lost IN EXECUTE 'SELECT c.* ' || lost_ones || ' AND c.command_id = ANY ($2)' USING restore_messages.domain, held LOOP
        -- Read by whoever runs it just now: what is in progress is found by that.
        EXECUTE format('INSERT INTO pgmq.%I (read_ct, vt, message, headers) VALUES ($4, $1, $2, $3) RETURNING msg_id',
                       'q_' || queue_name)
        INTO new_msg_id
        USING greatest(lost.lease_until, statement_timestamp()),
              commandbus.command_message(lost.domain, lost.command_type, lost.command_id, lost.correlation_id, lost.data,
                                         lost.reply_to), lost.headers, (lost.status = 'IN_PROGRESS')::integer;
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

-- True for one of all that ask within so many seconds: it does the chore for the whole fleet. Until
-- its transaction ends the others are told no.
CREATE FUNCTION commandbus.take_turn(chore text, seconds double precision) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF NOT pg_try_advisory_xact_lock(
               hashtextextended('commandbus.chore.' || take_turn.chore, 0)) THEN
        RETURN false;
    END IF;
    INSERT INTO commandbus.chore AS c (chore, next_at)
    VALUES (take_turn.chore, clock_timestamp() + make_interval(secs => seconds))
    ON CONFLICT (chore) DO UPDATE SET next_at = excluded.next_at
        WHERE c.next_at <= clock_timestamp();
    RETURN FOUND;
END
$$;

-- restore_messages() for housekeeping, which asks often: the whole table is looked through once an
-- hour over the fleet, and as soon as somebody has taken messages out of the queue by hand. One row
-- a command that got a new message.
CREATE FUNCTION commandbus.keep_messages(domain text, every_seconds double precision DEFAULT 3600)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue    text := (commandbus.known_domain(keep_messages.domain)).domain || '__commands';
    at_once  constant integer := 1000;
    touched  boolean;
    restored bigint;
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue)), 'INSERT') IS NOT TRUE THEN
        RETURN; -- what was noted stays until there is a queue again
    END IF;
    PERFORM commandbus.reveal_messages(queue);
    -- Taken before the look: what is touched after it is noted anew.
    DELETE FROM commandbus.touched_queue t WHERE t.ctid = ANY (ARRAY(
        SELECT o.ctid FROM commandbus.touched_queue o
        WHERE o.queue_name = queue FOR UPDATE SKIP LOCKED));
    touched := FOUND;
    IF NOT touched AND NOT commandbus.take_turn('messages of ' || queue, every_seconds) THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT r FROM commandbus.restore_messages(keep_messages.domain, at_once) r;
    GET DIAGNOSTICS restored = ROW_COUNT;
    -- There are more, or somebody held one of them.
    IF restored >= at_once
       OR (touched AND EXISTS (SELECT FROM commandbus.restore_messages(keep_messages.domain, 1, true))) THEN
        INSERT INTO commandbus.touched_queue (queue_name) VALUES (queue);
    END IF;
END
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
