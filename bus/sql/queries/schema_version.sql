-- $1 component. One row a file that was applied, in their order. A database of before checksums were kept has no such column:
-- NULL.
SELECT version, oldest_binary, name, pg_catalog.to_jsonb(v) ->> 'checksum' AS checksum
FROM commandbus.schema_version v WHERE component = $1::text ORDER BY version
