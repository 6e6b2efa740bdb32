-- $1 component. One row; zeros when the component was never migrated.
SELECT coalesce(max(version), 0) AS version, coalesce(max(oldest_binary), 0) AS oldest_binary
FROM commandbus.schema_version WHERE component = $1::text
