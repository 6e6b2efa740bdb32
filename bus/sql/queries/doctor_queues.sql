-- No parameters. One line a queue.
SELECT 'queue ' || m.queue_name AS check_name,
       CASE WHEN m.depth IS NULL THEN 'fail'
            WHEN m.waiting_seconds > 300 THEN 'warn' ELSE 'ok' END AS status,
       CASE WHEN m.depth IS NULL AND t.owner IS NULL THEN 'the queue is missing'
            WHEN m.depth IS NULL THEN format('the queue belongs to %s', t.owner)
            ELSE format('%s messages, %s visible%s, about %s archived', m.depth, m.visible,
                        ' since ' || m.waiting_seconds || ' s', m.archived) END AS detail,
       CASE WHEN m.depth IS NULL AND t.owner IS NULL THEN format('commandbus queue create %s; then, as an operator, '
                 'SELECT commandbus.restore_messages(%L).', m.domain, m.domain)
            -- As a dump leaves it that was restored by who may not give it away: deploy/README.md.
            WHEN m.depth IS NULL THEN format('As %s: ALTER TABLE pgmq.%I OWNER TO commandbus_owner; '
                 'ALTER TABLE pgmq.%I OWNER TO commandbus_owner.', t.owner, 'q_' || m.queue_name, 'a_' || m.queue_name)
            WHEN m.waiting_seconds > 300 AND m.kind = 'commands'
                 THEN 'Nothing fails because it is deep: commands wait, and their processes with them, until their deadline. '
                      'Is a worker of this domain running, and has it slots enough? See commandbus plan.'
            WHEN m.waiting_seconds > 300 THEN 'Who reads these replies? Nobody has for five minutes.' END AS advice
FROM commandbus.queue_metrics() m
LEFT JOIN LATERAL (SELECT pg_catalog.pg_get_userbyid(c.relowner) AS owner FROM pg_catalog.pg_class c
                   WHERE c.oid = to_regclass(format('pgmq.%I', 'q_' || m.queue_name))) t ON true
ORDER BY m.queue_name
