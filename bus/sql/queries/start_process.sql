-- $1 process_type, $2 state, $3 process_id, $4 deadline, $5 batch_id, $6 leased_by, $7 lease_seconds
SELECT commandbus.start_process($1::text, $2::jsonb, $3::uuid, $4::timestamptz, $5::uuid, $6::text,
                                $7::double precision)
