-- The troubleshooting queue of commands.

--: tsq_list
-- $1 domain, $2 command_id, $3 command_type, $4 status, $5 error_code, $6 batch_id,
-- $7 created_from, $8 created_to, $9 older_than; NULL does not filter. $10 limit, $11 offset.
-- A time is ISO 8601, or an interval before now. Oldest in the troubleshooting queue first.
SELECT c.domain, c.command_id, c.command_type, c.attempts, c.max_attempts, c.error_type,
       c.error_code, c.error_message, c.batch_id, c.correlation_id, c.tsq_at, c.created_at
FROM commandbus.command_metadata c
WHERE c.tsq_at IS NOT NULL AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
  AND ($1::text IS NULL OR c.domain = $1::text)
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
ORDER BY c.tsq_at, c.command_id
LIMIT $10::bigint OFFSET $11::bigint

--: tsq_counts
-- $1 domain, $2 command_id, $3 command_type, $4 status, $5 error_code, $6 batch_id,
-- $7 created_from, $8 created_to, $9 older_than; NULL does not filter. $10 limit, $11 offset.
-- A time is ISO 8601, or an interval before now. Most frequent first.
SELECT c.domain, c.command_type, c.error_code, count(*) AS commands, min(c.tsq_at) AS oldest_at,
       floor(extract(epoch FROM statement_timestamp() - min(c.tsq_at)))::bigint
           AS oldest_age_seconds
FROM commandbus.command_metadata c
WHERE c.tsq_at IS NOT NULL AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
  AND ($1::text IS NULL OR c.domain = $1::text)
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
GROUP BY c.domain, c.command_type, c.error_code
ORDER BY commands DESC, c.domain, c.command_type, c.error_code
LIMIT $10::bigint OFFSET $11::bigint

--: tsq_retry
-- $1 domain, $2 command_id, $3 operator, $4 reason
SELECT commandbus.tsq_retry($1::text, $2::uuid, $3::text, $4::text)

--: tsq_cancel
-- $1 domain, $2 command_id, $3 operator, $4 reason
SELECT commandbus.tsq_cancel($1::text, $2::uuid, $3::text, $4::text)

--: tsq_complete
-- $1 domain, $2 command_id, $3 operator, $4 reason, $5 result
SELECT commandbus.tsq_complete($1::text, $2::uuid, $3::text, $4::text, $5::jsonb)

--: tsq_close_batch
-- $1 domain, $2 command_id. Closes the command's batch if that was the last one to end.
SELECT commandbus.close_batches(ARRAY(
    SELECT c.batch_id FROM commandbus.command_metadata c
    WHERE c.domain = $1 AND c.command_id = $2::uuid AND c.batch_id IS NOT NULL))
