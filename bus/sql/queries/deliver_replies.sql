-- $1 reply queue, $2 worker, $3 quantity, $4 grace_seconds. The columns are numbered in process_claim.c.
SELECT delivered, late, dead_lettered, taken, locked
FROM commandbus.deliver_replies($1::text, $2::text, $3::integer, $4::double precision)
