-- Who sleeps, and waking one of them: NOTIFY only when somebody listens, and by name.

-- Wakes the worker that fell asleep last, if one sleeps: a NOTIFY in every commit would serialise
-- all commits, and if everybody woke up, all but one would claim in vain. The last one, because
-- whoever has no room is not announced: what comes in one after the other goes to one worker as
-- long as it keeps up, and is claimed and settled there together. The others hear the name, and
-- look a little later whether something is still there (worker/src/claimer.c): it may be dead.
--
-- `due`: so many are there to be taken. More than one worker is likely to take are for everybody
-- (an empty name); of fewer, whoever is full before all are taken passes the rest on.
--
-- Newest first and without a sort, so by the index on time, whatever the planner thinks of a table
-- that it saw empty. By any other index, or by EXISTS, it would look at every dead row of a held
-- snapshot.
--
-- The name is cut off because a payload has 8000 bytes at most: nobody's announcement may make a
-- sender fail.
CREATE OR REPLACE FUNCTION commandbus.wake(queue_name text, due bigint DEFAULT 1)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_sort = off
SET enable_seqscan = off AS $$
DECLARE
    sleeper text;
BEGIN
    sleeper := (SELECT CASE WHEN due > 10 THEN '' ELSE left(s.worker, 1000) END
                FROM commandbus.sleeper s
                WHERE s.queue_name = wake.queue_name
                  AND s.expires_at > statement_timestamp()
                ORDER BY s.expires_at DESC LIMIT 1);
    IF sleeper IS NOT NULL THEN
        PERFORM pg_notify('commandbus_' || queue_name, sleeper);
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

-- It does not sleep on these queues any more, and may not take all that it was woken for: somebody
-- else is to look.
CREATE OR REPLACE FUNCTION commandbus.sleep_pass_on(worker text, queue_names text[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.sleep_end(sleep_pass_on.worker, sleep_pass_on.queue_names);
    PERFORM commandbus.wake(q) FROM unnest(queue_names) q;
END
$$;
