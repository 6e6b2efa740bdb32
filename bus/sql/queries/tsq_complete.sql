-- $1 domain, $2 command_id, $3 operator, $4 reason, $5 result
SELECT commandbus.tsq_complete($1::text, $2::uuid, $3::text, $4::text, $5::jsonb)
