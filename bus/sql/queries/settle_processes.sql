-- $1 worker, $2 JSON array of items
SELECT verdicts, batch_ids FROM commandbus.settle_processes($1::text, $2::jsonb)
