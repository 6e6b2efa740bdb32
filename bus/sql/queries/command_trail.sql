-- $1 domain or NULL, $2 command_id. Its audit trail, oldest first.
SELECT a.at, a.domain, a.event_type, a.attempt, a.lease_no, a.worker, a.operator, a.db_user, a.details
FROM commandbus.audit a
WHERE a.command_id = $2::uuid AND ($1::text IS NULL OR a.domain = $1::text)
ORDER BY a.at, a.id
