-- The checks of commandbus doctor.

--: doctor_server
-- No parameters. What can be said without the bus's schema: PostgreSQL, PGMQ, roles, settings.
WITH pgmq AS (
    SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'pgmq'),
                    (SELECT CASE WHEN bool_or(c.relname = 'topic_bindings') THEN '1.11'
                                 ELSE '1.0' END
                     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                     WHERE n.nspname = 'pgmq' AND c.relname IN ('meta', 'topic_bindings')
                     HAVING count(*) > 0)) AS installed,
           (SELECT default_version FROM pg_available_extensions WHERE name = 'pgmq') AS offered
), role AS (
    SELECT name, pg_roles.oid IS NOT NULL AS there,
           CASE WHEN pg_roles.oid IS NOT NULL THEN pg_has_role(pg_roles.oid, 'MEMBER') END AS member
    FROM unnest(ARRAY['commandbus_owner', 'commandbus_sender', 'commandbus_worker',
                      'commandbus_operator', 'commandbus_monitor']) WITH ORDINALITY r(name, ord)
    LEFT JOIN pg_roles ON rolname = name
)
SELECT 'postgresql' AS check_name,
       CASE WHEN current_setting('server_version_num')::integer >= 150000 THEN 'ok'
            ELSE 'fail' END AS status,
       'version ' || current_setting('server_version') AS detail,
       CASE WHEN current_setting('server_version_num')::integer < 150000
            THEN 'PostgreSQL 15 or newer is needed.' END AS advice
UNION ALL
SELECT 'pgmq',
       CASE WHEN string_to_array(split_part(installed, '-', 1), '.')::integer[] >= ARRAY[1, 11]
            THEN 'ok' ELSE 'fail' END,
       coalesce('version ' || installed, 'not installed in this database' ||
                coalesce(', the server offers ' || offered, ', nor offered by the server')),
       CASE WHEN installed IS NULL AND offered IS NULL
            THEN 'deploy/local/deps installs it on your own machine; else ask the administrator '
                 'for pgmq 1.11.'
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
SELECT 'synchronous_commit',
       CASE current_setting('synchronous_commit') WHEN 'off' THEN 'warn' ELSE 'ok' END,
       'synchronous_commit is ' || current_setting('synchronous_commit'),
       CASE current_setting('synchronous_commit') WHEN 'off'
            THEN 'A crash of the server can lose what was acknowledged: turn it on.' END
UNION ALL
SELECT 'isolation', CASE current_setting('default_transaction_isolation') WHEN 'read committed'
                         THEN 'ok' ELSE 'warn' END,
       'default_transaction_isolation is ' || current_setting('default_transaction_isolation'),
       CASE WHEN current_setting('default_transaction_isolation') <> 'read committed'
            THEN 'Workers and this program say what they need; SQL of yours that calls receive or '
                 'settle has to begin READ COMMITTED.' END

--: doctor_queues
-- No parameters. One line a queue.
SELECT 'queue ' || m.queue_name AS check_name,
       CASE WHEN m.depth IS NULL THEN 'fail'
            WHEN m.waiting_seconds > 300 THEN 'warn' ELSE 'ok' END AS status,
       CASE WHEN m.depth IS NULL AND t.owner IS NULL THEN 'the queue is missing'
            WHEN m.depth IS NULL THEN format('the queue belongs to %s', t.owner)
            ELSE format('%s messages, %s visible%s, about %s archived', m.depth, m.visible,
                        ' since ' || m.waiting_seconds || ' s', m.archived) END AS detail,
       CASE WHEN m.depth IS NULL AND t.owner IS NULL
            THEN format('commandbus queue create %s; then, as an operator, '
                        'SELECT commandbus.restore_messages(%L).', m.domain, m.domain)
            -- As a dump leaves it that was restored by who may not give it away: deploy/README.md.
            WHEN m.depth IS NULL
            THEN format('As %s: ALTER TABLE pgmq.%I OWNER TO commandbus_owner; '
                        'ALTER TABLE pgmq.%I OWNER TO commandbus_owner.', t.owner,
                        'q_' || m.queue_name, 'a_' || m.queue_name)
            WHEN m.waiting_seconds > 300 AND m.kind = 'commands'
            THEN 'Nothing fails because it is deep: commands wait, and their processes with them, '
                 'until their deadline. Is a worker of this domain running, and has it slots '
                 'enough? See commandbus plan.'
            WHEN m.waiting_seconds > 300
            THEN 'Who reads these replies? Nobody has for five minutes.' END AS advice
FROM commandbus.queue_metrics() m
LEFT JOIN LATERAL (SELECT pg_catalog.pg_get_userbyid(c.relowner) AS owner FROM pg_catalog.pg_class c
                   WHERE c.oid = to_regclass(format('pgmq.%I', 'q_' || m.queue_name))) t ON true
