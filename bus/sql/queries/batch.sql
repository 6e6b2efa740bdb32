-- Batches of commands and of processes.

--: create_batch
-- $1 to $9 as of send_arrays, $10 domain, $11 name, $12 custom_data, $13 reply_to, $14 batch_id
SELECT commandbus.create_batch_arrays($10::text, $11::text, $12::jsonb, $13::text, $14::uuid,
                                      $1::text[], $2::jsonb[], $3::uuid[], $4::uuid[], $5::text[],
                                      $6::integer[], $7::double precision[], $8::integer[],
                                      $9::jsonb[])

--: close_batches
-- $1 batch ids, or NULL for all open ones. One row a batch that was closed.
SELECT commandbus.close_batches($1::uuid[])

--: batch_list
-- $1 domain or NULL, $2 status or NULL, $3 limit, $4 offset. Newest first. The page is chosen
-- before the members of its batches are counted.
SELECT s.domain, s.batch_id, s.name, s.batch_type, s.status, s.total, s.completed, s.failed,
       s.canceled, s.in_troubleshooting, s.in_progress, s.pending, s.reply_to, s.created_at,
       s.started_at, s.completed_at
FROM (SELECT b.batch_id FROM commandbus.batch b
      WHERE ($1::text IS NULL OR b.domain = $1::text)
        AND ($2::text IS NULL OR b.status = upper($2::text))
      ORDER BY b.created_at DESC, b.batch_id DESC
      LIMIT $3::bigint OFFSET $4::bigint) page
JOIN commandbus.batch_status s ON s.batch_id = page.batch_id
ORDER BY s.created_at DESC, s.batch_id DESC

--: batch_show
-- $1 batch_id
SELECT s.domain, s.batch_id, s.name, s.batch_type, s.status, s.total, s.completed, s.failed,
       s.canceled, s.in_troubleshooting, s.in_progress, s.pending, s.reply_to, s.created_at,
       s.started_at, s.completed_at, s.custom_data
FROM commandbus.batch_status s
WHERE s.batch_id = $1::uuid
