-- $1 process_id, $2 command_id, $3 level, $4 execution_model: a confirmation that waits for a person. Once for each level.
INSERT INTO payments.pending_network_response (process_id, command_id, level, execution_model, status, created_at)
SELECT $1::uuid, $2::uuid, $3::text, $4::text, 'PENDING', clock_timestamp()
WHERE NOT EXISTS (SELECT FROM payments.pending_network_response n WHERE n.command_id = $2::uuid AND n.level = $3::text)
