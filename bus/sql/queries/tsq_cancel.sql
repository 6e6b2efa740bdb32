-- $1 domain, $2 command_id, $3 operator, $4 reason
SELECT commandbus.tsq_cancel($1::text, $2::uuid, $3::text, $4::text)
