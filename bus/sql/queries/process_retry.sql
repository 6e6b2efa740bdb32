-- $1 process_id, $2 operator, $3 reason, $4 new deadline or NULL
SELECT commandbus.process_retry($1::uuid, $2::text, $3::text, $4::timestamptz)
