-- $1 seconds between two looks of the fleet, $2 how long a reply may take. One row a reply.
SELECT commandbus.keep_replies($1::double precision, $2::double precision)
