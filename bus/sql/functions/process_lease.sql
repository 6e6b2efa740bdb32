-- Leases of processes: renewing, giving back, and when the next one is due.

-- Seconds until the next of these can be claimed: 0 when one is due, NULL when none has a timer. A
-- due one that is leased counts from the end of its lease, one that a newer version wrote not at
-- all, or who asks would come again at once and for ever.
CREATE OR REPLACE FUNCTION commandbus.next_process_wake(process_types text[],
    versions integer[] DEFAULT NULL, vt_seconds double precision DEFAULT 30)
RETURNS double precision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz := commandbus.now();
    reclaims timestamptz := greatest(statement_timestamp(), commandbus.reclaims_from(vt_seconds));
BEGIN
    RETURN (
        SELECT date_part('epoch', greatest(interval '0', least(min(free.wait), min(lease.wait),
                                                               min(expired.wait))))
        FROM unnest(process_types, versions) t(process_type, version)
        LEFT JOIN LATERAL (
            SELECT CASE WHEN p.wake_at > moment THEN p.wake_at - moment
                        ELSE interval '0' END AS wait
            FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at < 'infinity'
              AND p.lease_owner IS NULL AND (t.version IS NULL OR p.version <= t.version)
            ORDER BY p.wake_at LIMIT 1
        ) free ON true
        LEFT JOIN LATERAL (
            SELECT p.wake_at - moment AS wait FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at > moment AND p.wake_at < 'infinity'
              AND p.lease_owner IS NOT NULL AND (t.version IS NULL OR p.version <= t.version)
            ORDER BY p.wake_at LIMIT 1
        ) lease ON true
        -- There are as many as run, at most.
        LEFT JOIN LATERAL (
            SELECT min(greatest(p.lease_until, reclaims)) - statement_timestamp() AS wait
            FROM commandbus.process p
            WHERE p.process_type = t.process_type AND p.wake_at <= moment
              AND p.lease_owner IS NOT NULL
              AND (t.version IS NULL OR p.version <= t.version)
        ) expired ON true
        -- Of none at all greatest() would make 0.
        HAVING least(min(free.wait), min(lease.wait), min(expired.wait)) IS NOT NULL);
END
$$;

-- Moves the end of each lease that the caller still holds; true where it does. A row that is locked
-- (settled just now, most likely) counts as held. Never waits.
CREATE OR REPLACE FUNCTION commandbus.extend_processes(worker text, process_ids uuid[],
    lease_nos bigint[], vt_seconds double precision)
RETURNS boolean[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := commandbus.now();
    lease  interval;
    held   uuid[];
BEGIN
    IF (cardinality(process_ids) = cardinality(lease_nos) AND vt_seconds > 0
        AND vt_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'extend_processes takes arrays of equal length and a positive '
                                  'vt_seconds',
                                  'Correct the call; nothing was extended.');
    END IF;
    lease := make_interval(secs => vt_seconds);

    held := ARRAY(
        SELECT p.process_id
        FROM (SELECT * FROM unnest(process_ids, lease_nos) u(process_id, lease_no)
              ORDER BY u.process_id) i
        CROSS JOIN LATERAL (
            SELECT p.process_id FROM commandbus.process p
            WHERE p.process_id = i.process_id AND p.lease_no = i.lease_no
              AND p.lease_owner = extend_processes.worker
            FOR UPDATE OF p SKIP LOCKED
        ) p);
    -- In a statement that began after the locks: a response may have moved a row before.
    UPDATE commandbus.process p
    SET lease_until = statement_timestamp() + lease, wake_at = moment + lease
    WHERE p.ctid = ANY (ARRAY(
        SELECT p.place FROM unnest(held) i(process_id)
        CROSS JOIN LATERAL (SELECT p.ctid AS place FROM commandbus.process p
                            WHERE p.process_id = i.process_id LIMIT 1) p));

    -- What was extended is as it was in this respect, and so is what somebody has locked.
    RETURN ARRAY(
        SELECT EXISTS (SELECT FROM commandbus.process p
                       WHERE p.process_id = i.process_id AND p.lease_no = i.lease_no
                         AND p.lease_owner = extend_processes.worker)
        FROM unnest(process_ids, lease_nos) WITH ORDINALITY i(process_id, lease_no, ord)
        ORDER BY i.ord);
END
$$;

-- Frees what `worker` holds of these types and does not know of: a claim whose answer was lost. The
-- fence moves on, so that nothing can be settled under it any more.
CREATE OR REPLACE FUNCTION commandbus.release_unknown_processes(worker text, process_types text[],
    process_ids uuid[], lease_nos bigint[])
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz := commandbus.now();
    released bigint;
BEGIN
    IF (cardinality(process_ids) = cardinality(lease_nos)
        AND array_position(process_ids, NULL) IS NULL
        AND array_position(lease_nos, NULL) IS NULL AND process_types IS NOT NULL) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'release_unknown_processes takes arrays of equal length',
                                  'Name what the worker holds, {} for nothing; nothing was '
                                  'released.');
    END IF;
    RETURN QUERY
    WITH unknown AS MATERIALIZED (
        -- By way of the timers: while it is leased a process wakes at the lease's end, a day off at
        -- most.
        SELECT p.process_id FROM commandbus.process p
        WHERE p.process_type = ANY (process_types) AND p.wake_at <= moment + interval '1 day'
          AND p.lease_owner = release_unknown_processes.worker
          AND NOT EXISTS (SELECT FROM unnest(process_ids, lease_nos) i(process_id, lease_no)
                          WHERE i.process_id = p.process_id AND i.lease_no = p.lease_no)
        ORDER BY p.process_id FOR UPDATE OF p SKIP LOCKED
    ), freed AS (
        UPDATE commandbus.process p
        SET lease_no = p.lease_no + 1, unsettled = greatest(p.unsettled - 1, 0), lease_owner = NULL,
            lease_until = NULL, wake_at = moment, updated_at = moment
        FROM unknown u WHERE p.process_id = u.process_id
        RETURNING p.process_id
    ), audited AS (
        INSERT INTO commandbus.process_event (process_id, event, worker, details)
        SELECT f.process_id, 'RELEASED', release_unknown_processes.worker,
               '{"reason": "claimed, but the answer never reached the worker"}' FROM freed f
    )
    SELECT f.process_id FROM freed f;

    GET DIAGNOSTICS released = ROW_COUNT;
    IF released > 0 THEN
        PERFORM commandbus.wake(d.domain || '__processes', released)
        FROM (SELECT DISTINCT t.domain FROM commandbus.process_type t
              WHERE t.process_type = ANY (process_types)) d;
    END IF;
END
$$;
