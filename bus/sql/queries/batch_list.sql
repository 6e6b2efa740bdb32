-- $1 domain or NULL, $2 status or NULL, $3 limit, $4 offset. Newest first. The page is chosen before
-- the members of its batches are counted.
SELECT s.domain, s.batch_id, s.name, s.batch_type, s.status, s.total, s.completed, s.failed, s.canceled,
       s.in_troubleshooting, s.in_progress, s.pending, s.reply_to, s.created_at, s.started_at, s.completed_at
FROM (SELECT b.batch_id FROM commandbus.batch b
      WHERE ($1::text IS NULL OR b.domain = $1::text) AND ($2::text IS NULL OR b.status = upper($2::text))
      ORDER BY b.created_at DESC, b.batch_id DESC
      LIMIT $3::bigint OFFSET $4::bigint) page
JOIN commandbus.batch_status s ON s.batch_id = page.batch_id
ORDER BY s.created_at DESC, s.batch_id DESC
