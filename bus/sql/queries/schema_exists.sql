-- No parameters. NULL where nobody has migrated yet.
SELECT pg_catalog.to_regclass('commandbus.schema_version')
