-- $1 domain, $2 worker, $3 command ids, $4 lease numbers, $5 vt_seconds
SELECT commandbus.extend($1::text, $2::text, $3::uuid[], $4::bigint[], $5::double precision)