ORDER BY m.queue_name

--: doctor_commands
-- No parameters. Commands and batches that wait for somebody.
SELECT 'troubleshooting queue' AS check_name,
       CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END AS status,
       CASE WHEN count(*) > 0
            THEN format('%s commands, the oldest since %s', count(*), min(c.tsq_at))
            ELSE 'empty' END AS detail,
       CASE WHEN count(*) > 0
            THEN 'commandbus tsq list, then retry, cancel or complete them.' END AS advice
FROM commandbus.command_metadata c WHERE c.tsq_at IS NOT NULL
UNION ALL
SELECT 'poison messages', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       format('%s archived in the last day', count(*)),
       CASE WHEN count(*) > 0
            THEN 'Somebody writes into command queues past commandbus.send: see the audit, '
                 'event POISON_ARCHIVED.' END
FROM commandbus.audit a
WHERE a.event_type = 'POISON_ARCHIVED' AND a.at > statement_timestamp() - interval '1 day'
UNION ALL
SELECT 'undeliverable replies', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       format('%s in the last day', count(*)),
       CASE WHEN count(*) > 0
            THEN 'A reply queue has been dropped: see the audit, event REPLY_UNDELIVERABLE.' END
FROM commandbus.audit a
WHERE a.event_type = 'REPLY_UNDELIVERABLE' AND a.at > statement_timestamp() - interval '1 day'
UNION ALL
SELECT 'lost messages', CASE WHEN count(*) > 0 THEN 'fail' ELSE 'ok' END,
       CASE WHEN count(*) > 0 THEN 'commands whose message is gone from the queue: ' ||
                 string_agg(format('%s of %s', l.commands, l.domain), ', ') ELSE 'none' END,
       CASE WHEN count(*) > 0
            THEN format('SELECT commandbus.restore_messages(%L), as an operator.',
                        min(l.domain)) END
FROM commandbus.lost_messages() l
UNION ALL
SELECT 'hidden messages', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       CASE WHEN count(*) > 0 THEN 'not visible for years, or past the lease of the run: ' ||
                 string_agg(format('%s in %s', h.messages, h.queue_name), ', ') ELSE 'none' END,
       CASE WHEN count(*) > 0 THEN
           'Somebody changed vt by hand. A worker of the domain makes them visible, within a '
           'minute or, past a lease, an hour; at once, as an operator: '
           'SELECT commandbus.restore_messages(''<domain>'').' END
FROM commandbus.hidden_messages() h
UNION ALL
SELECT 'open batches', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       format('%s are open for more than a day', count(*)),
       CASE WHEN count(*) > 0
            THEN 'commandbus batch list --status IN_PROGRESS; members in the troubleshooting '
                 'queue keep a batch open.' END
FROM commandbus.batch b
WHERE b.completed_at IS NULL AND b.created_at < statement_timestamp() - interval '1 day'

--: doctor_processes
-- No parameters. Processes that wait for somebody, or that nobody runs.
WITH kind (problem, check_name, status, text, advice) AS (VALUES
    ('PARKED', 'parked processes', 'warn', '%2$s %1$s since %4$s s as %3$s',
     'commandbus process list --status WAITING_FOR_TSQ, then retry, cancel or complete them.'),
    ('NOT_SERVED', 'due processes', 'warn',
     '%2$s %1$s of domain %3$s are due for %4$s s and nobody runs them',
     'Start a worker with features.process-execution that has this type and enables its domain, or '
     'give it more slots.'),
    ('LEASE_OVER', 'process leases', 'warn', '%2$s %1$s held by %3$s, whose lease ended %4$s s ago',
     'It died and no other worker has the type, or none has a free slot: start one.'),
    ('UNKNOWN_RESPONSE', 'unknown responses', 'warn',
     '%2$s %1$s got a response %3$s that they do not take',
     'The sender''s name for it is wrong, or the code has none: commandbus process show <id>.'),
    ('LATE_SUCCESS', 'late successes', 'warn', '%2$s %1$s had ended when command %3$s succeeded',
     'What it booked belongs to nobody: undo it by hand, see commandbus.process_audit, event '
     'LATE_REPLY.'),
    ('LOST_REPLY', 'lost replies', 'warn',
     '%2$s %1$s wait for a reply that is lost, the first for %4$s s: %3$s',
     'Did somebody empty a reply queue? A worker takes the outcome from the command within a '
     'minute; at once, as an operator: SELECT commandbus.restore_replies().'),
    ('UNKNOWN_TYPE', 'process types', 'fail',
     '%2$s %1$s of domain %3$s, a type that no worker has ever registered',
     'Start a worker whose handler set has this type.'),
    ('NO_WORKER', 'process types', 'warn',
     '%2$s %1$s of domain %3$s, a type that no live instance runs',
     'Start a worker whose handler set has this type.'),
    ('VERSION_TOO_NEW', 'process versions', 'warn',
     '%2$s %1$s were written by %3$s, newer than any worker''s',
     'A rollback? They wait for a worker of that version or a later one.'),
    ('LONG_REPLY', 'awaited replies', 'warn',
     '%2$s %1$s of domain %3$s wait for a reply for up to %4$s s',
     'A deep queue only slows them down: they wait until their deadline, or without end if they '
     'have none. Is the command''s domain served, and who reads the reply queue? See queue list '
     'and doctor''s queue lines.')
), problem AS MATERIALIZED (
    SELECT p.* FROM commandbus.process_problems() p
)
SELECT k.check_name, k.status,
       format(k.text, p.process_type, p.processes, p.about, floor(p.seconds)) AS detail, k.advice
