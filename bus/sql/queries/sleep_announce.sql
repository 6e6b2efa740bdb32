-- $1 worker, $2 queue names, $3 seconds
SELECT commandbus.sleep_announce($1::text, $2::text[], $3::double precision)
