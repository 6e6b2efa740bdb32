-- $1 channel, $2 payload: and which backend sent it
SELECT pg_catalog.pg_notify($1::text, $2::text), pg_catalog.pg_backend_pid()
