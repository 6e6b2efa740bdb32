-- $1 process_id, $2 command_id: a risk booking that waits for a person. Once for each command.
INSERT INTO payments.pending_approval (process_id, command_id, level, execution_model, status, created_at)
SELECT $1::uuid, $2::uuid, 'RISK', (SELECT p.execution_model::text FROM commandbus.process p WHERE p.process_id = $1::uuid),
       'PENDING', clock_timestamp()
WHERE NOT EXISTS (SELECT FROM payments.pending_approval a WHERE a.command_id = $2::uuid)
