-- $1 to $3 ages as intervals or NULL: of commands, audit, archives; $4 rows in one round
SELECT commands, batches, audit, archives
FROM commandbus.purge($1::interval, $2::interval, $3::interval, $4::integer)
