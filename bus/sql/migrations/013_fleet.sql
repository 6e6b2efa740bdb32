-- The fleet: who is alive, what is limited over all instances, its queues in figures.

CREATE FUNCTION commandbus.heartbeat(worker text, details jsonb DEFAULT '{}') RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.worker (worker, details) VALUES (heartbeat.worker, coalesce(heartbeat.details, '{}'))
    ON CONFLICT (worker) DO UPDATE SET details = excluded.details, heartbeat_at = statement_timestamp()
$$;

-- A clean end: nobody misses this instance.
CREATE FUNCTION commandbus.retire(worker text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM commandbus.sleeper s WHERE s.worker = retire.worker;
    DELETE FROM commandbus.worker w WHERE w.worker = retire.worker
$$;

-- Takes away places above the limit once nobody holds one: a claim looks at all that there are.
CREATE FUNCTION commandbus.trim_places(domain text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most integer;
BEGIN
    SELECT d.fleet_limit INTO most FROM commandbus.domain d
    WHERE d.domain = trim_places.domain AND d.places > d.fleet_limit FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND OR EXISTS (SELECT FROM commandbus.fleet_place p
                            WHERE p.domain = trim_places.domain AND p.place > most AND p.command_id IS NOT NULL) THEN
        RETURN;
    END IF;
    DELETE FROM commandbus.fleet_place p WHERE p.domain = trim_places.domain AND p.place > most;
    UPDATE commandbus.domain d SET places = most WHERE d.domain = trim_places.domain;
END
$$;

-- Forgets sleepers and holders of places whose time is over, and instances silent for a day. Every
-- instance calls it; what another one holds is skipped.
CREATE FUNCTION commandbus.tidy_fleet() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    WITH sleepers AS (
        DELETE FROM commandbus.sleeper s WHERE s.ctid = ANY (ARRAY(
            SELECT o.ctid FROM commandbus.sleeper o WHERE o.expires_at <= statement_timestamp() FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), places AS (
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = NULL, lease_no = NULL, worker = NULL, timeout_seconds = NULL, held_until = NULL
        WHERE p.ctid = ANY (ARRAY(
            SELECT o.ctid FROM commandbus.fleet_place o WHERE o.held_until <= statement_timestamp() FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), workers AS (
        DELETE FROM commandbus.worker w WHERE w.ctid = ANY (ARRAY(
            SELECT o.ctid FROM commandbus.worker o
            WHERE o.heartbeat_at < statement_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM sleepers) + (SELECT count(*) FROM places) + (SELECT count(*) FROM workers) INTO removed;

    DELETE FROM commandbus.fleet_place p WHERE p.ctid = ANY (ARRAY(
        SELECT o.ctid FROM commandbus.fleet_place o
        WHERE o.place = 0 AND o.command_id IS NULL FOR UPDATE SKIP LOCKED));
    PERFORM commandbus.trim_places(d.domain) FROM commandbus.domain d WHERE d.places > d.fleet_limit;
    RETURN removed;
END
$$;

-- So many places of a limited domain came free: an instance that sleeps because there was none need not
-- sleep out its poll interval. Nobody does when there were others: whoever looked found those. What is
-- due is not looked for: while somebody holds a snapshot that walks over all that was.
CREATE FUNCTION commandbus.wake_for_capacity(domain text, fleet_limit integer, came_free integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_sort = off SET enable_seqscan = off AS $$ -- see wake_sleepers
BEGIN
    IF (SELECT s.expires_at FROM commandbus.sleeper s
        WHERE s.queue_name = wake_for_capacity.domain || '__commands' AND s.expires_at > statement_timestamp()
        ORDER BY s.expires_at DESC LIMIT 1) IS NOT NULL
       AND came_free >= (SELECT count(*) FROM (
               SELECT FROM generate_series(1, wake_for_capacity.fleet_limit) s(place) CROSS JOIN LATERAL (
                   SELECT p.held_until FROM commandbus.fleet_place p
                   WHERE p.domain = wake_for_capacity.domain AND p.place = s.place ORDER BY p.turn DESC LIMIT 1
               ) p
               WHERE p.held_until IS NULL OR p.held_until <= clock_timestamp() LIMIT came_free + 1) f) THEN
        PERFORM pg_notify('commandbus_' || wake_for_capacity.domain || '__commands', '');
    END IF;
END
$$;

-- The commands of a domain that are in progress; for whoever keeps claims from coming. By way of the queue, where each has
-- a message that was read or is not due. Not while messages are missing that somebody took out by hand: then the whole
-- table is looked through, which takes seconds for a million commands. (An index on what is in progress would cost every
-- claim and every settle its HOT update.)
--
-- since: only those claimed by that transaction or later ones, and perhaps others. A claim writes the message anew, so one
-- that was last written before is not asked for its command: with 100,000 delayed ones 40 ms instead of 560.
-- (A message so old that its transaction number seems to be to come is asked for.)
CREATE FUNCTION commandbus.commands_in_progress(domain text, since xid DEFAULT NULL) RETURNS uuid[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    queue   text := commands_in_progress.domain || '__commands';
    ids     uuid[];
    touched boolean;
BEGIN
    -- One statement: restore_messages() gives a message back and forgets the touch in one transaction.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue)), 'SELECT') THEN
        EXECUTE format('SELECT ARRAY(SELECT c.command_id FROM pgmq.%I q CROSS JOIN LATERAL ('
                       '        SELECT c.command_id FROM commandbus.command_metadata c '
                       '        WHERE c.msg_id = q.msg_id AND c.domain = $1 AND c.status = ''IN_PROGRESS'' LIMIT 1) c '
                       '    WHERE (q.read_ct > 0 OR q.vt > statement_timestamp()) AND ($3 IS NULL OR age(q.xmin) <= age($3)) '
                       '    ORDER BY q.msg_id), '
                       'EXISTS (SELECT FROM commandbus.touched_queue t WHERE t.queue_name = $2)', 'q_' || queue)
        INTO ids, touched USING commands_in_progress.domain, queue, since;
    END IF;
    IF touched IS NOT FALSE THEN
        ids := ARRAY(SELECT c.command_id FROM commandbus.command_metadata c
                     WHERE c.status = 'IN_PROGRESS' AND c.domain = commands_in_progress.domain ORDER BY c.msg_id);
    END IF;
    RETURN ids;
END
$$;

-- Lays the places of a domain anew, for another limit: one for each handler that runs or may run, the
-- rest free. Nobody claims meanwhile, so nothing is in progress but what of these commands still is. Under
-- their locks: a settle or an extend that comes later sees the limit and the new places, one that came
-- before has ended when we look.
CREATE FUNCTION commandbus.relay_places(domain text, fleet_limit integer, command_ids uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    highest integer;
BEGIN
    PERFORM FROM unnest(command_ids) i(command_id) CROSS JOIN LATERAL (
        SELECT FROM commandbus.command_metadata c
        WHERE c.command_id = i.command_id AND c.domain = relay_places.domain AND c.status = 'IN_PROGRESS' FOR SHARE OF c
    ) c;

    -- Whoever changes a place just now is waited for, so that `before` is what it left. Holders whose command
    -- is in progress get theirs from the command; those past their timeout and the silent keep what they have.
    WITH before AS (
        DELETE FROM commandbus.fleet_place p WHERE p.domain = relay_places.domain
        RETURNING p.*
    ), running AS MATERIALIZED (
        SELECT c.command_id, c.lease_no, c.lease_owner AS worker, c.timeout_seconds,
               c.lease_until + make_interval(secs => c.timeout_seconds) AS held_until
        FROM unnest(command_ids) i(command_id) CROSS JOIN LATERAL (
            SELECT c.* FROM commandbus.command_metadata c
            WHERE c.command_id = i.command_id AND c.domain = relay_places.domain AND c.status = 'IN_PROGRESS'
        ) c
    ), holder AS (
        SELECT r.* FROM running r WHERE relay_places.fleet_limit > 0
        UNION ALL
        SELECT b.command_id, b.lease_no, b.worker, b.timeout_seconds, b.held_until FROM before b
        WHERE b.held_until > clock_timestamp()
          AND NOT EXISTS (SELECT FROM running r WHERE r.command_id = b.command_id AND r.lease_no = b.lease_no)
    ), numbered AS (
        SELECT row_number() OVER () AS place, h.* FROM holder h
    )
    INSERT INTO commandbus.fleet_place (domain, place, command_id, lease_no, worker, timeout_seconds, held_until)
    SELECT relay_places.domain, CASE WHEN relay_places.fleet_limit > 0 THEN coalesce(n.place, s.place) ELSE 0 END,
           n.command_id, n.lease_no, n.worker, n.timeout_seconds, n.held_until
    FROM numbered n FULL JOIN generate_series(1, relay_places.fleet_limit) s(place) ON s.place = n.place;
    GET DIAGNOSTICS highest = ROW_COUNT;
    UPDATE commandbus.domain d
    SET fleet_limit = relay_places.fleet_limit, places = CASE WHEN relay_places.fleet_limit > 0 THEN highest ELSE 0 END
    WHERE d.domain = relay_places.domain;
END
$$;

-- The most leases that a domain may have over the whole fleet, 0 for no limit. True when that changed
-- something. What is in progress counts at once; above the limit nothing is taken back, but nothing
-- more is claimed either.
CREATE FUNCTION commandbus.set_fleet_limit(domain text, fleet_limit integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '3s' AS $$
DECLARE
    before  integer := (commandbus.known_domain(set_fleet_limit.domain)).fleet_limit;
    since   xid;
    running uuid[];
    until   timestamptz;
BEGIN
    IF (fleet_limit >= 0) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('a fleet limit is 0 (none) or more, not %s', fleet_limit),
                                  'Correct the call; nothing was changed.');
    END IF;
    -- Nearly always: every instance says the same at its start.
    IF before = fleet_limit THEN
        RETURN false;
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('set_fleet_limit');
    END IF;

    -- The long walk while everybody claims. What the transactions that it does not see have claimed is added under the
    -- lock: none of them is older than the oldest that is open now.
    since := pg_snapshot_xmin(pg_current_snapshot())::xid;
    running := commandbus.commands_in_progress(set_fleet_limit.domain);
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('commandbus.claims.' || set_fleet_limit.domain, 0));
        before := (commandbus.known_domain(set_fleet_limit.domain)).fleet_limit;
        running := running || commandbus.commands_in_progress(set_fleet_limit.domain, since);
        running := ARRAY(
            SELECT c.command_id FROM (SELECT DISTINCT unnest(running)) i(command_id) CROSS JOIN LATERAL (
                SELECT c.command_id, c.msg_id FROM commandbus.command_metadata c
                WHERE c.command_id = i.command_id AND c.domain = set_fleet_limit.domain LIMIT 1
            ) c ORDER BY c.msg_id);
        until := clock_timestamp() + interval '3 seconds';
        WHILE before <> fleet_limit LOOP
            -- Who waits for a row here holds others that an extend or a settle may meet. SKIP LOCKED does wait when the
            -- row was updated a moment ago: so let go of all of them soon, long before that is a deadlock.
            BEGIN
                PERFORM set_config('lock_timeout', '100ms', true);
                PERFORM commandbus.relay_places(set_fleet_limit.domain, set_fleet_limit.fleet_limit, running);
                EXIT;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                IF clock_timestamp() > until THEN
                    RAISE lock_not_available;
                END IF;
            END;
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        -- The same class as any lock that was not to be had: the call may succeed a moment later.
        RAISE EXCEPTION 'the fleet limit of ''%'' was not set: a claim or a settle of that domain is open for more than 3 s',
                        set_fleet_limit.domain
        USING ERRCODE = 'lock_not_available',
              HINT = 'Call again; commandbus doctor shows long transactions and who holds them.';
    END;
    PERFORM commandbus.wake_sleepers(set_fleet_limit.domain || '__commands');
    RETURN before <> set_fleet_limit.fleet_limit;
END
$$;

-- One queue, cheap whatever its depth: counted up to 10,000, beyond that as the statistics have it.
-- waiting_seconds is how long the first due message has been due. NULLs when the queue is gone.
CREATE FUNCTION commandbus.queue_sample(queue_name text, OUT depth bigint, OUT visible bigint,
    OUT oldest_age_seconds double precision, OUT waiting_seconds double precision, OUT total_sent bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    enough    constant bigint := 10000;
    invisible bigint;
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT') IS NOT TRUE THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT (SELECT count(*) FROM (SELECT FROM pgmq.%1$I LIMIT $1 + 1) a), '
                   '(SELECT count(*) FROM (SELECT FROM pgmq.%1$I WHERE vt > statement_timestamp() LIMIT $1 + 1) i), '
                   '(SELECT extract(epoch FROM statement_timestamp() - enqueued_at) FROM pgmq.%1$I '
                   '     WHERE isfinite(enqueued_at) ORDER BY msg_id LIMIT 1), '
                   '(SELECT extract(epoch FROM statement_timestamp() - vt) FROM pgmq.%1$I '
                   '     WHERE vt <= statement_timestamp() AND vt > ''-infinity'' ORDER BY vt LIMIT 1), '
                   '(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pgmq.%2$I)',
                   'q_' || queue_name, 'q_' || queue_name || '_msg_id_seq')
    INTO depth, invisible, oldest_age_seconds, waiting_seconds, total_sent USING enough;
    IF depth > enough THEN
        depth := greatest(pg_stat_get_live_tuples(to_regclass(format('pgmq.%I', 'q_' || queue_name))), enough);
    END IF;
    -- Two reads of a queue that moves may disagree by a few.
    visible := greatest(depth - invisible, 0);
END
$$;

-- For the metrics of a worker: depth -1 for a queue that is gone.
CREATE FUNCTION commandbus.queue_samples(domains text[])
RETURNS TABLE (domain text, depth bigint, oldest_due_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.domain, coalesce(s.depth, -1), coalesce(s.waiting_seconds, 0)
    FROM unnest(domains) WITH ORDINALITY d(domain, ord) CROSS JOIN LATERAL commandbus.queue_sample(d.domain || '__commands') s
    ORDER BY d.ord
$$;

-- A number of a heartbeat, or NULL: what an instance writes of itself must not break what reads it.
CREATE FUNCTION commandbus.figure(details jsonb, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE jsonb_typeof(details -> key) WHEN 'number'
           THEN greatest(least((details ->> key)::numeric, 1e15), -1e15)::bigint END
$$;

-- One row an instance and domain, as the heartbeats have it. Silent: none for a minute.
CREATE VIEW commandbus.fleet AS
SELECT w.worker, w.heartbeat_at >= statement_timestamp() - interval '60 seconds' AS live, d.domain,
       coalesce(commandbus.figure(d.said, 'slots'), 0) AS slots,
       coalesce(commandbus.figure(d.said, 'prefetch'), 0) AS prefetch,
       coalesce(commandbus.figure(d.said, 'in_flight'), 0) AS in_flight,
       commandbus.figure(d.said, 'fleet_limit') AS fleet_limit
FROM commandbus.worker w
CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(w.details -> 'domains') WHEN 'object' THEN w.details -> 'domains'
                              ELSE '{}' END) d(domain, said);

-- Leases as the database says: places of a limited domain, silent holders' too; else commands whose
-- lease runs.
CREATE FUNCTION commandbus.live_leases(domain text, fleet_limit integer) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    leases bigint := 0;
BEGIN
    IF fleet_limit > 0 THEN
        RETURN (SELECT count(*)
                FROM commandbus.domain d
                CROSS JOIN LATERAL generate_series(1, greatest(d.places, d.fleet_limit)) s(place)
                CROSS JOIN LATERAL (
                    SELECT p.held_until FROM commandbus.fleet_place p
                    WHERE p.domain = d.domain AND p.place = s.place ORDER BY p.turn DESC LIMIT 1
                ) p
                WHERE d.domain = live_leases.domain AND p.held_until > statement_timestamp());
    END IF;
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || live_leases.domain || '__commands')), 'SELECT') THEN
        EXECUTE format('SELECT count(*) FROM pgmq.%I q CROSS JOIN LATERAL ('
                       '    SELECT FROM commandbus.command_metadata c WHERE c.msg_id = q.msg_id AND c.domain = $1 '
                       '        AND c.status = ''IN_PROGRESS'' AND c.lease_until > statement_timestamp() LIMIT 1) c '
                       'WHERE q.vt > statement_timestamp() AND q.read_ct > 0', 'q_' || live_leases.domain || '__commands')
        INTO leases USING live_leases.domain;
    END IF;
    RETURN leases;
END
$$;

-- How long the first due message of a queue has been due, one look at an index; 0 for none, or no queue.
CREATE FUNCTION commandbus.oldest_due(queue_name text) RETURNS double precision
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    seconds double precision;
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT') THEN
        EXECUTE format('SELECT extract(epoch FROM statement_timestamp() - vt) FROM pgmq.%I '
                       'WHERE vt <= statement_timestamp() AND vt > ''-infinity'' ORDER BY vt LIMIT 1', 'q_' || queue_name)
        INTO seconds;
    END IF;
    RETURN coalesce(seconds, 0);
END
$$;

-- For the metrics of every worker, each domain of the database: one that nobody serves has nobody else to tell of
-- it. Cheap whatever waits: leases are counted where there is a limit, the troubleshooting queue up to 10,000.
CREATE FUNCTION commandbus.domain_figures()
RETURNS TABLE (domain text, instances bigint, fleet_limit integer, live_leases bigint, in_tsq bigint,
               oldest_due_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT d.domain, (SELECT count(*) FROM commandbus.fleet f WHERE f.domain = d.domain AND f.live AND f.slots > 0),
           d.fleet_limit, CASE WHEN d.fleet_limit > 0 THEN commandbus.live_leases(d.domain, d.fleet_limit) ELSE 0 END,
           (SELECT count(*) FROM (SELECT FROM commandbus.command_metadata c
                                  WHERE c.domain = d.domain AND c.tsq_at IS NOT NULL LIMIT 10000) t),
           commandbus.oldest_due(d.domain || '__commands')
    FROM commandbus.domain d
    ORDER BY d.domain
$$;

-- Each domain: what its live instances offer and say, what the database says, what waits, and what is
-- wrong with that. slots_each is NULL when instances differ.
CREATE FUNCTION commandbus.fleet_domains()
RETURNS TABLE (domain text, instances bigint, slots_each bigint, slots bigint, prefetch bigint, in_flight bigint,
               live_leases bigint, fleet_limit integer, depth bigint, visible bigint, oldest_age_seconds double precision,
               waiting_seconds double precision, total_sent bigint, problems text[])
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.domain, said.instances, said.slots_each, said.slots, said.prefetch, said.in_flight, held.leases, d.fleet_limit,
           s.depth, s.visible, s.oldest_age_seconds, s.waiting_seconds, s.total_sent,
           array_remove(ARRAY[
               CASE WHEN s.depth IS NULL THEN 'QUEUE_MISSING' END,
               CASE WHEN d.fleet_limit > 0 AND held.leases > d.fleet_limit THEN 'LEASES_OVER_LIMIT' END,
               CASE WHEN held.leases > said.slots + said.prefetch THEN 'LEASES_OVER_SLOTS' END,
               CASE WHEN said.instances = 0 AND s.visible > 0 THEN 'NOBODY_SERVES' END], NULL)
    FROM commandbus.domain d
    CROSS JOIN LATERAL (
        SELECT count(*) AS instances, CASE WHEN min(f.slots) = max(f.slots) THEN min(f.slots) END AS slots_each,
               coalesce(sum(f.slots), 0)::bigint AS slots, coalesce(sum(f.prefetch), 0)::bigint AS prefetch,
               coalesce(sum(f.in_flight), 0)::bigint AS in_flight
        FROM commandbus.fleet f WHERE f.domain = d.domain AND f.live
    ) said
    CROSS JOIN LATERAL commandbus.live_leases(d.domain, d.fleet_limit) held(leases)
    CROSS JOIN LATERAL commandbus.queue_sample(d.domain || '__commands') s
    ORDER BY d.domain
$$;
