-- No parameters. Every domain of the database in figures, whoever serves it; whole microseconds.
SELECT domain, instances, fleet_limit, live_leases, in_tsq, (oldest_due_seconds * 1000000)::bigint AS oldest_due_us
FROM commandbus.domain_figures()
