-- No parameters. Processes that wait for somebody, or that nobody runs.
WITH kind (problem, check_name, status, text, advice) AS (VALUES
    ('PARKED', 'parked processes', 'warn', '%2$s %1$s since %4$s s as %3$s',
     'commandbus process list --status WAITING_FOR_TSQ, then retry, cancel or complete them.'),
    ('NOT_SERVED', 'due processes', 'warn', '%2$s %1$s of domain %3$s are due for %4$s s and nobody runs them',
     'Start a worker with features.process-execution that has this type and enables its domain, or give it more slots.'),
    ('LEASE_OVER', 'process leases', 'warn', '%2$s %1$s held by %3$s, whose lease ended %4$s s ago',
     'It died and no other worker has the type, or none has a free slot: start one.'),
    ('UNKNOWN_RESPONSE', 'unknown responses', 'warn', '%2$s %1$s got a response %3$s that they do not take',
     'The sender''s name for it is wrong, or the code has none: commandbus process show <id>.'),
    ('LATE_SUCCESS', 'late successes', 'warn', '%2$s %1$s had ended when command %3$s succeeded',
     'What it booked belongs to nobody: undo it by hand, see commandbus.process_audit, event LATE_REPLY.'),
    ('LOST_REPLY', 'lost replies', 'warn',
     '%2$s %1$s wait for a reply that is lost, the first for %4$s s: %3$s',
     'Did somebody empty a reply queue? A worker takes the outcome from the command within a minute; '
     'at once, as an operator: SELECT commandbus.restore_replies().'),
    ('UNKNOWN_TYPE', 'process types', 'fail', '%2$s %1$s of domain %3$s, a type that no worker has ever registered',
     'Start a worker whose handler set has this type.'),
    ('NO_WORKER', 'process types', 'warn', '%2$s %1$s of domain %3$s, a type that no live instance runs',
     'Start a worker whose handler set has this type.'),
    ('VERSION_TOO_NEW', 'process versions', 'warn', '%2$s %1$s were written by %3$s, newer than any worker''s',
     'A rollback? They wait for a worker of that version or a later one.'),
    ('LONG_REPLY', 'awaited replies', 'warn', '%2$s %1$s of domain %3$s wait for a reply for up to %4$s s',
     'A deep queue only slows them down: they wait until their deadline, or without end if they have none. Is the '
     'command''s domain served, and who reads the reply queue? See queue list and doctor''s queue lines.')
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
