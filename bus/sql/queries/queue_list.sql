-- No parameters. Our queues and their depths; NULL depths where the queue is missing. archived is the
-- statistics' count: it lags a little and costs nothing, however large the archive.
SELECT m.queue_name, m.domain, m.kind, m.depth, m.visible, m.oldest_age_seconds, m.total_sent, m.archived
FROM commandbus.queue_metrics() m
ORDER BY m.domain, m.kind, m.queue_name
