-- $1 domain. One row a command that got a new message.
SELECT commandbus.keep_messages($1::text)
