-- Migrating, and which schema a database has.

--: bootstrap
-- No parameters. Runs at every migrate, as the migrating user, before anything else: what
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
                    RAISE EXCEPTION 'role % does not exist and % may not create it',
                        role_name, current_user
                    USING ERRCODE = 'insufficient_privilege',
                          HINT = 'Migrate once as a user with CREATEROLE, or create the five '
                                 'commandbus_ roles first (deploy/README.md).';
            END;
        END IF;
    END LOOP;

    -- From version 16 on who creates a role is a member of it, but may not become it without SET.
    IF NOT pg_has_role(current_user, 'commandbus_owner',
                       CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET'
                            ELSE 'MEMBER' END) THEN
        BEGIN
            EXECUTE format('GRANT commandbus_owner TO %I', current_user);
        EXCEPTION
            -- From version 16 on CREATEROLE is not enough for a role that somebody else created.
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION '% is not a member of commandbus_owner and may not make itself one',
                    current_user
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('As a superuser, or as who created the role: GRANT '
                                    'commandbus_owner TO %I', current_user);
        END;
    END IF;

    IF NOT pg_has_role('commandbus_worker', 'commandbus_sender', 'MEMBER') THEN
        GRANT commandbus_sender TO commandbus_worker;
    END IF;
    IF NOT pg_has_role('commandbus_operator', 'commandbus_monitor', 'MEMBER') THEN
        GRANT commandbus_monitor TO commandbus_operator;
    END IF;

    EXECUTE format('GRANT CREATE, TEMPORARY ON DATABASE %I TO commandbus_owner',
                   current_database());
END
$$;

-- Servers that do not offer the extension can have its SQL in a schema pgmq instead
-- (deploy/README.md). Code of ours calls what is in there as the schema's owner, so it must come
-- from who migrates, or from a superuser.
DO $$
BEGIN
    IF pg_catalog.to_regclass('pgmq.meta') IS NULL THEN
        CREATE EXTENSION IF NOT EXISTS pgmq;
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n
                      JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
                      WHERE n.nspname = 'pgmq'
                        AND (o.rolsuper
                             OR pg_catalog.pg_has_role(current_user, o.oid, 'USAGE'))) THEN
        RAISE EXCEPTION 'schema pgmq belongs to neither % nor a superuser', current_user
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Find out who made it; migrate as its owner, or drop it and install PGMQ '
                     'again.';
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
               WHERE nspname = 'commandbus'
                 AND pg_catalog.pg_get_userbyid(nspowner) <> 'commandbus_owner') THEN
        RAISE EXCEPTION 'schema commandbus exists and is not owned by commandbus_owner'
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Find out who made it and what is in it, then drop it: migrate makes its own.';
    END IF;
END
$$;
CREATE SCHEMA IF NOT EXISTS commandbus AUTHORIZATION commandbus_owner;

-- What was applied, per component: 'commandbus' or the name of a handler set. oldest_binary is the
-- oldest version of our binaries that can still work on this schema (expand/contract). checksum is
-- the SHA-256 of the file, in hex: who comes with another file of that number was built from other
-- sources.
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

--: migrate_begin
-- No parameters, several statements. One client migrates at a time (the key is 'cmdbus' in ASCII);
-- waiting for that may take long, waiting for a table may not: workers queue up behind us.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SELECT pg_catalog.pg_advisory_xact_lock(109321486759283);
-- Whoever registers a domain writes functions that we write too: one after the other.
SELECT pg_catalog.pg_advisory_xact_lock(
    pg_catalog.hashtextextended('commandbus.register_domain', 0));
SET LOCAL lock_timeout = '5s';
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

--: migrate_grant
-- No parameters. What may be done in a database is not part of it: one that was restored or copied
-- lacks what the bootstrap granted there.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'commandbus_owner'
               AND NOT pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(),
                                                         'CREATE')) THEN
        EXECUTE pg_catalog.format('GRANT CREATE, TEMPORARY ON DATABASE %I TO commandbus_owner',
                                  pg_catalog.current_database());
    END IF;
END
$$;

--: migrate_as_owner
-- No parameters. Numbered files run as the schema's owner, whoever migrates.
SET LOCAL ROLE commandbus_owner

--: pgmq_version
-- No parameters. One row: the version of pgmq in this database, and the one the server offers.
-- Without the extension, its SQL may have been run by hand: that keeps no version, but topics came
-- with 1.11.
SELECT coalesce((SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pgmq'),
                (SELECT CASE WHEN bool_or(c.relname = 'topic_bindings') THEN '1.11' ELSE '1.0' END
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'pgmq' AND c.relname IN ('meta', 'topic_bindings')
                 HAVING count(*) > 0)) AS installed,
       (SELECT default_version FROM pg_catalog.pg_available_extensions
        WHERE name = 'pgmq') AS offered

--: schema_exists
-- No parameters. NULL where nobody has migrated yet. A schema or table of another owner is none of
-- ours: reading it could run that owner's code.
SELECT (SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'commandbus' AND c.relname = 'schema_version' AND c.relkind = 'r'
          AND pg_catalog.pg_get_userbyid(n.nspowner) = 'commandbus_owner'
          AND pg_catalog.pg_get_userbyid(c.relowner) = 'commandbus_owner')

--: schema_version
-- $1 component. One row a file that was applied, in their order. A database of before checksums
-- were kept has no such column: NULL.
SELECT version, oldest_binary, name, pg_catalog.to_jsonb(v) ->> 'checksum' AS checksum
FROM commandbus.schema_version v WHERE component = $1::text ORDER BY version

--: schema_record
-- $1 component, $2 version, $3 oldest_binary, $4 name of the file, $5 SHA-256 of its bytes in hex
INSERT INTO commandbus.schema_version (component, version, oldest_binary, name, checksum)
VALUES ($1::text, $2::integer, $3::integer, $4::text, $5::text)

--: schema_checksum
-- $1 the bytes of a file. As embed_sql() computes it for the files of the bus.
SELECT pg_catalog.encode(pg_catalog.sha256($1::bytea), 'hex')

--: migrate_as_self
-- No parameters. As whoever migrates again.
SET LOCAL ROLE NONE

--: functions_record
-- $1 release, $2 checksum of the functions and views that were applied
INSERT INTO commandbus.schema_version (component, version, oldest_binary, name, checksum)
VALUES ('commandbus.functions', 1, 1, $1::text, $2::text)
ON CONFLICT (component, version)
DO UPDATE SET name = excluded.name, checksum = excluded.checksum, applied_at = pg_catalog.now()

--: functions_begin
-- No parameters. Bodies name functions of files that follow.
SET LOCAL check_function_bodies = off

--: functions_end
-- No parameters. Each queue has functions of its own, made by those that were just replaced.
SELECT commandbus.renew_queue_functions()

--: schema_adopt
-- No parameters. One row when the database has the layout of before 0.1.0, whose 21 files held
-- tables and functions together: its rows are gone then, and who asks records the files of today
-- instead, which hold the same tables.
WITH former AS (
    SELECT FROM commandbus.schema_version WHERE component = 'commandbus'
    HAVING pg_catalog.md5(pg_catalog.string_agg(checksum, ',' ORDER BY version))
           = 'd9ffe877df94195881f8d4b85d0b5e77'
), gone AS (
    DELETE FROM commandbus.schema_version
    WHERE component = 'commandbus' AND EXISTS (SELECT FROM former) RETURNING version
)
SELECT pg_catalog.count(*) FROM gone HAVING pg_catalog.count(*) > 0
