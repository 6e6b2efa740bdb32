-- No parameters. Who holds back vacuum: old transactions, prepared ones, replication slots.
WITH holder AS (
    SELECT format('%s of %s%s, pid %s, %s', coalesce(state, 'a session'), coalesce(usename, 'the system'),
                  coalesce(' (' || nullif(application_name, '') || ')', ''), pid,
                  coalesce(format('open for %s s', floor(extract(epoch FROM now() - xact_start))),
                           format('%s transactions behind', age(backend_xmin)))) AS who,
           'End it, or its client: pg_terminate_backend(' || pid || ').' AS advice
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
      -- Of other users' sessions only backend_xmin can be seen without pg_read_all_stats.
      AND (xact_start < now() - interval '60 seconds' OR (xact_start IS NULL AND age(backend_xmin) > 100000))
    UNION ALL
    SELECT format('prepared transaction %L of %s, %s s old', gid, owner, floor(extract(epoch FROM now() - prepared))),
           format('COMMIT PREPARED %L or ROLLBACK PREPARED %L', gid, gid)
    FROM pg_prepared_xacts WHERE prepared < now() - interval '60 seconds'
    UNION ALL
    SELECT format('replication slot %s%s, %s transactions behind', slot_name,
                  CASE WHEN active THEN '' ELSE ' (nobody reads it)' END, greatest(age(xmin), age(catalog_xmin))),
           'Bring its reader back, or pg_drop_replication_slot(' || quote_literal(slot_name) || ').'
    FROM pg_replication_slots WHERE greatest(age(xmin), age(catalog_xmin)) > 100000
)
SELECT 'long transactions' AS check_name, 'warn' AS status,
       who || ': vacuum cannot remove what it may still see, claims get slower' AS detail, advice
FROM holder
UNION ALL
SELECT 'long transactions', 'ok', 'none is older than 60 s', NULL
WHERE NOT EXISTS (SELECT FROM holder)