FROM problem p JOIN kind k ON k.problem = p.problem
UNION ALL
SELECT k.check_name, 'ok', 'none', NULL
FROM kind k WHERE k.problem <> 'NO_WORKER' AND NOT EXISTS (
    SELECT FROM problem p JOIN kind o ON o.problem = p.problem WHERE o.check_name = k.check_name)
ORDER BY 1, 2, 3

--: doctor_fleet
-- No parameters. Instances and their domains: limits that disagree, silence, work that nobody does.
WITH said AS (
    SELECT d.domain, d.fleet_limit AS in_force, f.fleet_limit AS configured,
           string_agg(f.worker, ', ' ORDER BY f.worker) AS workers
    FROM commandbus.domain d
    JOIN commandbus.fleet f ON f.domain = d.domain AND f.live AND f.fleet_limit IS NOT NULL
    GROUP BY d.domain, d.fleet_limit, f.fleet_limit
), limits AS (
    SELECT format('%s: %s is in force, but %s', s.domain,
                  CASE s.in_force WHEN 0 THEN 'no limit' ELSE s.in_force::text END,
                  string_agg(format('%s says %s', s.workers, s.configured),
                             '; ' ORDER BY s.configured)) AS detail,
           format('The last to start wins: give domains.%s.fleet-limit one value in every profile, '
                  'and start again who says another.', s.domain) AS advice
    FROM said s GROUP BY s.domain, s.in_force HAVING bool_or(s.configured <> s.in_force)
    UNION ALL
    SELECT format('%s: the limit %s is in force, but no live instance configures it', d.domain,
                  d.fleet_limit),
           format('To keep it: domains.%s.fleet-limit = %s. To take it away: fleet-limit = 0, or '
                  'as a worker SELECT commandbus.set_fleet_limit(%L, 0).', d.domain, d.fleet_limit,
                  d.domain)
    FROM commandbus.domain d
    WHERE d.fleet_limit > 0 AND NOT EXISTS (SELECT FROM said s WHERE s.domain = d.domain)
), instance AS (
    SELECT w.worker, w.details ->> 'host' AS host,
           coalesce(w.details ->> 'profile', 'no profile') AS profile,
           extract(epoch FROM statement_timestamp() - w.heartbeat_at)::bigint AS age
    FROM commandbus.worker w
), domain AS MATERIALIZED (
    SELECT f.* FROM commandbus.fleet_domains() f
)
SELECT 'fleet limits' AS check_name, 'warn' AS status, l.detail, l.advice FROM limits l
UNION ALL
SELECT 'fleet limits', 'ok',
       CASE count(*) WHEN 0 THEN 'none is set'
            ELSE string_agg(d.domain || ' ' || d.fleet_limit, ', ' ORDER BY d.domain) END, NULL
FROM commandbus.domain d WHERE d.fleet_limit > 0 HAVING NOT EXISTS (SELECT FROM limits)
UNION ALL
SELECT 'instances', 'warn',
       CASE count(*) WHEN 1
            THEN format('%s%s has been silent for %s s', min(i.worker), ' on ' || min(i.host),
                        min(i.age))
            ELSE format('%s of %s have been silent for %s s: %s%s', count(*), i.profile,
                        concat_ws(' to ', min(i.age), nullif(max(i.age), min(i.age))),
                        array_to_string((array_agg(i.worker ORDER BY i.worker))[1:5], ', '),
                        CASE WHEN count(*) > 5 THEN format(' and %s more', count(*) - 5) END) END,
       'See their logs: they died, hang or cannot reach the database. Others take over what they '
       'held; they are forgotten after a day.'
FROM instance i WHERE i.age > 60 GROUP BY i.profile
UNION ALL
SELECT 'instances', 'ok', format('%s alive', count(*)), NULL FROM instance i WHERE i.age <= 60
UNION ALL
SELECT 'served domains', 'warn',
       format('%s: %s messages are due, the first for %s s, and no live instance serves it',
              d.domain, d.visible, floor(d.waiting_seconds)),
       format('Start a worker whose profile enables domains.%s.', d.domain)
