-- $1 batch ids, or NULL for all open ones. One row a batch that was closed.
SELECT commandbus.close_batches($1::uuid[])
