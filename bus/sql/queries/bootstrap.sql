-- No parameters. Runs at every migrate, as the migrating user, before the numbered files: what
-- needs more rights than the schema's owner has. Each statement is a no-op when already done.

-- The owner holds the schema and is what definer functions run as, so that no code of ours ever
-- runs as a superuser. The other four are what logins are made members of.
DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['commandbus_owner', 'commandbus_sender', 'commandbus_worker',
                                     'commandbus_operator', 'commandbus_monitor']
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
            EXCEPTION
                -- Roles belong to the whole server: a migrate of another database was faster.
                WHEN duplicate_object OR unique_violation THEN NULL;
                WHEN insufficient_privilege THEN
                    RAISE EXCEPTION 'role % does not exist and % may not create it', role_name, current_user
                    USING ERRCODE = 'insufficient_privilege',
                          HINT = 'Migrate once as a user with CREATEROLE, or create the five '
                                 'commandbus_ roles first (deploy/README.md).';
            END;
        END IF;
    END LOOP;

    -- From version 16 on who creates a role is a member of it, but may not become it without SET.
    IF NOT pg_has_role(current_user, 'commandbus_owner',
                       CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
        EXECUTE format('GRANT commandbus_owner TO %I', current_user);
    END IF;

    IF NOT pg_has_role('commandbus_worker', 'commandbus_sender', 'MEMBER') THEN
        GRANT commandbus_sender TO commandbus_worker;
    END IF;
    IF NOT pg_has_role('commandbus_operator', 'commandbus_monitor', 'MEMBER') THEN
        GRANT commandbus_monitor TO commandbus_operator;
    END IF;

    EXECUTE format('GRANT CREATE, TEMPORARY ON DATABASE %I TO commandbus_owner', current_database());
END
$$;

-- Servers that do not offer the extension can have its SQL in a schema pgmq instead (deploy/README.md). Code of ours
-- calls what is in there as the schema's owner, so it must come from who migrates, or from a superuser.
DO $$
BEGIN
    IF pg_catalog.to_regclass('pgmq.meta') IS NULL THEN
        CREATE EXTENSION IF NOT EXISTS pgmq;
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
                      WHERE n.nspname = 'pgmq' AND (o.rolsuper OR pg_catalog.pg_has_role(current_user, o.oid, 'USAGE'))) THEN
        RAISE EXCEPTION 'schema pgmq belongs to neither % nor a superuser', current_user
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Find out who made it; migrate as its owner, or drop it and install PGMQ again.';
    END IF;
END
$$;

-- Queues are made by register_domain, as the owner.
GRANT USAGE, CREATE ON SCHEMA pgmq TO commandbus_owner;
GRANT SELECT, INSERT ON pgmq.meta TO commandbus_owner;
GRANT USAGE ON SCHEMA pgmq TO commandbus_operator, commandbus_monitor;
GRANT SELECT ON pgmq.meta TO commandbus_operator, commandbus_monitor;

-- A schema that somebody else made could hold traps for whoever looks into it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_namespace
               WHERE nspname = 'commandbus' AND pg_catalog.pg_get_userbyid(nspowner) <> 'commandbus_owner') THEN
        RAISE EXCEPTION 'schema commandbus exists and is not owned by commandbus_owner'
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Find out who made it and what is in it, then drop it: migrate makes its own.';
    END IF;
END
$$;
CREATE SCHEMA IF NOT EXISTS commandbus AUTHORIZATION commandbus_owner;

-- What was applied, per component: 'commandbus' or the name of a handler set. oldest_binary is the
-- oldest version of our binaries that can still work on this schema (expand/contract). checksum is the SHA-256 of the
-- file, in hex: who comes with another file of that number was built from other sources.
CREATE TABLE IF NOT EXISTS commandbus.schema_version (
    component     text        NOT NULL,
    version       integer     NOT NULL,
    oldest_binary integer     NOT NULL,
    name          text        NOT NULL,
    checksum      text        NOT NULL,
    applied_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (component, version)
);
ALTER TABLE commandbus.schema_version OWNER TO commandbus_owner;
