-- No parameters. Microseconds since 1970.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint
