-- The limit of a domain over the whole fleet: places, who holds them, and changing it.

-- The places that are taken.
CREATE OR REPLACE VIEW commandbus.fleet_lease AS
SELECT p.command_id, p.lease_no, p.held_until, p.timeout_seconds, p.domain, p.worker
FROM commandbus.fleet_place p WHERE p.command_id IS NOT NULL;

-- The domain's places that have no row yet: its limit was written by hand.
CREATE OR REPLACE FUNCTION commandbus.lay_places(domain text, fleet_limit integer) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.fleet_place (domain, place)
    SELECT lay_places.domain, s.place FROM generate_series(1, lay_places.fleet_limit) s(place)
    WHERE NOT EXISTS (SELECT FROM commandbus.fleet_place p
                      WHERE p.domain = lay_places.domain AND p.place = s.place)
$$;

-- Up to `quantity` free places of a limited domain, locked for the caller's transaction, which
-- holds the domain's row too: nobody else claims between this look and the claim.
CREATE OR REPLACE FUNCTION commandbus.free_places(domain text, quantity integer) RETURNS tid[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most    integer;
    highest integer;
    taken   integer;
    free    record;
BEGIN
    SELECT d.fleet_limit, d.places INTO most, highest
    FROM commandbus.domain d WHERE d.domain = free_places.domain FOR NO KEY UPDATE;
    IF highest > most THEN
        -- More was in progress than the limit that was set: all of it counts.
        SELECT count(*) INTO taken
        FROM generate_series(1, highest) s(place) CROSS JOIN LATERAL (
            SELECT p.held_until FROM commandbus.fleet_place p
            WHERE p.domain = free_places.domain AND p.place = s.place
            ORDER BY p.turn DESC LIMIT 1
        ) p WHERE p.held_until > clock_timestamp();
        quantity := least(quantity, most - taken);
        IF quantity < 1 THEN
            RETURN NULL;
        END IF;
    END IF;

    LOOP
        SELECT array_agg(f.spot) AS spots, bool_or(f.spot IS NULL) AS missing,
               bool_or(f.held_until IS NOT NULL) AS over
        INTO free
        FROM (SELECT p.spot, p.held_until
              FROM generate_series(1, most) s(place) LEFT JOIN LATERAL (
                  SELECT p.ctid AS spot, p.held_until FROM commandbus.fleet_place p
                  WHERE p.domain = free_places.domain AND p.place = s.place
                  ORDER BY p.turn DESC LIMIT 1
              ) p ON true
              WHERE p.held_until IS NULL OR p.held_until <= clock_timestamp()
              LIMIT quantity) f;
        EXIT WHEN free.missing IS NOT TRUE;
        PERFORM commandbus.lay_places(free_places.domain, most);
    END LOOP;
    -- What was given back nobody else touches. A holder whose time is over may come back just now:
    -- then it is its own again, and not free.
    IF free.over THEN
        free.spots := ARRAY(
            SELECT p.ctid FROM commandbus.fleet_place p
            WHERE p.ctid = ANY (free.spots)
              AND (p.held_until IS NULL OR p.held_until <= clock_timestamp())
            FOR UPDATE SKIP LOCKED);
    END IF;
    RETURN free.spots;
END
$$;

-- A handler that may still run though its command is nobody's any more. Under a limit it has its
-- place; without one it is remembered, in case that a limit is set.
CREATE OR REPLACE FUNCTION commandbus.remember_silent(domain text, command_id uuid, lease_no bigint,
    worker text, timeout_seconds integer, lease_until timestamptz)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.fleet_place (domain, place, command_id, lease_no, worker,
                                        timeout_seconds, held_until)
    SELECT d.domain, 0, remember_silent.command_id, remember_silent.lease_no,
           remember_silent.worker, remember_silent.timeout_seconds,
           remember_silent.lease_until + make_interval(secs => remember_silent.timeout_seconds)
    FROM commandbus.domain d
    WHERE d.domain = remember_silent.domain AND d.fleet_limit = 0
      AND remember_silent.lease_until
          + make_interval(secs => remember_silent.timeout_seconds) > clock_timestamp()
$$;

-- Takes away places above the limit once nobody holds one: a claim looks at all that there are.
CREATE OR REPLACE FUNCTION commandbus.trim_places(domain text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most integer;
BEGIN
    SELECT d.fleet_limit INTO most FROM commandbus.domain d
    WHERE d.domain = trim_places.domain AND d.places > d.fleet_limit FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND OR EXISTS (SELECT FROM commandbus.fleet_place p
                            WHERE p.domain = trim_places.domain AND p.place > most
                              AND p.command_id IS NOT NULL) THEN
        RETURN;
    END IF;
    DELETE FROM commandbus.fleet_place p WHERE p.domain = trim_places.domain AND p.place > most;
    UPDATE commandbus.domain d SET places = most WHERE d.domain = trim_places.domain;
END
$$;

-- So many places of a limited domain came free: an instance that sleeps because there was none need
-- not sleep out its poll interval. Nobody does when there were others: whoever looked found those.
-- What is due is not looked for: while somebody holds a snapshot that walks over all that was.
CREATE OR REPLACE FUNCTION commandbus.wake_for_capacity(domain text, fleet_limit integer,
    came_free integer)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_sort = off SET enable_seqscan = off -- see wake
AS $$
DECLARE
    sleeper text;
BEGIN
    sleeper := (SELECT CASE WHEN came_free > 10 THEN '' ELSE left(s.worker, 1000) END
                FROM commandbus.sleeper s
                WHERE s.queue_name = wake_for_capacity.domain || '__commands'
                  AND s.expires_at > statement_timestamp()
                ORDER BY s.expires_at DESC LIMIT 1);
    IF sleeper IS NOT NULL
       AND came_free >= (SELECT count(*) FROM (
               SELECT FROM generate_series(1, wake_for_capacity.fleet_limit) s(place)
               CROSS JOIN LATERAL (
                   SELECT p.held_until FROM commandbus.fleet_place p
                   WHERE p.domain = wake_for_capacity.domain AND p.place = s.place
                   ORDER BY p.turn DESC LIMIT 1
               ) p
               WHERE p.held_until IS NULL OR p.held_until <= clock_timestamp()
               LIMIT came_free + 1) f) THEN
        PERFORM pg_notify('commandbus_' || wake_for_capacity.domain || '__commands', sleeper);
    END IF;
END
$$;

-- The commands of a domain that are in progress; for whoever keeps claims from coming. By way of
-- the queue, where each has a message that was read or is not due. Not while messages are missing
-- that somebody took out by hand: then the whole table is looked through, which takes seconds for a
-- million commands. (An index on what is in progress would cost every claim and every settle its
-- HOT update.)
--
-- since: only those claimed by that transaction or later ones, and perhaps others. A claim writes
-- the message anew, so one that was last written before is not asked for its command: with 100,000
-- delayed ones 40 ms instead of 560. (A message so old that its transaction number seems to be to
-- come is asked for.)
CREATE OR REPLACE FUNCTION commandbus.commands_in_progress(domain text, since xid DEFAULT NULL)
RETURNS uuid[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    queue   text := commands_in_progress.domain || '__commands';
    ids     uuid[];
    touched boolean;
BEGIN
    -- One statement: restore_messages() gives a message back and forgets the touch in one
    -- transaction.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue)), 'SELECT') THEN
        EXECUTE format('SELECT ARRAY(SELECT c.command_id FROM pgmq.%I q CROSS JOIN LATERAL ('
                       '        SELECT c.command_id FROM commandbus.command_metadata c '
                       '        WHERE c.msg_id = q.msg_id AND c.domain = $1 '
                       'AND c.status = ''IN_PROGRESS'' LIMIT 1) c '
                       '    WHERE (q.read_ct > 0 OR q.vt > statement_timestamp()) '
                       'AND ($3 IS NULL OR age(q.xmin) <= age($3)) '
                       '    ORDER BY q.msg_id), '
                       'EXISTS (SELECT FROM commandbus.touched_queue t WHERE t.queue_name = $2)',
                       'q_' || queue)
        INTO ids, touched USING commands_in_progress.domain, queue, since;
    END IF;
    IF touched IS NOT FALSE THEN
        ids := ARRAY(SELECT c.command_id FROM commandbus.command_metadata c
                     WHERE c.status = 'IN_PROGRESS' AND c.domain = commands_in_progress.domain
                     ORDER BY c.msg_id);
    END IF;
    RETURN ids;
