-- $1 domain, $2 command id, $3 lease number
SELECT commandbus.hold_fence($1::text, $2::uuid, $3::bigint)
