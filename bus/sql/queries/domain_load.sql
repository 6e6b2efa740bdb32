-- $1 domain, $2 interval to look back over. No row for a domain that is not registered.
-- Arrivals are runs that were asked for: commands sent, and retries of them. Runs are those that began and ended
-- meanwhile, from claim to outcome, which is how long each took its slot.
WITH event AS MATERIALIZED (
    SELECT a.at, a.command_id, a.lease_no, a.event_type
    FROM commandbus.audit a
    WHERE a.domain = $1::text AND a.at > statement_timestamp() - $2::text::interval
      AND a.event_type IN ('SENT', 'RETRY_SCHEDULED', 'OPERATOR_RETRY', 'RECEIVED', 'COMPLETED', 'FAILED',
                           'BUSINESS_RULE_FAILED', 'MOVED_TO_TSQ')
), arrival AS (
    SELECT count(*) AS arrivals, count(*) FILTER (WHERE m.event_type <> 'SENT') AS retries,
           max(m.in_minute) AS in_busiest_minute
    FROM (SELECT e.event_type, count(*) OVER (PARTITION BY date_bin('1 minute', e.at, statement_timestamp())) AS in_minute
          FROM event e WHERE e.event_type IN ('SENT', 'RETRY_SCHEDULED', 'OPERATOR_RETRY')) m
), run AS (
    SELECT count(r.took) AS runs, avg(r.took) AS mean_seconds, stddev_pop(r.took) AS deviation_seconds
    -- Grouped and not joined: without statistics the planner would compare each with each. A command whose worker
    -- has died is given up under the next fence: such a run has no end.
    FROM (SELECT extract(epoch FROM max(e.at) FILTER (WHERE e.event_type <> 'RECEIVED')
                                  - max(e.at) FILTER (WHERE e.event_type = 'RECEIVED')) AS took
          FROM event e
          WHERE e.event_type IN ('RECEIVED', 'COMPLETED', 'FAILED', 'BUSINESS_RULE_FAILED', 'MOVED_TO_TSQ')
          GROUP BY e.command_id, e.lease_no) r
)
-- A domain younger than the interval has had less time.
SELECT least(extract(epoch FROM $2::text::interval),
             greatest(extract(epoch FROM statement_timestamp() - d.created_at), 1))::double precision AS seconds,
       a.arrivals, a.retries, a.in_busiest_minute, r.runs, r.mean_seconds::double precision AS mean_seconds,
       r.deviation_seconds::double precision AS deviation_seconds
FROM commandbus.domain d CROSS JOIN arrival a CROSS JOIN run r
WHERE d.domain = $1::text
