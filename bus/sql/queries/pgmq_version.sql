-- No parameters. One row: the version of pgmq in this database, and the one the server offers. Without the extension, its SQL
-- may have been run by hand: that keeps no version, but topics came with 1.11.
SELECT coalesce((SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pgmq'),
                (SELECT CASE WHEN bool_or(c.relname = 'topic_bindings') THEN '1.11' ELSE '1.0' END
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'pgmq' AND c.relname IN ('meta', 'topic_bindings') HAVING count(*) > 0)) AS installed,
       (SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = 'pgmq') AS offered
