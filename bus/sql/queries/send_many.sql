-- $1 commands, a JSON array. One row a command, in order.
SELECT commandbus.send_many($1::jsonb)
