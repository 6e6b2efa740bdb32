-- $1 process_type, $2 domain, $3 version, $4 execution model, $5 reply queue or NULL, $6 names of redacted fields,
-- $7 responses or NULL
SELECT commandbus.register_process_type($1::text, $2::text, $3::integer, $4::text, $5::text, $6::text[], $7::jsonb)
