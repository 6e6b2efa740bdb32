-- No parameters. What can be said without the bus's schema: PostgreSQL, PGMQ, roles, settings.
WITH pgmq AS (
    SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'pgmq'),
                    (SELECT CASE WHEN bool_or(c.relname = 'topic_bindings') THEN '1.11' ELSE '1.0' END
                     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                     WHERE n.nspname = 'pgmq' AND c.relname IN ('meta', 'topic_bindings') HAVING count(*) > 0)) AS installed,
           (SELECT default_version FROM pg_available_extensions WHERE name = 'pgmq') AS offered
), role AS (
    SELECT name, pg_roles.oid IS NOT NULL AS there,
           CASE WHEN pg_roles.oid IS NOT NULL THEN pg_has_role(pg_roles.oid, 'MEMBER') END AS member
    FROM unnest(ARRAY['commandbus_owner', 'commandbus_sender', 'commandbus_worker',
                      'commandbus_operator', 'commandbus_monitor']) WITH ORDINALITY r(name, ord)
    LEFT JOIN pg_roles ON rolname = name
)
SELECT 'postgresql' AS check_name,
       CASE WHEN current_setting('server_version_num')::integer >= 150000 THEN 'ok' ELSE 'fail' END AS status,
       'version ' || current_setting('server_version') AS detail,
       CASE WHEN current_setting('server_version_num')::integer < 150000
            THEN 'PostgreSQL 15 or newer is needed.' END AS advice
UNION ALL
SELECT 'pgmq',
       CASE WHEN string_to_array(split_part(installed, '-', 1), '.')::integer[] >= ARRAY[1, 11] THEN 'ok' ELSE 'fail' END,
       coalesce('version ' || installed, 'not installed in this database' ||
                coalesce(', the server offers ' || offered, ', nor offered by the server')),
       CASE WHEN installed IS NULL AND offered IS NULL
                THEN 'deploy/local/deps installs it on your own machine; else ask the administrator for pgmq 1.11.'
            WHEN installed IS NULL THEN 'Run: commandbus migrate'
            WHEN string_to_array(split_part(installed, '-', 1), '.')::integer[] < ARRAY[1, 11]
                THEN 'ALTER EXTENSION pgmq UPDATE; 1.11 or newer is needed.' END
FROM pgmq
UNION ALL
SELECT 'roles', CASE WHEN bool_and(there) THEN 'ok' ELSE 'fail' END,
       CASE WHEN bool_and(there) THEN format('all five exist; %s is a member of %s', current_user,
                coalesce(string_agg(name, ', ' ORDER BY name) FILTER (WHERE member), 'none'))
            ELSE 'missing: ' || string_agg(name, ', ' ORDER BY name) FILTER (WHERE NOT there) END,
       CASE WHEN NOT bool_and(there) THEN 'Run: commandbus migrate'
            WHEN NOT bool_or(member) THEN 'GRANT one of them to this user.' END
FROM role
UNION ALL
SELECT 'autovacuum', CASE current_setting('autovacuum') WHEN 'on' THEN 'ok' ELSE 'fail' END,
       'autovacuum is ' || current_setting('autovacuum'),
       CASE WHEN current_setting('autovacuum') <> 'on'
            THEN 'Turn it on: queues live on dead rows, claims get slower without vacuum.' END
UNION ALL
SELECT 'synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'warn' ELSE 'ok' END,
       'synchronous_commit is ' || current_setting('synchronous_commit'),
       CASE current_setting('synchronous_commit') WHEN 'off'
            THEN 'A crash of the server can lose what was acknowledged: turn it on.' END
UNION ALL
SELECT 'isolation', CASE current_setting('default_transaction_isolation') WHEN 'read committed' THEN 'ok' ELSE 'warn' END,
       'default_transaction_isolation is ' || current_setting('default_transaction_isolation'),
       CASE WHEN current_setting('default_transaction_isolation') <> 'read committed'
            THEN 'Workers and this program say what they need; SQL of yours that calls receive or settle has to begin READ COMMITTED.' END
