-- $1 batch_id
SELECT s.domain, s.batch_id, s.name, s.batch_type, s.status, s.total, s.completed, s.failed, s.canceled,
       s.in_troubleshooting, s.in_progress, s.pending, s.reply_to, s.created_at, s.started_at,
       s.completed_at, s.custom_data
FROM commandbus.batch_status s
WHERE s.batch_id = $1::uuid
