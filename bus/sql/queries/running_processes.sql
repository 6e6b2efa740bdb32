-- $1 process_type or NULL, $2 id to start after or NULL, $3 how many
SELECT commandbus.running_processes($1::text, $2::uuid, $3::integer)
