-- No parameters. One line a queue.
SELECT 'queue ' || q.queue_name AS check_name,
       CASE WHEN m.queue_visible_length > 0 AND m.oldest_msg_age_sec > 300 THEN 'warn' ELSE 'ok' END AS status,
       format('%s messages, %s visible, oldest %s, about %s archived', m.queue_length, m.queue_visible_length,
              coalesce(m.oldest_msg_age_sec || ' s', 'none'),
              coalesce(pg_stat_get_live_tuples(to_regclass(format('pgmq.%I', 'a_' || q.queue_name))), 0)) AS detail,
       CASE WHEN m.queue_visible_length > 0 AND m.oldest_msg_age_sec > 300 THEN q.advice END AS advice
FROM (SELECT d.domain || '__commands' AS queue_name,
             'Is a worker of this domain running, and has it slots enough?' AS advice
      FROM commandbus.domain d
      UNION ALL
      SELECT r.queue_name, 'Who reads these replies? Nobody has for five minutes.' FROM commandbus.reply_queue r) q
CROSS JOIN LATERAL pgmq.metrics(q.queue_name) m
ORDER BY q.queue_name
