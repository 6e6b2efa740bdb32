-- $1 domain, $2 name, $3 commands (a JSON array), $4 custom_data, $5 reply_to, $6 batch_id
SELECT commandbus.create_batch($1::text, $2::text, $3::jsonb, $4::jsonb, $5::text, $6::uuid)
