-- No parameters. Our queues and their depths. archived is the statistics' count: it lags a little and
-- costs nothing, however large the archive.
SELECT q.queue_name, q.domain, q.kind, m.queue_length AS depth, m.queue_visible_length AS visible,
       m.oldest_msg_age_sec AS oldest_age_seconds, m.total_messages AS total_sent,
       coalesce(pg_stat_get_live_tuples(to_regclass(format('pgmq.%I', 'a_' || q.queue_name))), 0) AS archived
FROM (SELECT d.domain || '__commands' AS queue_name, d.domain, 'commands' AS kind FROM commandbus.domain d
      UNION ALL
      SELECT r.queue_name, r.domain, 'replies' FROM commandbus.reply_queue r) q
CROSS JOIN LATERAL pgmq.metrics(q.queue_name) m
ORDER BY q.domain, q.kind, q.queue_name
