-- $1 process_id, $2 operator, $3 reason, $4 whether to run compensations
SELECT commandbus.process_cancel($1::uuid, $2::text, $3::text, $4::boolean)
