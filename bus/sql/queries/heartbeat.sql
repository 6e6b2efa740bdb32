-- $1 worker, $2 what it says of itself, a JSON object
SELECT commandbus.heartbeat($1::text, $2::jsonb)
