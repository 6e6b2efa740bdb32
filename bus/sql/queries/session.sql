-- Transactions and what a session is set to.

--: begin
-- No parameters. Says what our transactions need, whatever role, database and server have for a
-- default.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE

--: begin_reading
-- No parameters. For look-ups, which also a standby answers.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY

--: commit
-- No parameters.
COMMIT

--: rollback
-- No parameters.
ROLLBACK

--: lock_timeout
-- $1 milliseconds, as text. For the rest of this transaction.
SELECT pg_catalog.set_config('lock_timeout', $1::text, true)

--: search_path_ours
-- No parameters. For the rest of this transaction names mean the server's own; remembers what they
-- meant.
SELECT pg_catalog.set_config('commandbus.search_path', pg_catalog.current_setting('search_path'),
                             true),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)

--: search_path_back
-- No parameters. Names mean again what they meant before search_path_ours.
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('commandbus.search_path'),
                             true)

--: server_clock
-- No parameters. Microseconds since 1970.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint

--: backend_pid
-- No parameters.
SELECT pg_catalog.pg_backend_pid()
