-- What metrics and doctor ask about processes.

-- Those that have not ended: each has a timer, leased or not, waits for an operator or is idle, so
-- that four small indexes find them, however many have ended. One index for all of them would cost
-- every move of every process.
CREATE OR REPLACE VIEW commandbus.live_process AS
SELECT p.* FROM commandbus.process p
WHERE p.wake_at IS NOT NULL AND p.lease_owner IS NULL AND p.completed_at IS NULL
UNION ALL
SELECT p.* FROM commandbus.process p
WHERE p.wake_at IS NOT NULL AND p.lease_owner IS NOT NULL AND p.completed_at IS NULL
UNION ALL
SELECT p.* FROM commandbus.process p
WHERE p.tsq_at IS NOT NULL AND p.wake_at IS NULL AND p.completed_at IS NULL
UNION ALL
SELECT p.* FROM commandbus.process p
WHERE p.wake_at IS NULL AND p.tsq_at IS NULL AND p.completed_at IS NULL;

-- For a reply to a command: of a manager, of a command step or of a compensation, which may all
-- wait without a timer.
CREATE OR REPLACE FUNCTION commandbus.awaits_reply(status commandbus.process_status,
    current_wait text, awaits_reply boolean)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT status = 'WAITING_FOR_REPLY' OR (status = 'COMPENSATING' AND current_wait IS NOT NULL)
        OR (status = 'WAITING_FOR_ASYNC' AND awaits_reply)
$$;

