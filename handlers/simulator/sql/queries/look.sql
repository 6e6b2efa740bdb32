-- $1 process_id, $2 level: whether somebody has answered this level, and whether no answers are needed behind it: the
-- answer was an error, or the process goes back or has ended.
WITH answers AS (
    SELECT i.payload FROM commandbus.process_inbox i
    WHERE i.process_id = $1::uuid AND i.kind = 'RESPONSE' AND i.name = $2
    UNION ALL
    SELECT h.result FROM commandbus.process_history h
    WHERE h.process_id = $1::uuid AND h.kind = 'RESPONSE' AND h.name = $2
)
SELECT EXISTS (SELECT FROM answers) AS is_answered,
       EXISTS (SELECT FROM answers a WHERE a.payload ? 'error')
       OR NOT EXISTS (SELECT FROM commandbus.process p
                      WHERE p.process_id = $1::uuid
                            AND p.status NOT IN ('COMPLETED', 'COMPENSATING', 'COMPENSATED', 'CANCELED', 'FAILED')) AS is_over
