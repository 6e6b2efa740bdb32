-- Sending commands.

--: send
-- $1 domain, $2 command_type, $3 data, $4 command_id, $5 correlation_id, $6 reply_to,
-- $7 max_attempts, $8 delay_seconds, $9 timeout_seconds, $10 batch_id, $11 headers
SELECT commandbus.send($1::text, $2::text, $3::jsonb, $4::uuid, $5::uuid, $6::text, $7::integer,
                       $8::double precision, $9::integer, $10::uuid, $11::jsonb)

--: send_many
-- $1 commands, a JSON array. One row a command, in order.
SELECT commandbus.send_many($1::jsonb)
