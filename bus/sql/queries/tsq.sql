-- The troubleshooting queue of commands.

--: tsq_list
-- $1 to $9 as command_filter, $10 limit, $11 offset. Oldest in the troubleshooting queue first.
SELECT c.domain, c.command_id, c.command_type, c.attempts, c.max_attempts, c.error_type,
       c.error_code, c.error_message, c.batch_id, c.correlation_id, c.tsq_at, c.created_at
FROM commandbus.command_metadata c
WHERE c.tsq_at IS NOT NULL AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
  AND
  --+ command_filter
ORDER BY c.tsq_at, c.command_id
LIMIT $10::bigint OFFSET $11::bigint

--: tsq_counts
-- $1 to $9 as command_filter, $10 limit, $11 offset. Most frequent first.
SELECT c.domain, c.command_type, c.error_code, count(*) AS commands, min(c.tsq_at) AS oldest_at,
       floor(extract(epoch FROM statement_timestamp() - min(c.tsq_at)))::bigint
           AS oldest_age_seconds
FROM commandbus.command_metadata c
WHERE c.tsq_at IS NOT NULL AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
  AND
  --+ command_filter
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