FROM domain d WHERE 'NOBODY_SERVES' = ANY (d.problems)
UNION ALL
SELECT 'served domains', 'ok', 'nothing waits for an instance', NULL
WHERE NOT EXISTS (SELECT FROM domain d WHERE 'NOBODY_SERVES' = ANY (d.problems))
UNION ALL
SELECT 'live leases', 'warn',
       format('%s: %s, more than %s', d.domain, d.live_leases,
              CASE WHEN 'LEASES_OVER_LIMIT' = ANY (d.problems)
                   THEN 'the fleet-limit ' || d.fleet_limit
                   ELSE format('the %s slots of %s live instances', d.slots, d.instances) END),
       CASE WHEN 'LEASES_OVER_LIMIT' = ANY (d.problems)
            THEN 'The limit was lowered a moment ago? Then this ends by itself; '
                 'else look at who changes commandbus.domain by hand.'
            ELSE 'Dead instances keep their leases for one visibility timeout; if it lasts, '
                 'something claims without a heartbeat: see lease_owner in '
                 'commandbus.command_metadata.' END
FROM domain d WHERE d.problems && '{LEASES_OVER_LIMIT,LEASES_OVER_SLOTS}'
UNION ALL
SELECT 'live leases', 'ok', format('%s, within slots and limits', coalesce(sum(d.live_leases), 0)),
       NULL
FROM domain d
HAVING NOT coalesce(bool_or(d.problems && '{LEASES_OVER_LIMIT,LEASES_OVER_SLOTS}'), false)

--: doctor_transactions
-- No parameters. Who holds back vacuum: old transactions, prepared ones, replication slots.
WITH holder AS (
    SELECT format('%s of %s%s, pid %s, %s', coalesce(state, 'a session'),
                  coalesce(usename, 'the system'),
                  coalesce(' (' || nullif(application_name, '') || ')', ''), pid,
                  coalesce(format('open for %s s', floor(extract(epoch FROM now() - xact_start))),
                           format('%s transactions behind', age(backend_xmin)))) AS who,
           'End it, or its client: pg_terminate_backend(' || pid || ').' AS advice
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
      -- Of other users' sessions only backend_xmin can be seen without pg_read_all_stats.
      AND (xact_start < now() - interval '60 seconds'
           OR (xact_start IS NULL AND age(backend_xmin) > 100000))
    UNION ALL
    SELECT format('prepared transaction %L of %s, %s s old', gid, owner,
                  floor(extract(epoch FROM now() - prepared))),
           format('COMMIT PREPARED %L or ROLLBACK PREPARED %L', gid, gid)
    FROM pg_prepared_xacts WHERE prepared < now() - interval '60 seconds'
    UNION ALL
    SELECT format('replication slot %s%s, %s transactions behind', slot_name,
                  CASE WHEN active THEN '' ELSE ' (nobody reads it)' END,
                  greatest(age(xmin), age(catalog_xmin))),
           'Bring its reader back, or pg_drop_replication_slot(' || quote_literal(slot_name) || ').'
    FROM pg_replication_slots WHERE greatest(age(xmin), age(catalog_xmin)) > 100000
)
SELECT 'long transactions' AS check_name, 'warn' AS status,
       who || ': vacuum cannot remove what it may still see, claims get slower' AS detail, advice
FROM holder
UNION ALL
SELECT 'long transactions', 'ok', 'none is older than 60 s', NULL
WHERE NOT EXISTS (SELECT FROM holder)

--: doctor_vacuum
-- No parameters. Tables with many dead rows: more than 10,000 and more than one in five.
WITH dying AS (
    SELECT format('%I.%I', schemaname, relname) AS name, n_dead_tup, n_live_tup,
           greatest(last_autovacuum, last_vacuum) AS vacuumed_at
    FROM pg_stat_all_tables
    WHERE (schemaname = 'commandbus' OR (schemaname = 'pgmq' AND relname LIKE 'q\_%'))
      AND n_dead_tup > 10000 AND n_dead_tup > 0.2 * (n_live_tup + n_dead_tup)
)
SELECT 'dead rows' AS check_name, 'warn' AS status,
       format('%s: %s dead beside %s live rows, last vacuumed %s', name, n_dead_tup, n_live_tup,
              coalesce(vacuumed_at::text, 'never')) AS detail,
       'Does a long transaction hold vacuum back? Is autovacuum keeping up? VACUUM ' || name
           || ' helps now.' AS advice
FROM dying
UNION ALL
SELECT 'dead rows', 'ok', 'no table of ours has many', NULL WHERE NOT EXISTS (SELECT FROM dying)
