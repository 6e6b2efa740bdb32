-- $1 process_type, $2 states (a JSON array), $3 deadline, $4 batch_id, $5 what refusals call the states, $6 ids and $7 deadlines
-- of them, $8 leased_by, $9 lease_seconds
SELECT count(*) FROM commandbus.start_processes($1::text, $2::jsonb, $3::timestamptz, $4::uuid, $5::text[], $6::text[]::uuid[],
                                                $7::text[]::timestamptz[], $8::text, $9::double precision)
