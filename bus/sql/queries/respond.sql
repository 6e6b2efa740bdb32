-- $1 process_id, $2 name, $3 payload, $4 response_id
SELECT commandbus.respond($1::uuid, $2::text, $3::jsonb, $4::uuid)
