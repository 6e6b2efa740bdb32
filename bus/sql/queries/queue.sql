-- Queues and their depth.

--: register_domain
-- $1 domain, $2 further reply queue or NULL
SELECT commandbus.register_domain($1::text, $2::text)

--: queue_list
-- No parameters. Our queues and their depths; NULL depths where the queue is missing. archived is
-- the statistics' count: it lags a little and costs nothing, however large the archive.
SELECT m.queue_name, m.domain, m.kind, m.depth, m.visible, m.oldest_age_seconds, m.total_sent,
       m.archived
FROM commandbus.queue_metrics() m
ORDER BY m.domain, m.kind, m.queue_name

--: queue_samples
-- $1 domains. One row each, in their order; whole microseconds, which no locale writes differently.
SELECT depth, (oldest_due_seconds * 1000000)::bigint AS oldest_due_us
FROM commandbus.queue_samples($1::text[])
