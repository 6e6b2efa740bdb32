-- $1 process_id, $2 operator, $3 reason, $4 overrides or NULL
SELECT commandbus.process_complete($1::uuid, $2::text, $3::text, $4::jsonb)
