-- No parameters. Commands and batches that wait for somebody.
SELECT 'troubleshooting queue' AS check_name, CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END AS status,
       CASE WHEN count(*) > 0 THEN format('%s commands, the oldest since %s', count(*), min(c.tsq_at))
            ELSE 'empty' END AS detail,
       CASE WHEN count(*) > 0 THEN 'commandbus tsq list, then retry, cancel or complete them.' END AS advice
FROM commandbus.command_metadata c WHERE c.tsq_at IS NOT NULL
UNION ALL
SELECT 'poison messages', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       format('%s archived in the last day', count(*)),
       CASE WHEN count(*) > 0 THEN 'Somebody writes into command queues past commandbus.send: see the audit, '
                                   'event POISON_ARCHIVED.' END
FROM commandbus.audit a
WHERE a.event_type = 'POISON_ARCHIVED' AND a.at > statement_timestamp() - interval '1 day'
UNION ALL
SELECT 'undeliverable replies', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       format('%s in the last day', count(*)),
       CASE WHEN count(*) > 0 THEN 'A reply queue has been dropped: see the audit, event REPLY_UNDELIVERABLE.' END
FROM commandbus.audit a
WHERE a.event_type = 'REPLY_UNDELIVERABLE' AND a.at > statement_timestamp() - interval '1 day'
UNION ALL
SELECT 'lost messages', CASE WHEN count(*) > 0 THEN 'fail' ELSE 'ok' END,
       CASE WHEN count(*) > 0 THEN 'commands whose message is gone from the queue: ' ||
                 string_agg(format('%s of %s', l.commands, l.domain), ', ') ELSE 'none' END,
       CASE WHEN count(*) > 0 THEN format('SELECT commandbus.restore_messages(%L), as an operator.', min(l.domain)) END
FROM commandbus.lost_messages() l
UNION ALL
SELECT 'hidden messages', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       CASE WHEN count(*) > 0 THEN 'not visible for years, or past the lease of the run: ' ||
                 string_agg(format('%s in %s', h.messages, h.queue_name), ', ') ELSE 'none' END,
       CASE WHEN count(*) > 0 THEN
           'Somebody changed vt by hand. A worker of the domain makes them visible, within a minute '
           'or, past a lease, an hour; at once, as an operator: '
           'SELECT commandbus.restore_messages(''<domain>'').' END
FROM commandbus.hidden_messages() h
UNION ALL
SELECT 'open batches', CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
       format('%s are open for more than a day', count(*)),
       CASE WHEN count(*) > 0 THEN 'commandbus batch list --status IN_PROGRESS; members in the troubleshooting '
                                   'queue keep a batch open.' END
FROM commandbus.batch b
WHERE b.completed_at IS NULL AND b.created_at < statement_timestamp() - interval '1 day'
