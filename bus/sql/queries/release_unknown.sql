-- $1 domain, $2 worker, $3 and $4 the command ids and lease numbers that the worker knows
SELECT commandbus.release_unknown($1::text, $2::text, $3::uuid[], $4::bigint[])
