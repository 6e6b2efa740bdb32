-- Sending commands.

--: send
-- $1 domain, $2 command_type, $3 data, $4 command_id, $5 correlation_id, $6 reply_to,
-- $7 max_attempts, $8 delay_seconds, $9 timeout_seconds, $10 batch_id, $11 headers
SELECT commandbus.send($1::text, $2::text, $3::jsonb, $4::uuid, $5::uuid, $6::text, $7::integer,
                       $8::double precision, $9::integer, $10::uuid, $11::jsonb)

--: send_arrays
-- $1 command_types, $2 data, $3 command_ids, $4 correlation_ids, $5 reply_tos, $6 max_attempts,
-- $7 delay_seconds, $8 timeout_seconds, $9 headers, $10 domains, $11 batch_ids: an element for each
-- command, or NULL. How many were sent.
SELECT cardinality(commandbus.send_arrays($10::text[], $1::text[], $2::jsonb[], $3::uuid[],
                                          $4::uuid[], $5::text[], $6::integer[],
                                          $7::double precision[], $8::integer[], $11::uuid[],
                                          $9::jsonb[]))
