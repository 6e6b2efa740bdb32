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
       'Does a long transaction hold vacuum back? Is autovacuum keeping up? VACUUM ' || name || ' helps now.' AS advice
FROM dying
UNION ALL
SELECT 'dead rows', 'ok', 'no table of ours has many', NULL WHERE NOT EXISTS (SELECT FROM dying)
