-- domain, sent, statuses ('COMPLETED 97, FAILED 3'), queue, replies, archived_replies: one line for
-- each thing that must hold at the end of a scenario and does not.
WITH commands AS (
    SELECT c.*, c.status IN ('COMPLETED', 'FAILED', 'CANCELED') AS is_final
    FROM commandbus.command_metadata c WHERE c.domain = :'domain'
), events AS (
    SELECT a.command_id,
           count(*) FILTER (WHERE a.event_type IN ('COMPLETED', 'BUSINESS_RULE_FAILED',
                                'OPERATOR_CANCEL', 'OPERATOR_COMPLETE')) AS finals,
           max(a.lease_no)
               FILTER (WHERE a.event_type IN ('COMPLETED', 'BUSINESS_RULE_FAILED')) AS final_lease,
           count(*) FILTER (WHERE a.event_type = 'RECEIVED') AS received,
           count(DISTINCT a.lease_no) FILTER (WHERE a.event_type = 'RECEIVED') AS leases,
           max(a.lease_no) FILTER (WHERE a.event_type = 'RECEIVED') AS last_lease,
           -- A claim whose answer was lost is taken back with a fence of its own.
           count(DISTINCT a.lease_no)
               FILTER (WHERE a.event_type IN ('RECEIVED', 'RELEASED')) AS fences,
           string_agg(a.event_type || ' ' || a.lease_no, ', ' ORDER BY a.at, a.event_type) AS story
    FROM commandbus.audit a WHERE a.domain = :'domain' GROUP BY a.command_id
), messages AS (
    SELECT message FROM pgmq.:"replies" UNION ALL SELECT message FROM pgmq.:"archived_replies"
), replies AS (
    SELECT (m.message ->> 'command_id')::uuid AS command_id,
           count(*) FILTER (WHERE (m.message ->> 'final')::boolean) AS finals, count(*) AS n,
           string_agg(m.message::text, ' ') AS texts
    FROM messages m GROUP BY 1
), problems AS (
    SELECT format('statuses: %s, not %s',
                  coalesce(string_agg(s.status || ' ' || s.n, ', ' ORDER BY s.status), 'none'),
                  :'statuses')
    FROM (SELECT c.status, count(*) AS n FROM commands c GROUP BY 1) s
    HAVING string_agg(s.status || ' ' || s.n, ', ' ORDER BY s.status) IS DISTINCT FROM :'statuses'
    UNION ALL
    SELECT format('commands: %s, not %s: some were lost or invented', count(*), :sent) FROM commands
    HAVING count(*) <> :sent
    UNION ALL
    SELECT format('%s is %s and has %s final events: %s', c.command_id, c.status,
                  coalesce(e.finals, 0), e.story)
    FROM commands c LEFT JOIN events e USING (command_id)
    WHERE coalesce(e.finals, 0) <> c.is_final::int
    UNION ALL
    SELECT format('%s was claimed %s times, with %s fences up to %s, the row says %s: %s',
                  c.command_id, e.received, e.leases, e.last_lease, c.lease_no, e.story)
    FROM commands c JOIN events e USING (command_id)
    WHERE e.received <> e.leases
       OR c.lease_no <> e.fences + (c.error_code IS NOT DISTINCT FROM 'LEASE_EXHAUSTED')::int
    UNION ALL
    SELECT format('%s was finished under fence %s, but claimed up to %s: %s', c.command_id,
                  e.final_lease, e.last_lease, e.story)
    FROM commands c JOIN events e USING (command_id) WHERE e.final_lease <> e.last_lease
    UNION ALL
    SELECT format('%s had %s of %s attempts', c.command_id, c.attempts, c.max_attempts)
    FROM commands c WHERE c.attempts > c.max_attempts
    UNION ALL
    SELECT format('%s is %s and has %s final replies: %s', c.command_id, c.status,
                  coalesce(r.finals, 0), r.texts)
    FROM commands c LEFT JOIN replies r USING (command_id)
    WHERE c.reply_to IS NOT NULL AND coalesce(r.finals, 0) <> c.is_final::int
    UNION ALL
    SELECT format('%s replies to %s, which is no command here', r.n, r.command_id) FROM replies r
    WHERE NOT EXISTS (SELECT FROM commands c WHERE c.command_id = r.command_id)
    UNION ALL
    SELECT format('message %s is still in the queue: %s', q.msg_id, q.message) FROM pgmq.:"queue" q
    UNION ALL
    SELECT format('%s holds a place under fence %s, which is settled: %s', f.command_id, f.lease_no,
                  e.story)
    FROM commandbus.fleet_lease f JOIN events e USING (command_id)
    WHERE f.lease_no = e.final_lease AND f.domain = :'domain'
    UNION ALL
    SELECT format('%s %s: %s', a.event_type, a.command_id, a.details) FROM commandbus.audit a
    WHERE a.domain = :'domain'
      AND a.event_type IN ('POISON_ARCHIVED', 'REPLY_UNDELIVERABLE', 'REPLY_DEAD_LETTERED')
)
SELECT * FROM problems LIMIT 30;
