-- $1 process_type, $2 states (a JSON array), $3 name, $4 reply_to, $5 custom_data, $6 batch_id, $7 deadline,
-- $8 what refusals call the states, $9 ids and $10 deadlines of them, $11 leased_by, $12 lease_seconds
SELECT commandbus.start_batch($1::text, $2::jsonb, $3::text, $4::text, $5::jsonb, $6::uuid, $7::timestamptz, $8::text[],
                              $9::text[]::uuid[], $10::text[]::timestamptz[], $11::text, $12::double precision)
