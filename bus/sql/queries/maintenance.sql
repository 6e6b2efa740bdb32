-- What instances do for all, and retention.

--: keep_messages
-- $1 domain. One row a command that got a new message.
SELECT commandbus.keep_messages($1::text)

--: keep_replies
-- $1 seconds between two looks of the fleet, $2 how long a reply may take. One row a reply.
SELECT commandbus.keep_replies($1::double precision, $2::double precision)

--: restore_messages
-- $1 domain. One row a command that got a new message.
SELECT commandbus.restore_messages($1::text)

--: purge
-- $1 to $3 ages as intervals or NULL: of commands, audit, archives; $4 rows in one round; $5 age of
-- processes
SELECT commands, batches, audit, archives, processes
FROM commandbus.purge($1::interval, $2::interval, $3::interval, $4::integer, $5::interval)
