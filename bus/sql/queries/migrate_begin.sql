-- No parameters, several statements. One client migrates at a time (the key is 'cmdbus' in ASCII);
-- waiting for that may take long, waiting for a table may not: workers queue up behind us.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SELECT pg_catalog.pg_advisory_xact_lock(109321486759283);
SET LOCAL lock_timeout = '5s';
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
