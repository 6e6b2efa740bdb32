-- $1 worker
SELECT commandbus.retire($1::text)
