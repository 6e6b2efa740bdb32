-- Commands, for people.

--: part command_filter
-- $1 domain, $2 command_id, $3 command_type, $4 status, $5 error_code, $6 batch_id,
-- $7 created_from, $8 created_to, $9 older_than; NULL does not filter. A time is ISO 8601, or an
-- interval before now.
($1::text IS NULL OR c.domain = $1::text)
  AND ($2::uuid IS NULL OR c.command_id = $2::uuid)
  AND ($3::text IS NULL OR c.command_type = $3::text)
  AND ($4::text IS NULL OR c.status = $4::text::commandbus.command_status)
  AND ($5::text IS NULL OR c.error_code = $5::text)
  AND ($6::uuid IS NULL OR c.batch_id = $6::uuid)
  AND ($7::text IS NULL OR c.created_at >= CASE WHEN $7::text ~ '^\d{4}-\d\d'
                                                THEN $7::text::timestamptz
                                                ELSE statement_timestamp() - $7::text::interval END)
  AND ($8::text IS NULL OR c.created_at < CASE WHEN $8::text ~ '^\d{4}-\d\d'
                                               THEN $8::text::timestamptz
                                               ELSE statement_timestamp() - $8::text::interval END)
  AND ($9::text IS NULL OR c.tsq_at <= statement_timestamp() - $9::text::interval)

--: command_list
-- $1 to $9 as command_filter, $10 limit, $11 offset. Newest first, without payloads.
SELECT c.domain, c.command_id, c.command_type, c.status, c.attempts, c.max_attempts,
       c.correlation_id, c.batch_id, c.reply_to, c.error_type, c.error_code, c.lease_owner,
       c.created_at, c.updated_at, c.completed_at
FROM commandbus.command_metadata c
WHERE
  --+ command_filter
ORDER BY c.created_at DESC, c.command_id DESC
LIMIT $10::bigint OFFSET $11::bigint

--: command_show
-- $1 domain or NULL, $2 command_id. Everything about it; one row a domain that knows the id.
SELECT c.domain, c.command_id, c.command_type, c.status, c.attempts, c.max_attempts,
       c.timeout_seconds, c.lease_no, c.lease_owner, c.lease_until, c.msg_id, c.correlation_id,
       c.reply_to, c.batch_id, c.process_id, c.error_type, c.error_code, c.error_message, c.tsq_at,
       c.created_at, c.updated_at, c.completed_at, c.headers, c.data, c.result
FROM commandbus.command_metadata c
WHERE c.command_id = $2::uuid AND ($1::text IS NULL OR c.domain = $1::text)
ORDER BY c.domain

--: command_trail
-- $1 domain or NULL, $2 command_id. Its audit trail, oldest first.
SELECT a.at, a.domain, a.event_type, a.attempt, a.lease_no, a.worker, a.operator, a.db_user,
       a.details
FROM commandbus.audit a
WHERE a.command_id = $2::uuid AND ($1::text IS NULL OR a.domain = $1::text)
ORDER BY a.at, a.id
