-- No parameters. Domains with what the fleet offers them and what waits.
SELECT f.domain, f.instances, f.slots_each, f.slots, f.prefetch, f.in_flight, f.live_leases, f.fleet_limit, f.depth, f.visible,
       round(f.oldest_age_seconds::numeric, 3) AS oldest_age_seconds,
       round(f.waiting_seconds::numeric, 3) AS waiting_seconds, f.total_sent, to_jsonb(f.problems) AS problems
FROM commandbus.fleet_domains() f
ORDER BY f.domain
