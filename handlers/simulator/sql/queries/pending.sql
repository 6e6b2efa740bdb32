-- Confirmations and approvals that wait for a person.

--: keep_approval
-- $1 process_id, $2 command_id: a risk booking that waits for a person. Once for each command.
INSERT INTO payments.pending_approval (process_id, command_id, level, execution_model, status,
                                       created_at)
SELECT $1::uuid, $2::uuid, 'RISK',
       (SELECT p.execution_model::text FROM commandbus.process p WHERE p.process_id = $1::uuid),
       'PENDING', clock_timestamp()
WHERE NOT EXISTS (SELECT FROM payments.pending_approval a WHERE a.command_id = $2::uuid)

--: keep_network
-- $1 process_id, $2 command_id, $3 level, $4 execution_model: a confirmation that waits for a
-- person. Once for each level.
INSERT INTO payments.pending_network_response (process_id, command_id, level, execution_model,
                                               status, created_at)
SELECT $1::uuid, $2::uuid, $3::text, $4::text, 'PENDING', clock_timestamp()
WHERE NOT EXISTS (SELECT FROM payments.pending_network_response n
                  WHERE n.command_id = $2::uuid AND n.level = $3::text)

--: look
-- $1 process_id, $2 level: whether somebody has answered this level, and whether no answers are
-- needed behind it: the answer was an error, or the process goes back or has ended.
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
                        AND p.status NOT IN ('COMPLETED', 'COMPENSATING', 'COMPENSATED',
                                             'CANCELED', 'FAILED')) AS is_over
