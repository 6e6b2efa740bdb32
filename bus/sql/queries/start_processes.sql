-- $1 process_type, $2 states (a JSON array), $3 deadline, $4 batch_id, $5 what refusals call the states
SELECT count(*) FROM commandbus.start_processes($1::text, $2::jsonb, $3::timestamptz, $4::uuid, $5::text[])
