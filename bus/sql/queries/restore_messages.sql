-- $1 domain. One row a command that got a new message.
SELECT commandbus.restore_messages($1::text)
