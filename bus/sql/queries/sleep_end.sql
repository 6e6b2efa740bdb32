-- $1 worker
SELECT commandbus.sleep_end($1::text)