-- For metrics: those that have not ended, for how long the first due one that nobody runs has been
-- due, for how long the oldest that waits for a reply has been waiting, and for how long the oldest
-- has been as it is.
CREATE OR REPLACE FUNCTION commandbus.process_figures()
RETURNS TABLE (process_type text, status text, error_code text, current_wait text, processes bigint,
               oldest_due_seconds double precision, oldest_reply_seconds double precision,
               oldest_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT p.process_type, p.status::text, p.error_code, p.current_wait, count(*),
           coalesce(max(extract(epoch FROM t.now_at - p.wake_at))
               FILTER (WHERE p.wake_at <= t.now_at
                         AND (p.lease_until IS NULL OR p.lease_until <= statement_timestamp())),
               0)::double precision,
           coalesce(max(extract(epoch FROM t.now_at - p.updated_at))
               FILTER (WHERE commandbus.awaits_reply(p.status, p.current_wait, p.awaits_reply)),
               0)::double precision,
           greatest(max(extract(epoch FROM t.now_at - coalesce(p.tsq_at, p.updated_at))),
                    0)::double precision
    -- OFFSET: asked once, and not for each row.
    FROM commandbus.live_process p CROSS JOIN (SELECT commandbus.now() AS now_at OFFSET 0) t
    GROUP BY p.process_type, p.status, p.error_code, p.current_wait
    ORDER BY 1, 2, 3, 4
$$;

-- For doctor: what is wrong with processes. `seconds` is for how long, of the worst one. A live
-- instance may say in its heartbeat which types it runs: "processes": {"<type>": <version>}.
CREATE OR REPLACE FUNCTION commandbus.process_problems()
RETURNS TABLE (problem text, process_type text, about text, processes bigint,
               seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH live AS MATERIALIZED (
        SELECT p.process_id, p.process_type, p.domain, p.status, p.error_code, p.version, p.wake_at,
               p.lease_until, p.tsq_at, p.updated_at, p.lease_owner, p.current_wait, p.awaits_reply,
               t.now_at
        FROM commandbus.live_process p CROSS JOIN (SELECT commandbus.now() AS now_at OFFSET 0) t
    ), said AS MATERIALIZED (
        SELECT d.key AS process_type,
               max(commandbus.figure(w.details -> 'processes', d.key)) AS version
        FROM commandbus.worker w
        CROSS JOIN LATERAL jsonb_object_keys(CASE jsonb_typeof(w.details -> 'processes')
                                             WHEN 'object' THEN w.details -> 'processes'
                                             ELSE '{}' END) d(key)
        WHERE w.heartbeat_at >= statement_timestamp() - interval '60 seconds'
        GROUP BY d.key
    )
    SELECT 'PARKED', l.process_type, coalesce(l.error_code, 'no code'), count(*),
           extract(epoch FROM max(l.now_at - l.tsq_at))::double precision
    FROM live l WHERE l.status = 'WAITING_FOR_TSQ' GROUP BY 2, 3
    UNION ALL
    SELECT 'NOT_SERVED', l.process_type, l.domain, count(*),
           extract(epoch FROM max(l.now_at - l.wake_at))
    FROM live l WHERE l.wake_at < l.now_at - interval '60 seconds' AND l.lease_owner IS NULL
    GROUP BY 2, 3
    UNION ALL
    SELECT 'LEASE_OVER', l.process_type, l.lease_owner, count(*),
           extract(epoch FROM max(statement_timestamp() - l.lease_until))
    FROM live l
    WHERE l.lease_owner IS NOT NULL
      AND l.lease_until < statement_timestamp() - interval '60 seconds'
    GROUP BY 2, 3
    UNION ALL
    -- One in the troubleshooting queue keeps its responses until an operator has decided.
    SELECT 'UNKNOWN_RESPONSE', l.process_type, r.name, count(DISTINCT l.process_id),
           extract(epoch FROM max(l.now_at - r.at))
    FROM live l CROSS JOIN LATERAL (
        SELECT i.name, i.at FROM commandbus.process_inbox i
        WHERE i.process_id = l.process_id AND i.kind = 'RESPONSE'
          AND i.at < statement_timestamp() - interval '1 hour'
          AND l.status <> 'WAITING_FOR_TSQ'
        UNION ALL
        SELECT h.name, h.at FROM commandbus.process_history h
        WHERE h.process_id = l.process_id AND h.kind = 'RESPONSE' AND h.status = 'FAILED'
    ) r GROUP BY 2, 3
    UNION ALL
    SELECT 'LATE_SUCCESS', p.process_type, coalesce(e.details ->> 'command_id', e.step_name),
           count(*), extract(epoch FROM statement_timestamp() - min(e.at))
    FROM commandbus.process_event e JOIN commandbus.process p ON p.process_id = e.process_id
    WHERE e.event = 'LATE_REPLY' AND e.details ->> 'outcome' = 'SUCCESS'
      AND e.at > statement_timestamp() - interval '1 day'
      -- The second reply of a command whose first one was taken is nothing to undo.
      AND NOT EXISTS (SELECT FROM commandbus.process_history h
                      WHERE h.process_id = e.process_id AND h.status = 'COMPLETED'
                        AND h.command_id::text = e.details ->> 'command_id')
    GROUP BY 2, 3
    UNION ALL
    SELECT 'LOST_REPLY', r.process_type, (array_agg(format('process %s, command %s %s',
               r.process_id, r.command_id, r.outcome) ORDER BY r.ended_at))[1], count(*),
           extract(epoch FROM max(statement_timestamp() - r.ended_at))
    FROM commandbus.restore_replies(grace_seconds => 5, dry_run => true) r GROUP BY 2
    UNION ALL
    SELECT 'UNKNOWN_TYPE', l.process_type, l.domain, count(*), NULL
    FROM live l
    WHERE NOT EXISTS (SELECT FROM commandbus.process_type t WHERE t.process_type = l.process_type)
    GROUP BY 2, 3
    UNION ALL
    SELECT 'NO_WORKER', l.process_type, l.domain, count(*), NULL
    FROM live l
    WHERE EXISTS (SELECT FROM said)
      AND NOT EXISTS (SELECT FROM said s WHERE s.process_type = l.process_type)
    GROUP BY 2, 3
    UNION ALL
    SELECT 'VERSION_TOO_NEW', l.process_type, 'version ' || max(l.version), count(*), NULL
    FROM live l
    LEFT JOIN commandbus.process_type t ON t.process_type = l.process_type
    LEFT JOIN said s ON s.process_type = l.process_type
    WHERE l.version > coalesce(s.version, t.version) GROUP BY 2
    UNION ALL
    SELECT 'LONG_REPLY', l.process_type, l.domain, count(*),
           extract(epoch FROM max(l.now_at - l.updated_at))
    FROM live l
    WHERE commandbus.awaits_reply(l.status, l.current_wait, l.awaits_reply)
      AND l.updated_at < l.now_at - interval '1 hour'
    GROUP BY 2, 3
$$;
