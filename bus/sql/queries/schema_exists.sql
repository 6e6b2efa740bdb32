-- No parameters. NULL where nobody has migrated yet. A schema or table of another owner is none of ours:
-- reading it could run that owner's code.
SELECT (SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'commandbus' AND c.relname = 'schema_version' AND c.relkind = 'r'
          AND pg_catalog.pg_get_userbyid(n.nspowner) = 'commandbus_owner'
          AND pg_catalog.pg_get_userbyid(c.relowner) = 'commandbus_owner')
