-- No parameters. Instances and their domains: limits that disagree, silence, work that nobody does.
WITH said AS (
    SELECT d.domain, d.fleet_limit AS in_force, f.fleet_limit AS configured, string_agg(f.worker, ', ' ORDER BY f.worker) AS workers
    FROM commandbus.domain d JOIN commandbus.fleet f ON f.domain = d.domain AND f.live AND f.fleet_limit IS NOT NULL
    GROUP BY d.domain, d.fleet_limit, f.fleet_limit
), limits AS (
    SELECT format('%s: %s is in force, but %s', s.domain, CASE s.in_force WHEN 0 THEN 'no limit' ELSE s.in_force::text END,
                  string_agg(format('%s says %s', s.workers, s.configured), '; ' ORDER BY s.configured)) AS detail,
           format('The last to start wins: give domains.%s.fleet-limit one value in every profile, and start again who says '
                  'another.', s.domain) AS advice
    FROM said s GROUP BY s.domain, s.in_force HAVING bool_or(s.configured <> s.in_force)
    UNION ALL
    SELECT format('%s: the limit %s is in force, but no live instance configures it', d.domain, d.fleet_limit),
           format('To keep it: domains.%s.fleet-limit = %s. To take it away: fleet-limit = 0, or as a worker '
                  'SELECT commandbus.set_fleet_limit(%L, 0).', d.domain, d.fleet_limit, d.domain)
    FROM commandbus.domain d
    WHERE d.fleet_limit > 0 AND NOT EXISTS (SELECT FROM said s WHERE s.domain = d.domain)
), instance AS (
    SELECT w.worker, w.details ->> 'host' AS host, coalesce(w.details ->> 'profile', 'no profile') AS profile,
           extract(epoch FROM statement_timestamp() - w.heartbeat_at)::bigint AS age
    FROM commandbus.worker w
), domain AS MATERIALIZED (
    SELECT f.* FROM commandbus.fleet_domains() f
)
SELECT 'fleet limits' AS check_name, 'warn' AS status, l.detail, l.advice FROM limits l
UNION ALL
SELECT 'fleet limits', 'ok', CASE count(*) WHEN 0 THEN 'none is set' ELSE string_agg(d.domain || ' ' || d.fleet_limit, ', '
                                                                                     ORDER BY d.domain) END, NULL
FROM commandbus.domain d WHERE d.fleet_limit > 0 HAVING NOT EXISTS (SELECT FROM limits)
UNION ALL
SELECT 'instances', 'warn',
       CASE count(*) WHEN 1 THEN format('%s%s has been silent for %s s', min(i.worker), ' on ' || min(i.host), min(i.age))
            ELSE format('%s of %s have been silent for %s s: %s%s', count(*), i.profile,
                        concat_ws(' to ', min(i.age), nullif(max(i.age), min(i.age))),
                        array_to_string((array_agg(i.worker ORDER BY i.worker))[1:5], ', '),
                        CASE WHEN count(*) > 5 THEN format(' and %s more', count(*) - 5) END) END,
       'See their logs: they died, hang or cannot reach the database. Others take over what they held; they are forgotten '
       'after a day.'
FROM instance i WHERE i.age > 60 GROUP BY i.profile
UNION ALL
SELECT 'instances', 'ok', format('%s alive', count(*)), NULL FROM instance i WHERE i.age <= 60
UNION ALL
SELECT 'served domains', 'warn', format('%s: %s messages are due, the first for %s s, and no live instance serves it', d.domain,
                                        d.visible, floor(d.waiting_seconds)),
       format('Start a worker whose profile enables domains.%s.', d.domain)
FROM domain d WHERE 'NOBODY_SERVES' = ANY (d.problems)
UNION ALL
SELECT 'served domains', 'ok', 'nothing waits for an instance', NULL
WHERE NOT EXISTS (SELECT FROM domain d WHERE 'NOBODY_SERVES' = ANY (d.problems))
UNION ALL
SELECT 'live leases', 'warn',
       format('%s: %s, more than %s', d.domain, d.live_leases,
              CASE WHEN 'LEASES_OVER_LIMIT' = ANY (d.problems) THEN 'the fleet-limit ' || d.fleet_limit
                   ELSE format('the %s slots of %s live instances', d.slots, d.instances) END),
       CASE WHEN 'LEASES_OVER_LIMIT' = ANY (d.problems) THEN 'The limit was lowered a moment ago? Then this ends by itself; '
                 'else look at who changes commandbus.domain by hand.'
            ELSE 'Dead instances keep their leases for one visibility timeout; if it lasts, something claims without a '
                 'heartbeat: see lease_owner in commandbus.command_metadata.' END
FROM domain d WHERE d.problems && '{LEASES_OVER_LIMIT,LEASES_OVER_SLOTS}'
UNION ALL
SELECT 'live leases', 'ok', format('%s, within slots and limits', coalesce(sum(d.live_leases), 0)), NULL
FROM domain d HAVING NOT coalesce(bool_or(d.problems && '{LEASES_OVER_LIMIT,LEASES_OVER_SLOTS}'), false)
