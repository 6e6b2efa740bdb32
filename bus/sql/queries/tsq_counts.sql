-- $1 domain, $2 command_id, $3 command_type, $4 status, $5 error_code, $6 batch_id, $7 created_from,
-- $8 created_to, $9 older_than; NULL does not filter. $10 limit, $11 offset.
-- A time is ISO 8601, or an interval before now. Most frequent first.
SELECT c.domain, c.command_type, c.error_code, count(*) AS commands, min(c.tsq_at) AS oldest_at,
       floor(extract(epoch FROM statement_timestamp() - min(c.tsq_at)))::bigint AS oldest_age_seconds
FROM commandbus.command_metadata c
WHERE c.tsq_at IS NOT NULL AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
  AND ($1::text IS NULL OR c.domain = $1::text)
  AND ($2::uuid IS NULL OR c.command_id = $2::uuid)
  AND ($3::text IS NULL OR c.command_type = $3::text)
  AND ($4::text IS NULL OR c.status = $4::text::commandbus.command_status)
  AND ($5::text IS NULL OR c.error_code = $5::text)
  AND ($6::uuid IS NULL OR c.batch_id = $6::uuid)
  AND ($7::text IS NULL OR c.created_at >= CASE WHEN $7::text ~ '^\d{4}-\d\d' THEN $7::text::timestamptz
                                                ELSE statement_timestamp() - $7::text::interval END)
  AND ($8::text IS NULL OR c.created_at < CASE WHEN $8::text ~ '^\d{4}-\d\d' THEN $8::text::timestamptz
                                               ELSE statement_timestamp() - $8::text::interval END)
  AND ($9::text IS NULL OR c.tsq_at <= statement_timestamp() - $9::text::interval)
GROUP BY c.domain, c.command_type, c.error_code
ORDER BY commands DESC, c.domain, c.command_type, c.error_code
LIMIT $10::bigint OFFSET $11::bigint
