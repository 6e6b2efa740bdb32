-- No parameters. Each type with what is due and what waits for an operator, from the indexes alone. A running
-- process is not due: its wake_at is the end of its lease.
SELECT t.domain, t.process_type, t.version, t.execution_model, due.processes AS due,
       round(extract(epoch FROM clock.now - due.oldest), 3) AS waiting_seconds, parked.processes AS in_tsq
FROM (SELECT commandbus.now() AS now) clock
CROSS JOIN commandbus.process_type t
CROSS JOIN LATERAL (SELECT sum(f.processes) AS processes, min(f.oldest) AS oldest
                    FROM (SELECT count(*) AS processes, min(p.wake_at) AS oldest FROM commandbus.process p
                          WHERE p.process_type = t.process_type AND p.wake_at <= clock.now AND p.lease_owner IS NULL
                          UNION ALL
                          SELECT count(*), min(p.wake_at) FROM commandbus.process p
                          WHERE p.process_type = t.process_type AND p.wake_at <= clock.now AND p.lease_owner IS NOT NULL) f) due
CROSS JOIN LATERAL (SELECT count(*) AS processes FROM commandbus.process p
                    WHERE p.domain = t.domain AND p.tsq_at IS NOT NULL AND p.process_type = t.process_type) parked
ORDER BY t.domain, t.process_type
