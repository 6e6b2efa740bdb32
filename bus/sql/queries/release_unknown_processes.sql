-- $1 worker, $2 process types, $3 and $4 the process ids and lease numbers that the worker knows
SELECT commandbus.release_unknown_processes($1::text, $2::text[], $3::uuid[], $4::bigint[])
