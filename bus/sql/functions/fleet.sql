-- The fleet: who is alive, what is limited over all instances, its queues in figures.

CREATE OR REPLACE FUNCTION commandbus.heartbeat(worker text, details jsonb DEFAULT '{}')
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.worker (worker, details)
    VALUES (heartbeat.worker, coalesce(heartbeat.details, '{}'))
    ON CONFLICT (worker) DO UPDATE
    SET details = excluded.details, heartbeat_at = statement_timestamp()
$$;

-- A clean end: nobody misses this instance.
CREATE OR REPLACE FUNCTION commandbus.retire(worker text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM commandbus.sleeper s WHERE s.worker = retire.worker;
    DELETE FROM commandbus.worker w WHERE w.worker = retire.worker
$$;

-- Forgets sleepers and holders of places whose time is over, and instances silent for a day. Every
-- instance calls it; what another one holds is skipped.
CREATE OR REPLACE FUNCTION commandbus.tidy_fleet() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    WITH sleepers AS (
        DELETE FROM commandbus.sleeper s WHERE s.ctid = ANY (ARRAY(
            SELECT o.ctid FROM commandbus.sleeper o WHERE o.expires_at <= statement_timestamp()
            FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), places AS (
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = NULL, lease_no = NULL, worker = NULL,
            timeout_seconds = NULL, held_until = NULL
        WHERE p.ctid = ANY (ARRAY(
            SELECT o.ctid FROM commandbus.fleet_place o WHERE o.held_until <= statement_timestamp()
            FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), workers AS (
        DELETE FROM commandbus.worker w WHERE w.ctid = ANY (ARRAY(
            SELECT o.ctid FROM commandbus.worker o
            WHERE o.heartbeat_at < statement_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM sleepers) + (SELECT count(*) FROM places)
         + (SELECT count(*) FROM workers)
    INTO removed;

    DELETE FROM commandbus.fleet_place p WHERE p.ctid = ANY (ARRAY(
        SELECT o.ctid FROM commandbus.fleet_place o
        WHERE o.place = 0 AND o.command_id IS NULL FOR UPDATE SKIP LOCKED));
    PERFORM commandbus.trim_places(d.domain) FROM commandbus.domain d
    WHERE d.places > d.fleet_limit;
    RETURN removed;
END
$$;

-- A number of a heartbeat, or NULL: what an instance writes of itself must not break what reads it.
CREATE OR REPLACE FUNCTION commandbus.figure(details jsonb, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE jsonb_typeof(details -> key) WHEN 'number'
           THEN greatest(least((details ->> key)::numeric, 1e15), -1e15)::bigint END
$$;

-- One row an instance and domain, as the heartbeats have it. Silent: none for a minute.
CREATE OR REPLACE VIEW commandbus.fleet AS
SELECT w.worker, w.heartbeat_at >= statement_timestamp() - interval '60 seconds' AS live, d.domain,
       coalesce(commandbus.figure(d.said, 'slots'), 0) AS slots,
       coalesce(commandbus.figure(d.said, 'prefetch'), 0) AS prefetch,
       coalesce(commandbus.figure(d.said, 'in_flight'), 0) AS in_flight,
       commandbus.figure(d.said, 'fleet_limit') AS fleet_limit
FROM commandbus.worker w
CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(w.details -> 'domains') WHEN 'object'
                              THEN w.details -> 'domains' ELSE '{}' END) d(domain, said);

-- For the metrics of every worker, each domain of the database: one that nobody serves has nobody
-- else to tell of it. Cheap whatever waits: leases are counted where there is a limit, the
-- troubleshooting queue up to 10,000.
CREATE OR REPLACE FUNCTION commandbus.domain_figures()
RETURNS TABLE (domain text, instances bigint, fleet_limit integer, live_leases bigint,
               in_tsq bigint, oldest_due_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT d.domain,
           (SELECT count(*) FROM commandbus.fleet f
            WHERE f.domain = d.domain AND f.live AND f.slots > 0),
           d.fleet_limit,
           CASE WHEN d.fleet_limit > 0 THEN commandbus.live_leases(d.domain, d.fleet_limit)
                ELSE 0 END,
           (SELECT count(*) FROM (SELECT FROM commandbus.command_metadata c
                                  WHERE c.domain = d.domain AND c.tsq_at IS NOT NULL
                                  LIMIT 10000) t),
           commandbus.oldest_due(d.domain || '__commands')
    FROM commandbus.domain d
    ORDER BY d.domain
$$;

-- Each domain: what its live instances offer and say, what the database says, what waits, and what
-- is wrong with that. slots_each is NULL when instances differ.
CREATE OR REPLACE FUNCTION commandbus.fleet_domains()
RETURNS TABLE (domain text, instances bigint, slots_each bigint, slots bigint, prefetch bigint,
               in_flight bigint, live_leases bigint, fleet_limit integer, depth bigint,
               visible bigint, oldest_age_seconds double precision,
               waiting_seconds double precision, total_sent bigint, problems text[])
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.domain, said.instances, said.slots_each, said.slots, said.prefetch, said.in_flight,
           held.leases, d.fleet_limit, s.depth, s.visible, s.oldest_age_seconds, s.waiting_seconds,
           s.total_sent,
           array_remove(ARRAY[
               CASE WHEN s.depth IS NULL THEN 'QUEUE_MISSING' END,
               CASE WHEN d.fleet_limit > 0 AND held.leases > d.fleet_limit
                    THEN 'LEASES_OVER_LIMIT' END,
               CASE WHEN held.leases > said.slots + said.prefetch THEN 'LEASES_OVER_SLOTS' END,
               CASE WHEN said.instances = 0 AND s.visible > 0 THEN 'NOBODY_SERVES' END], NULL)
    FROM commandbus.domain d
    CROSS JOIN LATERAL (
        SELECT count(*) AS instances,
               CASE WHEN min(f.slots) = max(f.slots) THEN min(f.slots) END AS slots_each,
               coalesce(sum(f.slots), 0)::bigint AS slots,
               coalesce(sum(f.prefetch), 0)::bigint AS prefetch,
               coalesce(sum(f.in_flight), 0)::bigint AS in_flight
        FROM commandbus.fleet f WHERE f.domain = d.domain AND f.live
    ) said
    CROSS JOIN LATERAL commandbus.live_leases(d.domain, d.fleet_limit) held(leases)
    CROSS JOIN LATERAL commandbus.queue_sample(d.domain || '__commands') s
    ORDER BY d.domain
$$;
