-- $1 the bytes of a file. As embed_sql() computes it for the files of the bus.
SELECT pg_catalog.encode(pg_catalog.sha256($1::bytea), 'hex')
