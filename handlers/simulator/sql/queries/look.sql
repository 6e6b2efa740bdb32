-- $1 process_id, $2 level: whether somebody has answered this level, and whether the process needs no answers any more.
SELECT EXISTS (SELECT FROM commandbus.process_inbox i
               WHERE i.process_id = $1::uuid AND i.kind = 'RESPONSE' AND i.name = $2)
       OR EXISTS (SELECT FROM commandbus.process_history h
                  WHERE h.process_id = $1::uuid AND h.kind = 'RESPONSE' AND h.name = $2) AS is_answered,
       NOT EXISTS (SELECT FROM commandbus.process p
                   WHERE p.process_id = $1::uuid
                         AND p.status NOT IN ('COMPLETED', 'COMPENSATED', 'CANCELED', 'FAILED')) AS is_over
