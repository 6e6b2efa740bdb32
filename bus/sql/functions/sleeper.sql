-- Who sleeps, and waking them: NOTIFY only when somebody listens.

-- Wakes a worker only if one sleeps: a NOTIFY in every commit would serialise all commits.
--
-- Newest first and without a sort, so by the index on time, whatever the planner thinks of a table
-- that it saw empty. By any other index, or by EXISTS, it would look at every dead row of a held
-- snapshot.
CREATE OR REPLACE FUNCTION commandbus.wake_sleepers(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_sort = off
SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT s.expires_at FROM commandbus.sleeper s
        WHERE s.queue_name = wake_sleepers.queue_name AND s.expires_at > statement_timestamp()
        ORDER BY s.expires_at DESC LIMIT 1) IS NOT NULL THEN
        PERFORM pg_notify('commandbus_' || queue_name, '');
    END IF;
END
$$;

-- `worker` sleeps on these queues for at most so long; senders notify commandbus_<queue> only then.
CREATE OR REPLACE FUNCTION commandbus.sleep_announce(worker text, queue_names text[],
    seconds double precision)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.sleeper (queue_name, worker, expires_at)
    SELECT DISTINCT q, sleep_announce.worker,
           statement_timestamp() + CASE WHEN seconds > 86400 AND seconds <= 1e9
                                        THEN interval '1 day'
                                        ELSE make_interval(secs => seconds) END
    FROM unnest(queue_names) q ORDER BY q
    ON CONFLICT (queue_name, worker) DO UPDATE SET expires_at = excluded.expires_at
$$;

-- It woke up: for all of its queues, or only these.
CREATE OR REPLACE FUNCTION commandbus.sleep_end(worker text, queue_names text[] DEFAULT NULL)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM commandbus.sleeper s
    WHERE s.worker = sleep_end.worker
      AND (sleep_end.queue_names IS NULL OR s.queue_name = ANY (sleep_end.queue_names))
$$;
