-- No parameters. One line a queue.
SELECT 'queue ' || m.queue_name AS check_name,
       CASE WHEN m.depth IS NULL THEN 'fail'
            WHEN m.waiting_seconds > 300 THEN 'warn' ELSE 'ok' END AS status,
       CASE WHEN m.depth IS NULL THEN 'the queue is missing, or belongs to somebody else'
            ELSE format('%s messages, %s visible%s, about %s archived', m.depth, m.visible,
                        ' since ' || m.waiting_seconds || ' s', m.archived) END AS detail,
       CASE WHEN m.depth IS NULL THEN format('commandbus queue create %s; then, as an operator, '
                 'SELECT commandbus.restore_messages(%L).', m.domain, m.domain)
            WHEN m.waiting_seconds > 300 AND m.kind = 'commands'
                 THEN 'Is a worker of this domain running, and has it slots enough?'
            WHEN m.waiting_seconds > 300 THEN 'Who reads these replies? Nobody has for five minutes.' END AS advice
FROM commandbus.queue_metrics() m
ORDER BY m.queue_name
