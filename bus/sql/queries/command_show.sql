-- $1 domain or NULL, $2 command_id. Everything about it; one row a domain that knows the id.
SELECT c.domain, c.command_id, c.command_type, c.status, c.attempts, c.max_attempts, c.timeout_seconds,
       c.lease_no, c.lease_owner, c.lease_until, c.msg_id, c.correlation_id, c.reply_to, c.batch_id, c.process_id,
       c.error_type, c.error_code, c.error_message, c.tsq_at, c.created_at, c.updated_at, c.completed_at,
       c.headers, c.data, c.result
FROM commandbus.command_metadata c
WHERE c.command_id = $2::uuid AND ($1::text IS NULL OR c.domain = $1::text)
ORDER BY c.domain
