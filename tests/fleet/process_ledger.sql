-- statuses ('COMPENSATED 3, COMPLETED 97'; empty: whatever they are), temporary table effect (the
-- log of the set flows): one line for each thing that must hold of processes at the end of a
-- scenario and does not.
WITH process AS (
    SELECT p.*, commandbus.is_terminal(p.status) AS is_over FROM commandbus.process p
), history AS (
    SELECT h.*, h.status IN ('STARTED', 'RETRY', 'WAITING') AS is_open
    FROM commandbus.process_history h
), command AS (
    SELECT c.* FROM commandbus.command_metadata c
    WHERE c.correlation_id IN (SELECT p.process_id FROM process p)
), made AS (
    SELECT e.process_id, e.name, count(*) AS n, count(DISTINCT e.key) AS keys FROM effect e
    GROUP BY 1, 2
), deed AS (
    -- What may have been made, how often, and whether it must have been; an operator's retry starts
    -- the count again.
    SELECT h.process_id, h.command_type AS name, c.lease_no AS most, c.status = 'COMPLETED' AS must
    FROM history h JOIN command c USING (command_id, domain)
    UNION ALL
    SELECT h.process_id, CASE h.kind WHEN 'COMPENSATION' THEN 'undoExecute' ELSE h.name END,
           CASE WHEN EXISTS (SELECT FROM history o
                             WHERE o.process_id = h.process_id AND o.kind = 'OPERATOR')
                THEN 1000 ELSE h.attempts END,
           h.status = 'COMPLETED'
    FROM history h
    WHERE h.command_id IS NULL
      AND (h.kind = 'COMPENSATION'
           OR (h.kind = 'STEP' AND (h.name = 'execute' OR h.name LIKE 'step%')))
), problems AS (
    SELECT format('statuses: %s, not %s',
                  coalesce(string_agg(s.status || ' ' || s.n, ', ' ORDER BY s.status::text),
                           'none'),
                  :'statuses')
    FROM (SELECT p.status, count(*) AS n FROM process p GROUP BY 1) s
    HAVING :'statuses' NOT IN ('', coalesce(string_agg(s.status || ' ' || s.n, ', '
                                                       ORDER BY s.status::text), 'none'))

    -- The row.
    UNION ALL
    SELECT format('%s is %s and leased by %s', p.process_id, p.status, p.lease_owner) FROM process p
    WHERE p.lease_owner IS NOT NULL OR p.lease_until IS NOT NULL
    UNION ALL
    SELECT format('%s is EXECUTING, but nobody executes it', p.process_id) FROM process p
    WHERE p.status = 'EXECUTING'
    UNION ALL
    SELECT format('%s is %s, error %s, completed_at %s, tsq_at %s, wake_at %s', p.process_id,
                  p.status, p.error_code, p.completed_at, p.tsq_at, p.wake_at)
    FROM process p
    WHERE p.is_over <> (p.completed_at IS NOT NULL)
       OR (p.status = 'WAITING_FOR_TSQ') <> (p.tsq_at IS NOT NULL)
       OR ((p.is_over OR p.status = 'WAITING_FOR_TSQ') AND p.wake_at IS NOT NULL)
       OR (p.wake_at IS NULL AND NOT (p.is_over OR p.status = 'WAITING_FOR_TSQ'
                                      OR commandbus.awaits_reply(p.status, p.current_wait,
                                                                 p.awaits_reply)))
       OR (p.status IN ('WAITING_FOR_TSQ', 'COMPENSATED', 'FAILED') AND p.error_code IS NULL)
       OR (p.status = 'COMPLETED' AND p.error_code IS NOT NULL)
    UNION ALL
    SELECT format('%s is %s in phase %s', p.process_id, p.status, p.phase) FROM process p
    WHERE (p.status = 'COMPLETED' AND p.phase <> 'FORWARD')
       OR (p.status = 'COMPENSATED' AND p.phase <> 'COMPENSATING')
    UNION ALL
    SELECT format('%s is %s, and %s %s is still in its inbox', p.process_id, p.status, i.kind,
                  i.name)
    FROM commandbus.process_inbox i LEFT JOIN process p USING (process_id)
    WHERE NOT (p.status = 'WAITING_FOR_TSQ' AND i.kind = 'RESPONSE')

    -- The records.
    UNION ALL
    SELECT format('%s has %s records up to ordinal %s', h.process_id, count(*), max(h.ordinal))
    FROM history h
    GROUP BY h.process_id HAVING max(h.ordinal) <> count(*) OR min(h.ordinal) <> 1
    UNION ALL
    SELECT format('%s has %s %s %s times', h.process_id, h.kind, h.name, count(*)) FROM history h
    WHERE h.kind NOT IN ('RESPONSE', 'OPERATOR') GROUP BY h.process_id, h.kind, h.name
    HAVING count(*) > 1
    UNION ALL
    SELECT format('%s took response %s twice', h.process_id, h.response_id) FROM history h
    WHERE h.response_id IS NOT NULL GROUP BY 1, h.process_id, h.response_id HAVING count(*) > 1
    UNION ALL
    SELECT format('%s is %s, and record %s, %s %s, is %s', p.process_id, p.status, h.ordinal,
                  h.kind, h.name, h.status)
    FROM history h JOIN process p USING (process_id) WHERE h.is_open AND p.is_over
    UNION ALL
    SELECT format('%s has open records %s', h.process_id, string_agg(h.name, ', ')) FROM history h
    WHERE h.is_open GROUP BY h.process_id HAVING count(*) > 1
    UNION ALL
    SELECT format('%s is %s and waits at %s without a timer', p.process_id, p.status, h.name)
    FROM history h JOIN process p USING (process_id)
    WHERE h.status = 'WAITING' AND p.status <> 'WAITING_FOR_TSQ'
      -- One that waits for a reply may do without; but what the record has the row has too.
      AND ((h.timeout_at IS NULL AND h.command_id IS NULL)
           OR (h.timeout_at IS NULL) <> (p.next_wait_timeout_at IS NULL)
           OR p.wake_at > p.next_wait_timeout_at)
    UNION ALL
    SELECT format('record %s of %s belongs to nobody', h.ordinal, h.process_id) FROM history h
    WHERE NOT EXISTS (SELECT FROM process p WHERE p.process_id = h.process_id)

    -- Undoing.
    UNION ALL
    SELECT format('%s is %s, and %s is not undone', p.process_id, p.status, h.name)
    FROM history h JOIN process p USING (process_id)
    WHERE p.status = 'COMPENSATED' AND h.owes IS NOT NULL AND h.kind <> 'COMPENSATION'
      AND h.status = 'COMPLETED'
      AND NOT EXISTS (SELECT FROM history c
                      WHERE c.process_id = h.process_id AND c.kind = 'COMPENSATION'
                        AND c.during = h.ordinal AND c.status = 'COMPLETED')
    UNION ALL
    SELECT format('%s has undone %s, which is no record that owes it', c.process_id, c.name)
    FROM history c
    WHERE c.kind = 'COMPENSATION'
      AND NOT EXISTS (SELECT FROM history h
                      WHERE h.process_id = c.process_id AND h.ordinal = c.during
                        AND h.status = 'COMPLETED' AND h.owes IS NOT NULL AND h.name = c.name)
    UNION ALL
    SELECT format('%s has undone %s out of order', c.process_id, c.name)
    FROM (SELECT c.*, lag(c.during) OVER (PARTITION BY c.process_id ORDER BY c.ordinal) AS before
          FROM history c WHERE c.kind = 'COMPENSATION') c
    WHERE c.before <= c.during
    UNION ALL
    SELECT format('%s is COMPLETED, and has undone %s', p.process_id, h.name)
    FROM history h JOIN process p USING (process_id)
    WHERE p.status = 'COMPLETED' AND h.kind = 'COMPENSATION'

    -- The commands.
    UNION ALL
    SELECT format('%s of %s, %s, has not ended: %s', c.command_type, c.correlation_id, c.command_id,
                  c.status)
    FROM command c JOIN process p ON p.process_id = c.correlation_id
    WHERE c.status IN ('PENDING', 'IN_PROGRESS')
       OR (c.status = 'IN_TROUBLESHOOTING_QUEUE' AND p.status <> 'WAITING_FOR_TSQ')
    UNION ALL
    SELECT format('%s of %s, %s, has no record', c.command_type, c.correlation_id, c.command_id)
    FROM command c
    WHERE NOT EXISTS (SELECT FROM history h
                      WHERE h.process_id = c.correlation_id AND h.command_id = c.command_id)
    UNION ALL
    SELECT format('record %s of %s is %s, but its command %s is %s', h.ordinal, h.process_id,
                  h.status, h.command_id, c.status)
    FROM history h LEFT JOIN command c ON c.command_id = h.command_id AND c.domain = h.domain
    WHERE h.command_id IS NOT NULL AND h.status <> 'WAITING'
      AND (h.status = 'COMPLETED') <> (c.status = 'COMPLETED') IS NOT FALSE
    UNION ALL
    SELECT format('%s of %s was sent %s times', c.command_type, c.correlation_id, count(*))
    FROM command c
    WHERE NOT EXISTS (SELECT FROM history h
                      WHERE h.process_id = c.correlation_id AND h.kind = 'OPERATOR')
    GROUP BY c.command_type, c.correlation_id HAVING count(*) > 1
    UNION ALL
    SELECT format('message %s is still in %s: %s', m.msg_id, m.queue, m.message)
    FROM (SELECT 'payments__replies' AS queue, msg_id, message FROM pgmq.q_payments__replies
          UNION ALL SELECT 'fx__commands', msg_id, message FROM pgmq.q_fx__commands
          UNION ALL SELECT 'risk__commands', msg_id, message FROM pgmq.q_risk__commands) m
    UNION ALL
    SELECT format('%s %s: %s', a.event_type, a.command_id, a.details) FROM commandbus.audit a
    WHERE a.event_type IN ('POISON_ARCHIVED', 'REPLY_UNDELIVERABLE', 'REPLY_DEAD_LETTERED')
    UNION ALL
    SELECT format('LATE_REPLY for %s: %s', e.process_id, e.details) FROM commandbus.process_event e
    WHERE e.event = 'LATE_REPLY'

    -- What was really done.
    UNION ALL
    SELECT format('%s of %s was made %s times with %s keys', m.name, m.process_id, m.n, m.keys)
    FROM made m WHERE m.keys > 1
    UNION ALL
    SELECT format('%s of %s was made %s times in %s attempts', m.name, m.process_id, m.n,
                  coalesce(sum(d.most), 0))
    FROM made m LEFT JOIN deed d USING (process_id, name) GROUP BY m.name, m.process_id, m.n
    HAVING m.n > coalesce(sum(d.most), 0)
    UNION ALL
    SELECT format('%s of %s is recorded, but was never made', d.name, d.process_id) FROM deed d
    JOIN process p USING (process_id)
    WHERE d.must AND p.initial_state ? 'log'
      AND NOT EXISTS (SELECT FROM made m WHERE m.process_id = d.process_id AND m.name = d.name)
    UNION ALL
    SELECT format('%s is %s, and its state says executed %s, undone %s', p.process_id, p.status,
                  p.state -> 'executed', p.state -> 'undone')
    FROM process p
    WHERE p.process_type = 'Five' AND p.is_over
      AND ((p.status = 'COMPLETED') > (p.state -> 'executed')::boolean
        OR (p.state -> 'undone')::boolean <> EXISTS (SELECT FROM history h
                                                     WHERE h.process_id = p.process_id
                                                       AND h.kind = 'COMPENSATION'
                                                       AND h.name = 'execute'
                                                       AND h.status = 'COMPLETED'))
)
SELECT * FROM problems LIMIT 30;
