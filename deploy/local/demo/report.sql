-- What the payments say beside what the simulator has booked. :asked, :accepted, :ms, :allowed; what the simulator says is
-- in files of $DEMO_WORK; the report goes to :'file' as JSON and, for people, to stdout.
\set stats `cat "$DEMO_WORK/stats.json"`
\set fx `cat "$DEMO_WORK/fx.json"`
\set risk `cat "$DEMO_WORK/risk.json"`
\set gateway `cat "$DEMO_WORK/gateway.json"`
CREATE TEMP VIEW booking AS
SELECT b.api, p.process_id, p.status, (b.e ->> 'released')::integer AS released
FROM (SELECT 'fx' AS api, e FROM jsonb_array_elements(:'fx'::jsonb) e
      UNION ALL SELECT 'risk', e FROM jsonb_array_elements(:'risk'::jsonb) e
      UNION ALL SELECT 'gateway', e FROM jsonb_array_elements(:'gateway'::jsonb) e) b
LEFT JOIN commandbus.command_metadata c ON c.command_id::text = lower(b.e ->> 'key')
LEFT JOIN commandbus.process p ON p.process_id = c.correlation_id
WHERE b.e ->> 'status' <> 'DECLINED';

CREATE TEMP TABLE report AS
WITH payment AS (
    SELECT count(*) AS started,
           count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
           count(*) FILTER (WHERE status = 'COMPENSATED') AS compensated,
           count(*) FILTER (WHERE status IN ('FAILED', 'CANCELED')) AS failed,
           count(*) FILTER (WHERE status = 'WAITING_FOR_TSQ') AS parked
    FROM commandbus.process WHERE process_type = 'PaymentStep'
), booked AS (
    SELECT count(*) FILTER (WHERE api = 'fx') AS fx, count(*) FILTER (WHERE api = 'risk') AS risk,
           count(*) - count(DISTINCT (api, process_id)) AS twice,
           count(*) FILTER (WHERE released > 1) AS released_twice,
           -- Of nobody's, not released though undone, released though complete.
           count(*) FILTER (WHERE process_id IS NULL
                               OR api <> 'gateway' AND status IN ('COMPENSATED', 'FAILED', 'CANCELED') AND released = 0
                               OR status = 'COMPLETED' AND released > 0) AS left_behind
    FROM booking
), unpaid AS (
    -- Complete, and nobody has submitted it, judged its risk or changed its money.
    SELECT count(*) AS missing
    FROM commandbus.process p
    CROSS JOIN LATERAL (VALUES ('gateway'), ('risk'),
        (CASE WHEN p.state ->> 'debitCurrency' <> p.state ->> 'creditCurrency' THEN 'fx' END)) AS needs(api)
    WHERE p.process_type = 'PaymentStep' AND p.status = 'COMPLETED' AND needs.api IS NOT NULL
      AND NOT EXISTS (SELECT FROM booking b WHERE b.process_id = p.process_id AND b.api = needs.api)
), simulator AS (SELECT :'stats'::jsonb AS s)
SELECT jsonb_build_object(
    'payments', jsonb_build_object('asked', :asked, 'accepted', :accepted, 'started', started, 'completed', completed,
        'compensated', compensated, 'failed', failed, 'in_troubleshooting', parked),
    'seconds', round(:ms / 1000.0, 1), 'payments_per_second', round(started * 1000.0 / :ms, 1),
    'fx', jsonb_build_object('calls', s #> '{fx,calls}', 'most_in_flight', s #> '{fx,most_in_flight}', 'limit', :allowed,
        'refused_429', s #> '{fx,rejected_429}', 'booked', fx),
    'risk', jsonb_build_object('calls', s #> '{risk,calls}', 'most_in_flight', s #> '{risk,most_in_flight}', 'limit', :allowed,
        'refused_429', s #> '{risk,rejected_429}', 'booked', risk),
    'lost', greatest(:asked, started) - (completed + compensated + failed + parked) + missing,
    'duplicates', twice + released_twice, 'left_behind', left_behind) AS r
FROM payment, booked, unpaid, simulator;

UPDATE report SET r = r || jsonb_build_object('well', (r ->> 'lost')::integer = 0 AND (r ->> 'duplicates')::integer = 0
    AND (r ->> 'left_behind')::integer = 0 AND (r #>> '{fx,most_in_flight}')::integer <= :allowed
    AND (r #>> '{risk,most_in_flight}')::integer <= :allowed);

\o :file
SELECT jsonb_pretty(r) FROM report;
\o
SELECT format(E'\npayments    %s asked for, %s started: %s complete, %s undone, %s failed, %s in troubleshooting\n'
              'throughput  %s payments/s, %s s in all\n'
              'fx          %s calls, most in flight %s, limit %s\n'
              'risk        %s calls, most in flight %s, limit %s\n'
              'lost = %s, duplicates = %s, left behind = %s: %s',
    r #>> '{payments,asked}', r #>> '{payments,started}', r #>> '{payments,completed}', r #>> '{payments,compensated}',
    r #>> '{payments,failed}', r #>> '{payments,in_troubleshooting}', r ->> 'payments_per_second', r ->> 'seconds',
    r #>> '{fx,calls}', r #>> '{fx,most_in_flight}', r #>> '{fx,limit}',
    r #>> '{risk,calls}', r #>> '{risk,most_in_flight}', r #>> '{risk,limit}',
    r ->> 'lost', r ->> 'duplicates', r ->> 'left_behind', CASE WHEN (r ->> 'well')::boolean THEN 'all is well' ELSE 'NOT WELL' END)
FROM report;
