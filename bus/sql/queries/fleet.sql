-- Instances: heartbeats, limits, sleeping and waking.

--: heartbeat
-- $1 worker, $2 what it says of itself, a JSON object
SELECT commandbus.heartbeat($1::text, $2::jsonb)

--: retire
-- $1 worker
SELECT commandbus.retire($1::text)

--: tidy_fleet
-- No parameters. How many rows went.
SELECT commandbus.tidy_fleet()

--: set_fleet_limit
-- $1 domain, $2 the most leases over the fleet, 0 for no limit
SELECT commandbus.set_fleet_limit($1::text, $2::integer)

--: fleet_workers
-- No parameters. Instances; who has been silent for a minute says so.
SELECT w.worker, coalesce(w.details ->> 'name', w.worker) AS name, w.details ->> 'host' AS host,
       commandbus.figure(w.details, 'pid') AS pid, w.details ->> 'version' AS version,
       w.details ->> 'profile' AS profile,
       CASE WHEN w.heartbeat_at < statement_timestamp() - interval '60 seconds' THEN 'silent'
            ELSE coalesce(w.details ->> 'state', 'running') END AS state,
       CASE jsonb_typeof(w.details -> 'domains') WHEN 'object' THEN w.details -> 'domains'
            ELSE '{}' END AS domains,
       round(extract(epoch FROM statement_timestamp() - w.heartbeat_at), 1)
           AS heartbeat_age_seconds,
       floor(extract(epoch FROM statement_timestamp() - since.started_at)) AS uptime_seconds,
       since.started_at
FROM commandbus.worker w
-- One that was started again under its old name is as old as it says.
CROSS JOIN LATERAL (
    SELECT coalesce(w.heartbeat_at - make_interval(secs =>
                        least(commandbus.figure(w.details, 'uptime_seconds'), 1e9)),
                    w.started_at) AS started_at
) since
ORDER BY coalesce(w.details ->> 'name', w.worker), w.worker

--: fleet_domains
-- No parameters. Domains with what the fleet offers them and what waits.
SELECT f.domain, f.instances, f.slots_each, f.slots, f.prefetch, f.in_flight, f.live_leases,
       f.fleet_limit, f.depth, f.visible,
       round(f.oldest_age_seconds::numeric, 3) AS oldest_age_seconds,
       round(f.waiting_seconds::numeric, 3) AS waiting_seconds, f.total_sent,
       to_jsonb(f.problems) AS problems
FROM commandbus.fleet_domains() f
ORDER BY f.domain

--: domain_figures
-- No parameters. Every domain of the database in figures, whoever serves it; whole microseconds.
SELECT domain, instances, fleet_limit, live_leases, in_tsq,
       (oldest_due_seconds * 1000000)::bigint AS oldest_due_us
FROM commandbus.domain_figures()

--: domain_load
-- $1 domain, $2 interval to look back over. No row for a domain that is not registered.
-- Arrivals are runs that were asked for: commands sent, and retries of them. Runs are those that
-- began and ended meanwhile, from claim to outcome, which is how long each took its slot.
WITH event AS MATERIALIZED (
    SELECT a.at, a.command_id, a.lease_no, a.event_type
    FROM commandbus.audit a
    WHERE a.domain = $1::text AND a.at > statement_timestamp() - $2::text::interval
      AND a.event_type IN ('SENT', 'RETRY_SCHEDULED', 'OPERATOR_RETRY', 'RECEIVED', 'COMPLETED',
                           'FAILED', 'BUSINESS_RULE_FAILED', 'MOVED_TO_TSQ')
), arrival AS (
    SELECT count(*) AS arrivals, count(*) FILTER (WHERE m.event_type <> 'SENT') AS retries,
           max(m.in_minute) AS in_busiest_minute
    FROM (SELECT e.event_type,
                 count(*) OVER (PARTITION BY date_bin('1 minute', e.at,
                                                      statement_timestamp())) AS in_minute
          FROM event e WHERE e.event_type IN ('SENT', 'RETRY_SCHEDULED', 'OPERATOR_RETRY')) m
), run AS (
    SELECT count(r.took) AS runs, avg(r.took) AS mean_seconds,
           stddev_pop(r.took) AS deviation_seconds
    -- Grouped and not joined: without statistics the planner would compare each with each. A
    -- command whose worker has died is given up under the next fence: such a run has no end.
    FROM (SELECT extract(epoch FROM max(e.at) FILTER (WHERE e.event_type <> 'RECEIVED')
                                  - max(e.at) FILTER (WHERE e.event_type = 'RECEIVED')) AS took
          FROM event e
          WHERE e.event_type IN ('RECEIVED', 'COMPLETED', 'FAILED', 'BUSINESS_RULE_FAILED',
                                 'MOVED_TO_TSQ')
          GROUP BY e.command_id, e.lease_no) r
)
-- A domain younger than the interval has had less time.
SELECT least(extract(epoch FROM $2::text::interval),
             greatest(extract(epoch FROM statement_timestamp() - d.created_at), 1))
           ::double precision AS seconds,
       a.arrivals, a.retries, a.in_busiest_minute, r.runs,
       r.mean_seconds::double precision AS mean_seconds,
       r.deviation_seconds::double precision AS deviation_seconds
FROM commandbus.domain d CROSS JOIN arrival a CROSS JOIN run r
WHERE d.domain = $1::text

--: sleep_announce
-- $1 worker, $2 queue names, $3 seconds
SELECT commandbus.sleep_announce($1::text, $2::text[], $3::double precision)

--: sleep_end
-- $1 worker, $2 queue names or NULL for all of its queues
SELECT commandbus.sleep_end($1::text, $2::text[])

--: sleep_pass_on
-- $1 worker, $2 queue names
SELECT commandbus.sleep_pass_on($1::text, $2::text[])

--: notify
-- $1 channel, $2 payload: and which backend sent it
SELECT pg_catalog.pg_notify($1::text, $2::text), pg_catalog.pg_backend_pid()

--: unlisten
-- No parameters.
UNLISTEN *
