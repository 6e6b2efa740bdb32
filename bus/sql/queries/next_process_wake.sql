-- $1 process types, $2 their versions, $3 vt_seconds
SELECT commandbus.next_process_wake($1::text[], $2::bigint[]::integer[], $3::double precision)
