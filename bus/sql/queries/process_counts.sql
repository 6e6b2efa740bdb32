-- $1 domain, $2 process_type, $3 statuses (array), $4 error_code, $5 batch_id, $6 created_from, $7 created_to,
-- $8 older_than; NULL does not filter. $9 limit, $10 offset. A time is ISO 8601, or an interval before now.
-- How many, by type, status and error code.
SELECT p.domain, p.process_type, p.status, p.error_code, count(*) AS processes, min(p.created_at) AS oldest_at
FROM commandbus.process p
WHERE true
  AND ($1::text IS NULL OR p.domain = $1::text)
  AND ($2::text IS NULL OR p.process_type = $2::text)
  AND ($3::text IS NULL OR p.status = ANY ($3::text::commandbus.process_status[]))
  AND ($4::text IS NULL OR p.error_code = $4::text)
  AND ($5::uuid IS NULL OR p.batch_id = $5::uuid)
  AND ($6::text IS NULL OR p.created_at >= CASE WHEN $6::text ~ '^\d{4}-\d\d' THEN $6::text::timestamptz
                                                ELSE commandbus.now() - $6::text::interval END)
  AND ($7::text IS NULL OR p.created_at < CASE WHEN $7::text ~ '^\d{4}-\d\d' THEN $7::text::timestamptz
                                               ELSE commandbus.now() - $7::text::interval END)
  AND ($8::text IS NULL OR coalesce(p.tsq_at, p.updated_at) <= commandbus.now() - $8::text::interval)
GROUP BY p.domain, p.process_type, p.status, p.error_code
ORDER BY p.domain, p.process_type, p.status, p.error_code
LIMIT $9::bigint OFFSET $10::bigint
