-- No parameters. What may be done in a database is no part of it: one that was restored or copied lacks what the
-- bootstrap granted there.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'commandbus_owner'
               AND NOT pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'CREATE')) THEN
        EXECUTE pg_catalog.format('GRANT CREATE, TEMPORARY ON DATABASE %I TO commandbus_owner', pg_catalog.current_database());
    END IF;
END
$$;
