-- $1 worker, $2 queue names or NULL for all of its queues
SELECT commandbus.sleep_end($1::text, $2::text[])
