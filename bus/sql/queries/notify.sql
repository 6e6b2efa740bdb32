-- $1 channel, $2 payload
SELECT pg_catalog.pg_notify($1::text, $2::text)
