-- $1 to $3 ages as intervals or NULL: of commands, audit, archives; $4 rows in one round; $5 age of
-- processes
SELECT commands, batches, audit, archives, processes
FROM commandbus.purge($1::interval, $2::interval, $3::interval, $4::integer, $5::interval)