END
$$;

-- Lays the places of a domain anew, for another limit: one for each handler that runs or may run,
-- the rest free. Nobody claims meanwhile, so nothing is in progress but what of these commands
-- still is. Under their locks: a settle or an extend that comes later sees the limit and the new
-- places, one that came before has ended when we look.
CREATE OR REPLACE FUNCTION commandbus.relay_places(domain text, fleet_limit integer,
    command_ids uuid[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    highest integer;
BEGIN
    PERFORM FROM unnest(command_ids) i(command_id) CROSS JOIN LATERAL (
        SELECT FROM commandbus.command_metadata c
        WHERE c.command_id = i.command_id AND c.domain = relay_places.domain
          AND c.status = 'IN_PROGRESS'
        FOR SHARE OF c
    ) c;

    -- Whoever changes a place just now is waited for, so that `before` is what it left. Holders
    -- whose command is in progress get theirs from the command; those past their timeout and the
    -- silent keep what they have.
    WITH before AS (
        DELETE FROM commandbus.fleet_place p WHERE p.domain = relay_places.domain
        RETURNING p.*
    ), running AS MATERIALIZED (
        SELECT c.command_id, c.lease_no, c.lease_owner AS worker, c.timeout_seconds,
               c.lease_until + make_interval(secs => c.timeout_seconds) AS held_until
        FROM unnest(command_ids) i(command_id) CROSS JOIN LATERAL (
            SELECT c.* FROM commandbus.command_metadata c
            WHERE c.command_id = i.command_id AND c.domain = relay_places.domain
              AND c.status = 'IN_PROGRESS'
        ) c
    ), holder AS (
        SELECT r.* FROM running r WHERE relay_places.fleet_limit > 0
        UNION ALL
        SELECT b.command_id, b.lease_no, b.worker, b.timeout_seconds, b.held_until FROM before b
        WHERE b.held_until > clock_timestamp()
          AND NOT EXISTS (SELECT FROM running r
                          WHERE r.command_id = b.command_id AND r.lease_no = b.lease_no)
    ), numbered AS (
        SELECT row_number() OVER () AS place, h.* FROM holder h
    )
    INSERT INTO commandbus.fleet_place (domain, place, command_id, lease_no, worker,
                                        timeout_seconds, held_until)
    SELECT relay_places.domain,
           CASE WHEN relay_places.fleet_limit > 0 THEN coalesce(n.place, s.place) ELSE 0 END,
           n.command_id, n.lease_no, n.worker, n.timeout_seconds, n.held_until
    FROM numbered n
    FULL JOIN generate_series(1, relay_places.fleet_limit) s(place) ON s.place = n.place;
    GET DIAGNOSTICS highest = ROW_COUNT;
    UPDATE commandbus.domain d
    SET fleet_limit = relay_places.fleet_limit,
        places = CASE WHEN relay_places.fleet_limit > 0 THEN highest ELSE 0 END
    WHERE d.domain = relay_places.domain;
END
$$;

-- The most leases that a domain may have over the whole fleet, 0 for no limit. True when that
-- changed something. What is in progress counts at once; above the limit nothing is taken back, but
-- nothing more is claimed either.
CREATE OR REPLACE FUNCTION commandbus.set_fleet_limit(domain text, fleet_limit integer)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '3s' AS $$
DECLARE
    before  integer := (commandbus.known_domain(set_fleet_limit.domain)).fleet_limit;
    since   xid;
    running uuid[];
    until   timestamptz;
BEGIN
    IF (fleet_limit >= 0) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  format('a fleet limit is 0 (none) or more, not %s', fleet_limit),
                                  'Correct the call; nothing was changed.');
    END IF;
    -- Nearly always: every instance says the same at its start.
    IF before = fleet_limit THEN
        RETURN false;
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('set_fleet_limit');
    END IF;

    -- The long walk while everybody claims. What the transactions that it does not see have claimed
    -- is added under the lock: none of them is older than the oldest that is open now.
    since := pg_snapshot_xmin(pg_current_snapshot())::xid;
    running := commandbus.commands_in_progress(set_fleet_limit.domain);
    BEGIN
        PERFORM pg_advisory_xact_lock(
            hashtextextended('commandbus.claims.' || set_fleet_limit.domain, 0));
        before := (commandbus.known_domain(set_fleet_limit.domain)).fleet_limit;
        running := running || commandbus.commands_in_progress(set_fleet_limit.domain, since);
        running := ARRAY(
            SELECT c.command_id FROM (SELECT DISTINCT unnest(running)) i(command_id)
            CROSS JOIN LATERAL (
                SELECT c.command_id, c.msg_id FROM commandbus.command_metadata c
                WHERE c.command_id = i.command_id AND c.domain = set_fleet_limit.domain LIMIT 1
            ) c ORDER BY c.msg_id);
        until := clock_timestamp() + interval '3 seconds';
        WHILE before <> fleet_limit LOOP
            -- Who waits for a row here holds others that an extend or a settle may meet. SKIP
            -- LOCKED does wait when the row was updated a moment ago: so let go of all of them
            -- soon, long before that is a deadlock.
            BEGIN
                PERFORM set_config('lock_timeout', '100ms', true);
                PERFORM commandbus.relay_places(set_fleet_limit.domain, set_fleet_limit.fleet_limit,
                                                running);
                EXIT;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                IF clock_timestamp() > until THEN
                    RAISE lock_not_available;
                END IF;
            END;
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        -- The same class as any lock that was not to be had: the call may succeed a moment later.
        RAISE EXCEPTION 'the fleet limit of ''%'' was not set: a claim or a settle of that domain '
                        'is open for more than 3 s', set_fleet_limit.domain
        USING ERRCODE = 'lock_not_available',
              HINT = 'Call again; commandbus doctor shows long transactions and who holds them.';
    END;
    -- There may be room for everybody now.
    PERFORM commandbus.wake(set_fleet_limit.domain || '__commands', 1000);
    RETURN before <> set_fleet_limit.fleet_limit;
END
$$;

-- Leases as the database says: places of a limited domain, silent holders' too; else commands whose
-- lease runs.
CREATE OR REPLACE FUNCTION commandbus.live_leases(domain text, fleet_limit integer) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
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
    IF has_table_privilege(to_regclass(format('pgmq.%I',
                                              'q_' || live_leases.domain || '__commands')),
                           'SELECT') THEN
        EXECUTE format('SELECT count(*) FROM pgmq.%I q CROSS JOIN LATERAL ('
                       '    SELECT FROM commandbus.command_metadata c '
                       'WHERE c.msg_id = q.msg_id AND c.domain = $1 '
                       '        AND c.status = ''IN_PROGRESS'' '
                       'AND c.lease_until > statement_timestamp() LIMIT 1) c '
                       'WHERE q.vt > statement_timestamp() AND q.read_ct > 0',
                       'q_' || live_leases.domain || '__commands')
        INTO leases USING live_leases.domain;
    END IF;
    RETURN leases;
END
$$;
