-- No parameters. One row: the version of pgmq in this database, and the one the server offers.
SELECT (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pgmq') AS installed,
       (SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = 'pgmq') AS offered
