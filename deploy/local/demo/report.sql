-- What came of it, by ledger.sql and its variables and what the simulator says of itself
-- ($BOOKINGS/stats.json). :ms is how long it took, :allowed the limit; the report goes to
-- $BOOKINGS/report.json and, for people, to stdout.
\ir ledger.sql
\set stats `cat "$BOOKINGS/stats.json"`

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
           count(*) FILTER (WHERE api = 'gateway') AS submitted,
           count(*) FILTER (WHERE api = 'gateway' AND status = 'COMPENSATED') AS undone_after
    FROM booking WHERE booked
), wrong AS (
    SELECT count(*) FILTER (WHERE kind = 'lost') AS lost,
           count(*) FILTER (WHERE kind = 'duplicate') AS duplicates,
           count(*) FILTER (WHERE kind = 'left_behind') AS left_behind,
           coalesce(jsonb_agg(what ORDER BY kind, what), '[]') AS problems
    FROM problem
), simulator AS (SELECT :'stats'::jsonb AS s)
SELECT jsonb_build_object(
    'payments', jsonb_build_object('asked', :asked, 'accepted', :accepted, 'started', started,
        'completed', completed, 'compensated', compensated,
        'compensated_after_submission', undone_after, 'failed', failed,
        'in_troubleshooting', parked),
    'seconds', round(:ms / 1000.0, 1), 'payments_per_second', round(started * 1000.0 / :ms, 1),
    'fx', jsonb_build_object('calls', s #> '{fx,calls}',
        'most_in_flight', s #> '{fx,most_in_flight}', 'limit', :allowed,
        'refused_429', s #> '{fx,rejected_429}', 'booked', fx),
    'risk', jsonb_build_object('calls', s #> '{risk,calls}',
        'most_in_flight', s #> '{risk,most_in_flight}', 'limit', :allowed,
        'refused_429', s #> '{risk,rejected_429}', 'booked', risk),
    'gateway', jsonb_build_object('calls', s #> '{gateway,calls}', 'submitted', submitted),
    'lost', lost, 'duplicates', duplicates, 'left_behind', left_behind, 'problems', problems) AS r
FROM payment, booked, wrong, simulator;

UPDATE report SET r = r || jsonb_build_object('well', r -> 'problems' = '[]'
    AND (r #>> '{fx,most_in_flight}')::integer <= :allowed
    AND (r #>> '{risk,most_in_flight}')::integer <= :allowed);

\o | cat >"$BOOKINGS/report.json"
SELECT jsonb_pretty(r) FROM report;
\o
SELECT format(E'\npayments    %s asked for, %s started: %s complete, %s undone%s, %s failed, %s in '
              'troubleshooting\nthroughput  %s payments/s, %s s in all\n'
              'fx          %s calls, most in flight %s, limit %s\n'
              'risk        %s calls, most in flight %s, limit %s\n'
              'lost = %s, duplicates = %s, left behind = %s: %s',
    r #>> '{payments,asked}', r #>> '{payments,started}', r #>> '{payments,completed}',
    r #>> '{payments,compensated}',
    CASE WHEN r #>> '{payments,compensated_after_submission}' <> '0'
         THEN format(' (%s of them after submission)',
                     r #>> '{payments,compensated_after_submission}') END,
    r #>> '{payments,failed}', r #>> '{payments,in_troubleshooting}', r ->> 'payments_per_second',
    r ->> 'seconds', r #>> '{fx,calls}', r #>> '{fx,most_in_flight}', r #>> '{fx,limit}',
    r #>> '{risk,calls}', r #>> '{risk,most_in_flight}', r #>> '{risk,limit}',
    r ->> 'lost', r ->> 'duplicates', r ->> 'left_behind',
    CASE WHEN (r ->> 'well')::boolean THEN 'all is well' ELSE 'NOT WELL' END)
FROM report;
SELECT '  ' || what FROM (SELECT what FROM problem ORDER BY kind, what LIMIT 10) AS first;
