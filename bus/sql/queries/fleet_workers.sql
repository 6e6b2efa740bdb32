-- No parameters. Instances; who has been silent for a minute says so.
SELECT w.worker, coalesce(w.details ->> 'name', w.worker) AS name, w.details ->> 'host' AS host,
       commandbus.figure(w.details, 'pid') AS pid, w.details ->> 'version' AS version, w.details ->> 'profile' AS profile,
       CASE WHEN w.heartbeat_at < statement_timestamp() - interval '60 seconds' THEN 'silent'
            ELSE coalesce(w.details ->> 'state', 'running') END AS state,
       CASE jsonb_typeof(w.details -> 'domains') WHEN 'object' THEN w.details -> 'domains' ELSE '{}' END AS domains,
       round(extract(epoch FROM statement_timestamp() - w.heartbeat_at), 1) AS heartbeat_age_seconds,
       floor(extract(epoch FROM statement_timestamp() - since.started_at)) AS uptime_seconds, since.started_at
FROM commandbus.worker w
-- One that was started again under its old name is as old as it says.
CROSS JOIN LATERAL (
    SELECT coalesce(w.heartbeat_at - make_interval(secs => least(commandbus.figure(w.details, 'uptime_seconds'), 1e9)),
                    w.started_at) AS started_at
) since
ORDER BY coalesce(w.details ->> 'name', w.worker), w.worker
